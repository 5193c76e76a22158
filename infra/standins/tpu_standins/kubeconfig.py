"""Kubeconfigs with which `kubectl` and the official clients reach the local API server."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The API server's address, `https://HOST:PORT`, and its CA certificate in PEM."""

    address: str
    authority: bytes


def kubeconfig(endpoint: Endpoint, credentials: Mapping[str, str], cluster: str = "demo") -> str:
    """Return a kubeconfig. `credentials` are the user's: `token`, or `tokenFile` with an absolute path.

    kubectl sends no token over plain HTTP (client-go's clientcmd: only `IsConfigTransportTLS`).
    """
    user = f"{cluster}-user"
    trusted = base64.b64encode(endpoint.authority).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": cluster, "cluster": {"server": endpoint.address, "certificate-authority-data": trusted}},
        ],
        "users": [{"name": user, "user": dict(credentials)}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": user, "namespace": "default"}}],
        "current-context": cluster,
    }
    return yaml.safe_dump(document, sort_keys=False)


def for_token_file(administrators: str, token_file: Path) -> str:
    """Return the administrator's kubeconfig, but with the token in a file as its credentials."""
    document = yaml.safe_load(administrators)
    document["users"][0]["user"] = {"tokenFile": str(token_file.resolve())}
    return yaml.safe_dump(document, sort_keys=False)


def write_private(path: Path, text: str) -> None:
    """Write a file atomically, readable only by its owner, as kubectl expects."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.touch(mode=0o600)
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)

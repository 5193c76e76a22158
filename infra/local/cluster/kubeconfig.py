"""A kubeconfig that leads `kubectl` and the official clients to the local API server."""

from pathlib import Path

import yaml


def kubeconfig(address: str, cluster: str = "demo") -> str:
    """Render a kubeconfig for `http://HOST:PORT`. There is no authentication: it only listens locally."""
    user = f"{cluster}-user"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {"server": address}}],
        "users": [{"name": user, "user": {}}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": user, "namespace": "default"}}],
        "current-context": cluster,
    }
    return yaml.safe_dump(document, sort_keys=False)


def write_kubeconfig(path: Path, address: str, cluster: str = "demo") -> None:
    """Write the file, readable by its owner alone, as kubectl wants it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(kubeconfig(address, cluster), encoding="utf-8")

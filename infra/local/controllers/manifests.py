"""What a controller's project installs, as it is installed for a controller that runs outside the cluster. Pure.

| object                        | here                                                                             |
|-------------------------------|----------------------------------------------------------------------------------|
| Deployment, Service, Secret,  | not applied: nothing runs in the cluster, and the certificate is ours            |
| APIService                    |                                                                                  |
| ConfigMap of the manager      | the file that the program reads, with the addresses that it has here             |
| webhook, and a CRD's          | at its address on loopback, instead of at a Service                              |
| conversion                    |                                                                                  |
| any other                     | as it is: namespace, CRDs, ServiceAccount, roles and their bindings              |
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

HOST = "127.0.0.1"
Json = dict[str, Any]

_LEFT_OUT = {"Deployment", "Service", "Secret", "APIService", "ConfigMap"}
_WEBHOOKS = {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
_FILE = "controller_manager_config.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a controller serves: ports of loopback, and the certificate of its webhooks."""

    folder: Path
    """What its program reads: `tls.crt` and `tls.key` of its webhooks, kubeconfig, token, configuration; their CA."""
    webhook_port: int
    health_port: int

    @property
    def authority(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def configuration(self) -> Path:
        return self.folder / "configuration.yaml"


def objects(manifests: Iterable[Json], place: Place, authority: bytes) -> tuple[list[Json], list[Json]]:
    """Return what is applied first, and then its webhooks; `authority`: their CA's certificate, in PEM."""

    def called(client: Json) -> Json:
        """Return how the API server calls a webhook that is not behind a Service."""
        url = f"https://{HOST}:{place.webhook_port}{client['service'].get('path', '')}"
        return {"url": url, "caBundle": base64.b64encode(authority).decode()}

    applied = [_local(each, called) for each in manifests if each["kind"] not in _LEFT_OUT]
    first = [each for each in applied if each["kind"] not in _WEBHOOKS]
    return first, [each for each in applied if each["kind"] in _WEBHOOKS]


def paths(manifests: Iterable[Json]) -> frozenset[str]:
    """Return the paths at which the API server calls webhooks."""
    found = (each["webhooks"] for each in manifests if each["kind"] in _WEBHOOKS)
    return frozenset(webhook["clientConfig"]["service"]["path"] for webhooks in found for webhook in webhooks)


def configuration(manifests: Iterable[Json], place: Place) -> str:
    """Return the file that the program reads: that of its ConfigMap, for one process here."""
    (text,) = [each["data"][_FILE] for each in manifests if each["kind"] == "ConfigMap" and _FILE in each["data"]]
    asked = yaml.safe_load(text)
    here = {
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "webhook": {"host": HOST, "port": place.webhook_port, "certDir": str(place.folder)},
        "health": {"healthProbeBindAddress": f"{HOST}:{place.health_port}"},
        "metrics": {"bindAddress": "0"},
    }
    return yaml.safe_dump({**asked, **here}, sort_keys=False)


def _local(obj: Json, called: Callable[[Json], Json]) -> Json:
    if obj["kind"] in _WEBHOOKS:
        return obj | {"webhooks": [each | {"clientConfig": called(each["clientConfig"])} for each in obj["webhooks"]]}
    conversion = obj["spec"].get("conversion", {}) if obj["kind"] == "CustomResourceDefinition" else {}
    if "webhook" not in conversion:
        return obj
    webhook = conversion["webhook"] | {"clientConfig": called(conversion["webhook"]["clientConfig"])}
    return obj | {"spec": obj["spec"] | {"conversion": conversion | {"webhook": webhook}}}

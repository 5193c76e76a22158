"""What a controller's project installs, as it is installed for a controller that runs outside the cluster. Pure.

| object                        | here                                                                             |
|-------------------------------|----------------------------------------------------------------------------------|
| Deployment, Service,          | not applied: nothing runs in the cluster                                         |
| APIService                    |                                                                                  |
| Secret of the certificate     | has ours, if the program renews it there; else it is not applied                 |
| ConfigMap of the manager      | the file that the program reads, with the addresses that it has here             |
| webhook, and a CRD's          | at its address on loopback, instead of at a Service                              |
| conversion                    |                                                                                  |
| any other                     | as it is: namespace, CRDs, ServiceAccount, roles and their bindings              |
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tpu_standins.certificates import Certificates

HOST = "127.0.0.1"
Json = dict[str, Any]

_LEFT_OUT = {"Deployment", "Service", "APIService", "ConfigMap"}
_KEPT = "Secret"
_WEBHOOKS = {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
_FILE = "controller_manager_config.yaml"
_ADMISSION: Json = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {"uid": "ready", "operation": "CONNECT"},
}
_CONVERSION: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "ConversionReview",
    "request": {"uid": "ready"},
}


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


def objects(manifests: Iterable[Json], place: Place, own: Certificates) -> tuple[list[Json], list[Json]]:
    """Return what is applied first, and then its webhooks; `own` certificates are those of their server."""

    def called(client: Json) -> Json:
        """Return how the API server calls a webhook that is not behind a Service."""
        url = f"https://{HOST}:{place.webhook_port}{client['service'].get('path', '')}"
        return {"url": url, "caBundle": _encoded(own.authority)}

    left_out = _LEFT_OUT if own.authority_key else {*_LEFT_OUT, _KEPT}
    applied = [_local(each, called, own) for each in manifests if each["kind"] not in left_out]
    first = [each for each in applied if each["kind"] not in _WEBHOOKS]
    return first, [each for each in applied if each["kind"] in _WEBHOOKS]


def questions(manifests: Iterable[Json]) -> dict[str, Json]:
    """Return, by the path of each webhook and conversion, a question that has no answer but that it is served."""
    return {client["service"]["path"]: question for client, question in _clients(manifests)}


def service(manifests: Iterable[Json]) -> str:
    """Return the DNS name of the Service that webhooks are behind in a cluster."""
    (name,) = {f"{each['service']['name']}.{each['service']['namespace']}.svc" for each, _ in _clients(manifests)}
    return name


def configuration(manifests: Iterable[Json]) -> str:
    """Return the file that the program reads in a cluster, from its ConfigMap."""
    (text,) = [each["data"][_FILE] for each in manifests if each["kind"] == "ConfigMap" and _FILE in each["data"]]
    return str(text)


def configured(text: str, place: Place, settings: Mapping[str, Any]) -> str:
    """Return that file for one process here, with these settings beside it."""
    here = {
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "webhook": {"host": HOST, "port": place.webhook_port, "certDir": str(place.folder)},
        "health": {"healthProbeBindAddress": f"{HOST}:{place.health_port}"},
        "metrics": {"bindAddress": "0"},
    }
    return yaml.safe_dump({**yaml.safe_load(text), **here, **settings}, sort_keys=False)


def _clients(manifests: Iterable[Json]) -> Iterator[tuple[Json, Json]]:
    """Yield how the API server calls each webhook and each conversion between versions in a cluster, and a question."""
    for each in manifests:
        if each["kind"] in _WEBHOOKS:
            yield from ((webhook["clientConfig"], _ADMISSION) for webhook in each["webhooks"])
        elif (webhook := _conversion(each).get("webhook")) and len(each["spec"]["versions"]) > 1:
            yield webhook["clientConfig"], _CONVERSION


def _conversion(obj: Json) -> Json:
    found: Json = obj["spec"].get("conversion", {}) if obj["kind"] == "CustomResourceDefinition" else {}
    return found


def _encoded(pem: bytes) -> str:
    return base64.b64encode(pem).decode()


def _local(obj: Json, called: Callable[[Json], Json], own: Certificates) -> Json:
    if obj["kind"] == _KEPT:
        data = {"ca.crt": own.authority, "ca.key": own.authority_key, "tls.crt": own.server, "tls.key": own.key}
        return obj | {"data": {name: _encoded(pem) for name, pem in data.items()}}
    if obj["kind"] in _WEBHOOKS:
        return obj | {"webhooks": [each | {"clientConfig": called(each["clientConfig"])} for each in obj["webhooks"]]}
    conversion = _conversion(obj)
    if "webhook" not in conversion:
        return obj
    webhook = conversion["webhook"] | {"clientConfig": called(conversion["webhook"]["clientConfig"])}
    return obj | {"spec": obj["spec"] | {"conversion": conversion | {"webhook": webhook}}}

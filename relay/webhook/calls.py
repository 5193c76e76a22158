"""What the webhook's certificates need of the API server: their Secret, and how it calls the webhook."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from relay.cluster import NOT_FOUND, TIMEOUTS, converted_errors, raw
from relay.webhook.certificates import Kept

CONFIGURATION = "tpu-slice-provisioner"
"""The name of the MutatingWebhookConfiguration, which has one webhook."""
SECRET = "webhook"  # noqa: S105 - the name of one


class Calls:
    """Implements the calls of `certificates`."""

    def __init__(self, api: client.ApiClient, namespace: str) -> None:
        self._core: Any = client.CoreV1Api(api)  # annotated for typed responses; here all are read raw
        self._admission: Any = client.AdmissionregistrationV1Api(api)
        self._namespace = namespace

    def kept(self) -> Kept:
        with converted_errors():
            secret = raw(self._core.read_namespaced_secret, SECRET, self._namespace, seconds=TIMEOUTS)
        entries = {name: b64decode(value) for name, value in (secret.get("data") or {}).items()}
        return Kept(entries, secret["metadata"]["resourceVersion"])

    def keep(self, entries: Mapping[str, bytes], before: Kept) -> None:
        data = {**dict.fromkeys(before.entries), **{name: _encoded(value) for name, value in entries.items()}}
        with converted_errors():
            self._core.patch_namespaced_secret(
                SECRET,
                self._namespace,
                {"metadata": {"resourceVersion": before.version}, "data": data},
                _content_type="application/merge-patch+json",
                _request_timeout=TIMEOUTS,
                _preload_content=False,
            )

    def trusted(self) -> bytes | None:
        with converted_errors():
            try:
                found = raw(self._admission.read_mutating_webhook_configuration, CONFIGURATION, seconds=TIMEOUTS)
            except ApiException as error:
                if error.status == NOT_FOUND:
                    return None
                raise
        return b64decode(found["webhooks"][0]["clientConfig"].get("caBundle", ""))

    def trust(self, bundle: bytes) -> None:
        added = {"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": _encoded(bundle)}
        with converted_errors():
            self._admission.patch_mutating_webhook_configuration(
                CONFIGURATION,
                [added],
                _content_type="application/json-patch+json",
                _request_timeout=TIMEOUTS,
                _preload_content=False,
            )


def _encoded(pem: bytes) -> str:
    return b64encode(pem).decode()

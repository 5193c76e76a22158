"""What the webhook's certificates need of the API server: their Secret, and how it calls the webhook."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from relay.cluster import NOT_FOUND, TIMEOUTS, converted_errors, raw
from relay.notices.pinning import WEBHOOK
from relay.webhook.certificates import Kept
from tpu_slices.ports.errors import Permanent, Temporary

CONFIGURATION = "tpu-slice-provisioner"
"""The name of the MutatingWebhookConfiguration."""
GANGS = "gangs.tpu-slice-provisioner.google.com"
"""The name of the webhook that labels the pod templates of gangs."""
OURS = frozenset({WEBHOOK, GANGS})
SECRET = "webhook"  # noqa: S105 - the name of one


class Calls:
    """Implements the calls of `certificates`."""

    def __init__(self, api: client.ApiClient, namespace: str) -> None:
        self._core: Any = client.CoreV1Api(api)  # annotated for typed responses; here all are read raw
        self._admission: Any = client.AdmissionregistrationV1Api(api)
        self._namespace = namespace

    def kept(self) -> Kept:
        with _about(f"the Secret {SECRET}"):
            secret = raw(self._core.read_namespaced_secret, SECRET, self._namespace, seconds=TIMEOUTS)
        entries = {name: b64decode(value) for name, value in (secret.get("data") or {}).items()}
        return Kept(entries, secret["metadata"]["resourceVersion"])

    def keep(self, entries: Mapping[str, bytes], before: Kept) -> None:
        data = {**dict.fromkeys(before.entries), **{name: _encoded(value) for name, value in entries.items()}}
        with _about(f"the Secret {SECRET}"):
            self._core.patch_namespaced_secret(
                SECRET,
                self._namespace,
                {"metadata": {"resourceVersion": before.version}, "data": data},
                _content_type="application/merge-patch+json",
                _request_timeout=TIMEOUTS,
                _preload_content=False,
            )

    def trusted(self) -> bytes | None:
        found = {b64decode(each["clientConfig"].get("caBundle", "")) for each in self._configured().values()}
        return None if not found else found.pop() if len(found) == 1 else b""

    def trust(self, bundle: bytes) -> None:
        operations = [
            operation
            for place, each in self._configured().items()
            for operation in (
                {"op": "test", "path": f"/webhooks/{place}/name", "value": each["name"]},
                {"op": "add", "path": f"/webhooks/{place}/clientConfig/caBundle", "value": _encoded(bundle)},
            )
        ]
        if not operations:
            return
        with _about(f"the configuration {CONFIGURATION}"):
            self._admission.patch_mutating_webhook_configuration(
                CONFIGURATION,
                operations,
                _content_type="application/json-patch+json",
                _request_timeout=TIMEOUTS,
                _preload_content=False,
            )

    def _configured(self) -> Mapping[int, Mapping[str, Any]]:
        """Return our webhooks as the API server has them, by their positions; none: it does not call them."""
        with _about(f"the configuration {CONFIGURATION}"):
            try:
                found = raw(self._admission.read_mutating_webhook_configuration, CONFIGURATION, seconds=TIMEOUTS)
            except ApiException as error:
                if error.status == NOT_FOUND:
                    return {}
                raise
        return {place: each for place, each in enumerate(found.get("webhooks") or ()) if each["name"] in OURS}


@contextmanager
def _about(what: str) -> Iterator[None]:
    """Raise the client's errors as Temporary or Permanent, which name the object."""
    try:
        with converted_errors():
            yield
    except (Temporary, Permanent) as error:
        raise type(error)(f"{what}: {error}") from error


def _encoded(pem: bytes) -> str:
    return b64encode(pem).decode()

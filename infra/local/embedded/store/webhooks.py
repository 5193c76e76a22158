"""Admission webhooks that are reached by URL: AdmissionReview v1 on creation and update.

Facts: k8s.io/apiserver/pkg/admission/plugin/webhook. A webhook is called over HTTPS in a thread of its own, so that
it may ask this server meanwhile.
"""

import asyncio
import http.client
import ssl
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import orjson

from infra.local.embedded.store.errors import ApiError
from infra.local.embedded.store.kinds import Key, Kind, Object
from infra.local.embedded.store.labels import selects
from infra.local.embedded.store.objects import Objects
from infra.local.embedded.store.patches import json_patch
from infra.local.embedded.store.table import BUILT_IN

_MUTATING, _VALIDATING = "mutatingwebhookconfigurations", "validatingwebhookconfigurations"


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """What is to be admitted: `operation` is CREATE or UPDATE; `old` is None for a new object."""

    kind: Kind
    operation: str
    old: Object | None
    subresource: str = ""
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Webhooks:
    objects: Objects

    async def mutate(self, write: Write, new: Object) -> Object:
        """Return the object as the mutating webhooks change it. Raise ApiError if one refuses it."""
        for webhook in self._of(_MUTATING, write, new):
            response = await self._asked(webhook, write, new)
            if response.get("patch"):
                new = json_patch(new, orjson.loads(b64decode(response["patch"])))
        return new

    async def validate(self, write: Write, new: Object) -> None:
        """Raise ApiError if a validating webhook refuses the object."""
        for webhook in self._of(_VALIDATING, write, new):
            await self._asked(webhook, write, new)

    def _of(self, configurations: str, write: Write, new: Object) -> Iterator[Mapping[str, Any]]:
        if write.kind.id in (_MUTATING, _VALIDATING):
            return
        for configuration in self.objects.stored(BUILT_IN[configurations]):
            for webhook in configuration.get("webhooks", []):
                if any(_applies(rule, write) for rule in webhook.get("rules", [])) and self._chosen(webhook, new):
                    yield webhook

    def _chosen(self, webhook: Mapping[str, Any], new: Object) -> bool:
        metadata = new["metadata"]
        space = self.objects.find(Key("namespaces", "", metadata.get("namespace", "")))
        theirs = space["metadata"].get("labels", {}) if space else {}
        by_object = selects(webhook["objectSelector"], metadata.get("labels", {}))
        return by_object and (space is None or selects(webhook["namespaceSelector"], theirs))

    async def _asked(self, webhook: Mapping[str, Any], write: Write, new: Object) -> Mapping[str, Any]:
        """Return the response of a webhook that allows the write; empty if it failed and may."""
        name, request = webhook["name"], _request(write, new)
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        try:
            answer = orjson.loads(await asyncio.to_thread(_post, webhook, orjson.dumps(review)))
            response: Mapping[str, Any] = answer["response"]
            allowed = response["allowed"]
        except (OSError, http.client.HTTPException, LookupError, TypeError, ValueError) as error:
            if webhook["failurePolicy"] == "Ignore":
                return {}
            message = f'Internal error occurred: failed calling webhook "{name}": {error}'
            raise ApiError(500, "InternalError", message) from error
        if not allowed:
            status = response.get("status") or {}
            why = status.get("message") or status.get("reason") or "without explanation"
            message = f'admission webhook "{name}" denied the request: {why}'
            raise ApiError(status.get("code") or 403, status.get("reason") or "Forbidden", message)
        return response


def _applies(rule: Mapping[str, Any], write: Write) -> bool:
    kind = write.kind
    resource = f"{kind.plural}/{write.subresource}" if write.subresource else kind.plural
    everything = ("*/*", "*") if not write.subresource else ("*/*", f"{kind.plural}/*", f"*/{write.subresource}")
    asked = (
        ("operations", (write.operation, "*")),
        ("apiGroups", (kind.group, "*")),
        ("apiVersions", (kind.version, "*")),
        ("resources", (resource, *everything)),
    )
    scoped = rule["scope"] in ("*", "Namespaced" if kind.namespaced else "Cluster")
    return scoped and all(any(value in accepted for value in rule.get(field, ())) for field, accepted in asked)


def _request(write: Write, new: Object) -> Object:
    kind, metadata = write.kind, new["metadata"]
    version = {"group": kind.group, "version": kind.version}
    return {
        "uid": str(uuid4()),
        "kind": version | {"kind": kind.kind},
        "resource": version | {"resource": kind.plural},
        "subResource": write.subresource,
        "name": metadata.get("name", ""),
        "namespace": metadata.get("namespace", ""),
        "operation": write.operation,
        "object": new,
        "oldObject": write.old,
        "dryRun": write.dry_run,
        "userInfo": {},
    }


@lru_cache(maxsize=16)
def _trusting(bundle: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=b64decode(bundle).decode())
    return context


def _post(webhook: Mapping[str, Any], review: bytes) -> bytes:
    config = webhook["clientConfig"]
    url = urlsplit(config["url"])
    connection = http.client.HTTPSConnection(
        url.netloc, timeout=webhook["timeoutSeconds"], context=_trusting(config.get("caBundle", ""))
    )
    try:
        where = url.path + (f"?{url.query}" if url.query else "")
        connection.request("POST", where or "/", review, {"Content-Type": "application/json"})
        response = connection.getresponse()
        body = response.read()
    finally:
        connection.close()
    if response.status != http.HTTPStatus.OK:
        raise http.client.HTTPException(f"{response.status} {response.reason}")
    return body

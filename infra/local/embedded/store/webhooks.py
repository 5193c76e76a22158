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

Webhook = Mapping[str, Any]
_MUTATING, _VALIDATING = BUILT_IN["mutatingwebhookconfigurations"], BUILT_IN["validatingwebhookconfigurations"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """What is to be admitted: `operation` is CREATE or UPDATE; `old` is None for a new object."""

    kind: Kind
    operation: str
    old: Object | None = None
    status: bool = False
    dry_run: bool = False


async def admitted(objects: Objects, write: Write, new: Object, *, validating: bool) -> Object:
    """Return the object as webhooks, validating or mutating ones, change it. Raise ApiError if one refuses it."""
    for webhook in _matching(objects, _VALIDATING if validating else _MUTATING, write, new):
        response = await _asked(webhook, write, new)
        if response.get("patch") and not validating:
            new = json_patch(new, orjson.loads(b64decode(response["patch"])))
    return new


def _matching(objects: Objects, configurations: Kind, write: Write, new: Object) -> Iterator[Webhook]:
    if write.kind.group == configurations.group:
        return
    metadata = new["metadata"]
    space = objects.find(Key("namespaces", "", metadata.get("namespace", "")))
    for configuration in objects.stored(configurations):
        for webhook in configuration.get("webhooks", []):
            chosen = selects(webhook["objectSelector"], metadata.get("labels", {}))
            near = space is None or selects(webhook["namespaceSelector"], space["metadata"].get("labels", {}))
            if chosen and near and any(_applies(rule, write) for rule in webhook.get("rules", [])):
                yield webhook


def _applies(rule: Mapping[str, Any], write: Write) -> bool:
    plural = write.kind.plural
    asked = {
        "operations": {write.operation, "*"},
        "apiGroups": {write.kind.group, "*"},
        "apiVersions": {write.kind.version, "*"},
        "resources": {f"{plural}/status", "*/*"} if write.status else {plural, "*", "*/*"},
    }
    return all(accepted & {*rule.get(field, ())} for field, accepted in asked.items())


async def _asked(webhook: Webhook, write: Write, new: Object) -> Mapping[str, Any]:
    """Return the response of a webhook that allows the write; empty if it failed and may."""
    review = orjson.dumps(_review(write, new))
    try:
        response: Mapping[str, Any] = orjson.loads(await asyncio.to_thread(_post, webhook, review))["response"]
        allowed = response["allowed"]
    except (OSError, http.client.HTTPException, LookupError, TypeError, ValueError) as error:
        if webhook["failurePolicy"] == "Ignore":
            return {}
        message = f'Internal error occurred: failed calling webhook "{webhook["name"]}": {error}'
        raise ApiError(500, "InternalError", message) from error
    if not allowed:
        status = response.get("status") or {}
        message = f'admission webhook "{webhook["name"]}" denied the request: {status.get("message") or "no reason"}'
        raise ApiError(status.get("code") or 403, status.get("reason") or "Forbidden", message)
    return response


def _review(write: Write, new: Object) -> Object:
    kind, metadata = write.kind, new["metadata"]
    version = {"group": kind.group, "version": kind.version}
    request: Object = {"uid": str(uuid4()), "kind": version | {"kind": kind.kind}, "operation": write.operation}
    request |= {"resource": version | {"resource": kind.plural}, "subResource": "status" if write.status else ""}
    request |= {"name": metadata.get("name", ""), "namespace": metadata.get("namespace", ""), "userInfo": {}}
    request |= {"object": new, "oldObject": write.old, "dryRun": write.dry_run}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def _post(webhook: Webhook, review: bytes) -> bytes:
    """Return the body of the answer. Raise OSError, HTTPException or ValueError without a good one."""
    config = webhook["clientConfig"]
    url, context = urlsplit(config["url"]), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=b64decode(config.get("caBundle", "")).decode())
    connection = http.client.HTTPSConnection(url.netloc, timeout=webhook["timeoutSeconds"], context=context)
    try:
        connection.request("POST", f"{url.path}?{url.query}", review, {"Content-Type": "application/json"})
        response = connection.getresponse()
        body = response.read()
    finally:
        connection.close()
    if response.status != http.HTTPStatus.OK:
        raise http.client.HTTPException(f"{response.status} {response.reason}")
    return body

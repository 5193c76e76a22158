"""How objects are created and changed: what the server owns, defaults, admission, validation, then the store.

Webhooks are called by URL, with AdmissionReview v1, in threads of their own, so that they may ask this server.
"""

import asyncio
import http.client
import ssl
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from random import SystemRandom
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import orjson

from tpu_standins.clients.conditions import Condition, of, with_condition
from tpu_standins.clients.objects import timestamp
from tpu_standins.embedded.store import admission, errors, rules
from tpu_standins.embedded.store.errors import ApiError, understood
from tpu_standins.embedded.store.kinds import Key, Kind, Object
from tpu_standins.embedded.store.labels import selects
from tpu_standins.embedded.store.objects import PERMANENT_NAMESPACES, Objects
from tpu_standins.embedded.store.patches import json_patch
from tpu_standins.embedded.store.table import BUILT_IN

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


async def _reviewed(objects: Objects, write: Write, new: Object, *, validating: bool) -> Object:
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
    asked = {"operations": write.operation, "apiGroups": write.kind.group, "apiVersions": write.kind.version}
    resources = {f"{plural}/status", "*/*"} if write.status else {plural, "*", "*/*"}
    covered = resources & {*rule.get("resources", ())}
    return bool(covered) and all({"*", value} & {*rule.get(field, ())} for field, value in asked.items())


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


_OWNED = ["uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp"]
_OWNED += ["deletionGracePeriodSeconds"]
"""The metadata that the server owns."""
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"  # k8s.io/apimachinery/pkg/util/rand: no vowels, no 0 1 3
_ASIDE = {"metadata", "status"}
_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
_TRIES = 5

Change = Callable[[Object], Object]
"""Returns the wanted object for the one that is stored, which it does not modify."""


class Writes:
    """`authority`: the certificate, in PEM, that proves this server to pods; each namespace has it in a ConfigMap."""

    def __init__(self, objects: Objects, clock: Callable[[], datetime], authority: str) -> None:
        self._objects, self._clock, self._authority = objects, clock, authority

    async def create(self, kind: Kind, wanted: Object, *, dry_run: bool = False) -> Object:
        """Create an object. Raise ApiError 409 AlreadyExists, 422 Invalid, 403, 404."""
        with understood(kind.kind):
            new = self._begun(kind, _clean(wanted))
            if kind.namespaced:
                admission.require_namespace(self._objects, kind, new)
            kind.defaults(new)
            admission.complete(self._objects, kind, new)
        new = await self._admitted(Write(kind=kind, operation="CREATE", dry_run=dry_run), new)
        if dry_run and self._objects.find(kind.key(new)) is None:
            return new
        stored = self._objects.add(kind, new)
        if kind.id == "namespaces":
            for plural, name, more in (
                ("serviceaccounts", "default", {}),
                ("configmaps", "kube-root-ca.crt", {"data": {"ca.crt": self._authority}}),
            ):
                own = {"metadata": {"name": name, "namespace": stored["metadata"]["name"]}}
                await self.create(BUILT_IN[plural], own | more)
        return stored

    async def update(self, kind: Kind, wanted: Object, *, status: bool = False, dry_run: bool = False) -> Object:
        """Replace an object, or only its status. Raise ApiError, 409 Conflict for one of an older resourceVersion."""
        key = kind.key(wanted)
        if kind.needs_version and not wanted["metadata"].get("resourceVersion"):
            cause = errors.wrong("metadata.resourceVersion", 0, "must be specified for an update")
            raise errors.invalid(kind.kind, kind.group, key.name, [cause])
        return await self.change(kind, key, lambda _: wanted, status=status, dry_run=dry_run)

    async def change(
        self, kind: Kind, key: Key, change: Change, *, status: bool = False, dry_run: bool = False
    ) -> Object:
        """Change the object as it is then: anew if another change comes first, unless a resourceVersion is asked for.

        An object that was only waiting for this change is removed, and its last state returned.
        """
        for _ in range(_TRIES):
            old = self._objects.get(kind, key.namespace, key.name)
            wanted = change(old)
            with understood(kind.kind):
                new = _changed(kind, old, wanted, status=status)
            write = Write(kind=kind, operation="UPDATE", old=old, status=status, dry_run=dry_run)
            new = await self._admitted(write, new)
            if dry_run:
                return new
            if self._objects.find(key) is old:
                return self._objects.put(kind, new)
        raise errors.conflict(kind.plural, kind.group, key.name, _MODIFIED)

    def _begun(self, kind: Kind, new: Object) -> Object:
        """Set what the server owns in a new object."""
        metadata = new.setdefault("metadata", {})
        if metadata.get("resourceVersion"):
            raise errors.bad_request("resourceVersion should not be set on objects to be created")
        metadata = {key: value for key, value in metadata.items() if key not in _OWNED}
        if not kind.namespaced:
            metadata.pop("namespace", None)
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"][:58] + "".join(SystemRandom().choices(_SUFFIX, k=5))
        metadata |= {"uid": str(uuid4()), "creationTimestamp": timestamp(self._clock())}
        metadata |= {"generation": 1} if kind.generation else {}
        if kind.first_status is not None:
            new["status"] = dict(kind.first_status)
        elif kind.custom and kind.status:
            new.pop("status", None)
        return new | {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": _without_empty(metadata)}

    async def _admitted(self, write: Write, new: Object) -> Object:
        """Return the object as webhooks change it. Raise ApiError if it is invalid, or a webhook refuses it."""
        kind = write.kind
        changed = await _reviewed(self._objects, write, new, validating=False)
        with understood(kind.kind):
            if changed is not new:
                kind.defaults(changed)
            wrong = [*rules.metadata(kind, write.old, changed), *kind.rules(changed)]
            wrong += kind.update_rules(write.old, changed) if write.old else []
        if wrong:
            raise errors.invalid(kind.kind, kind.group, changed["metadata"].get("name", ""), wrong)
        return await _reviewed(self._objects, write, changed, validating=True)


def _changed(kind: Kind, old: Object, wanted: Object, *, status: bool) -> Object:
    """Return the updated object: `old` with the new status, or `wanted` with what the server owns of `old`."""
    asked, current = wanted["metadata"], old["metadata"]
    for field in ("uid", "resourceVersion"):
        if asked.get(field) and asked[field] != current[field]:
            why = _MODIFIED if field == "resourceVersion" else f"Precondition failed: UID is {current[field]}"
            raise errors.conflict(kind.plural, kind.group, current["name"], why)
    new: Object = _clean(wanted)
    if status:
        patched: Object = _clean(old) | ({"status": new["status"]} if "status" in new else {})
        return patched
    kept = {key: current[key] for key in _OWNED if key in current}
    new["metadata"] = _without_empty({key: v for key, v in new["metadata"].items() if key not in _OWNED}) | kept
    if kind.status:
        new.pop("status", None)
        new |= {"status": old["status"]} if "status" in old else {}
    new |= {"apiVersion": kind.api_version, "kind": kind.kind}
    kind.defaults(new)
    admission.complete_update(kind, old, new)
    if kind.generation and any(new.get(key) != old.get(key) for key in (new.keys() | old) - _ASIDE):
        new["metadata"]["generation"] = current.get("generation", 0) + 1
    return new


def _clean(obj: Any) -> Any:
    """Return a copy without nulls, which mean the same as fields that are left out."""
    if isinstance(obj, dict):
        return {str(key): _clean(value) for key, value in obj.items() if value is not None}
    return [_clean(item) for item in obj] if isinstance(obj, list) else obj


def _without_empty(metadata: Object) -> Object:
    """Drop empty fields, as Go's `omitempty` does, and those that are not kept here."""
    return {k: v for k, v in metadata.items() if v not in ({}, [], "") and k not in ("managedFields", "selfLink")}


def first_objects() -> Iterator[tuple[Kind, Object]]:
    """Yield what a new cluster has, beside roles."""
    for name in PERMANENT_NAMESPACES:
        yield BUILT_IN["namespaces"], {"metadata": {"name": name}}
    for name, value in rules.SYSTEM_CLASSES.items():
        yield BUILT_IN["priorityclasses"], {"metadata": {"name": name}, "value": value}


def bound(pod: Object, binding: Object, now: datetime) -> Object:
    """Return the pod on the node that a v1 Binding names (pkg/registry/core/pod/storage: BindingREST).

    Raise ApiError 409 if it cannot be bound, 422 if no node is named.
    """
    name, spec, target = pod["metadata"]["name"], pod["spec"], binding.get("target")
    node = target.get("name") if isinstance(target, dict) and target.get("kind", "Node") == "Node" else None
    if not node:
        raise errors.invalid("Binding", "", name, [errors.required("target.name")])
    if "deletionTimestamp" in pod["metadata"] or spec.get("nodeName") or spec.get("schedulingGates"):
        why = f"pod {name} is being deleted, already assigned to a node, or has scheduling gates"
        raise errors.conflict("pods/binding", "", name, why)
    conditions = with_condition(of(pod), Condition(type="PodScheduled"), now)
    return pod | {"spec": spec | {"nodeName": node}, "status": pod["status"] | {"conditions": conditions}}

"""How objects are created and changed: what the server owns, defaults, admission, validation, then the store.

The order is that of k8s.io/apiserver (pkg/endpoints/handlers, pkg/registry/rest and registry/generic/registry).
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from random import SystemRandom
from typing import Any
from uuid import uuid4

from infra.local.clients.conditions import Condition, of, with_condition
from infra.local.clients.objects import timestamp
from infra.local.embedded.store import admission, errors, rules, webhooks
from infra.local.embedded.store.errors import understood
from infra.local.embedded.store.kinds import Key, Kind, Object
from infra.local.embedded.store.objects import PERMANENT_NAMESPACES, Objects
from infra.local.embedded.store.table import BUILT_IN
from infra.local.embedded.store.webhooks import Write

_OWNED = (
    "uid",
    "creationTimestamp",
    "generation",
    "resourceVersion",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
"""The metadata that the server owns."""
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"  # k8s.io/apimachinery/pkg/util/rand: no vowels, no 0 1 3
_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
_TRIES = 5

Change = Callable[[Object], Object]
"""Returns the wanted object for the one that is stored, which it does not modify."""


class Writes:
    def __init__(self, objects: Objects, clock: Callable[[], datetime]) -> None:
        self._objects = objects
        self._clock = clock

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
            account = {"metadata": {"name": "default", "namespace": stored["metadata"]["name"]}}
            await self.create(BUILT_IN["serviceaccounts"], account)
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
        changed = await webhooks.admitted(self._objects, write, new, validating=False)
        with understood(kind.kind):
            if changed is not new:
                kind.defaults(changed)
            wrong = [*rules.metadata(kind, write.old, changed), *kind.rules(changed)]
            wrong += kind.update_rules(write.old, changed) if write.old else []
        if wrong:
            raise errors.invalid(kind.kind, kind.group, changed["metadata"].get("name", ""), wrong)
        return await webhooks.admitted(self._objects, write, changed, validating=True)


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
    if kind.generation and _spec(new) != _spec(old):
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


def _spec(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in ("metadata", "status")}


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

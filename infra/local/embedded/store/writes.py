"""How objects are created and changed: what the server owns, defaults, admission, validation, then the store.

The order is that of k8s.io/apiserver (pkg/endpoints/handlers, pkg/registry/rest and registry/generic/registry).
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from random import Random, SystemRandom
from typing import Any
from uuid import UUID

from infra.local.embedded.store import errors, rules
from infra.local.embedded.store.admission import Admission
from infra.local.embedded.store.deletion import timestamp
from infra.local.embedded.store.errors import FieldError, understood
from infra.local.embedded.store.kinds import Key, Kind, Object
from infra.local.embedded.store.objects import Objects
from infra.local.embedded.store.table import BUILT_IN
from infra.local.embedded.store.webhooks import Webhooks, Write

_SERVER_OWNED = (
    "uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds",
)  # fmt: skip
_NOT_STORED = ("managedFields", "selfLink")
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"  # k8s.io/apimachinery/pkg/util/rand: no vowels, no 0 1 3
_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
_TRIES = 5

Change = Callable[[Object], Object]
"""Returns the wanted object for the one that is stored, which it does not modify."""


class Writes:
    def __init__(
        self, objects: Objects, admission: Admission, clock: Callable[[], datetime], random: Random | None = None
    ) -> None:
        self._objects = objects
        self._admission = admission
        self._webhooks = Webhooks(objects)
        self._clock = clock
        self._random = random or SystemRandom()

    async def create(self, kind: Kind, wanted: Object, *, dry_run: bool = False) -> Object:
        """Create an object. Raise ApiError 409 AlreadyExists, 422 Invalid, 403, 404."""
        with understood(kind.kind):
            new = self._begun(kind, _clean(wanted))
            if kind.namespaced:
                self._admission.require_namespace(kind, new)
            kind.defaults(new)
            self._admission.complete(kind, new)
        write = Write(kind=kind, operation="CREATE", old=None, dry_run=dry_run)
        changed = await self._webhooks.mutate(write, new)
        with understood(kind.kind):
            if changed is not new:
                new = changed
                kind.defaults(new)
            _refuse(kind, new, [*rules.metadata(kind, new), *kind.rules(new)])
        await self._webhooks.validate(write, new)
        if dry_run:
            if self._objects.find(kind.key(new)):
                raise errors.already_exists(kind.plural, kind.group, new["metadata"]["name"])
            return new
        stored = self._objects.add(kind, new)
        if kind.id == "namespaces":
            account = {"metadata": {"name": "default", "namespace": stored["metadata"]["name"]}}
            await self.create(BUILT_IN["serviceaccounts"], account)
        return stored

    async def update(self, kind: Kind, wanted: Object, *, status: bool = False, dry_run: bool = False) -> Object:
        """Replace an object, or only its status. Raise ApiError, 409 Conflict for one of an older resourceVersion."""
        with understood(kind.kind):
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
                new = self._changed(kind, old, wanted, status=status)
            new = await self._admitted(kind, old, new, status=status, dry_run=dry_run)
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
        for owned in (*_SERVER_OWNED, *_NOT_STORED, *(() if kind.namespaced else ("namespace",))):
            metadata.pop(owned, None)
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"][:58] + "".join(self._random.choices(_SUFFIX, k=5))
        metadata["uid"] = str(UUID(int=self._random.getrandbits(128), version=4))
        metadata["creationTimestamp"] = timestamp(self._clock())
        metadata |= {"generation": 1} if kind.generation else {}
        if kind.first_status is not None:
            new["status"] = dict(kind.first_status)
        elif kind.custom and kind.status:
            new.pop("status", None)
        return {"apiVersion": kind.api_version, "kind": kind.kind} | _named(new)

    def _changed(self, kind: Kind, old: Object, wanted: Object, *, status: bool) -> Object:
        """Return the updated object: `old` with the new status, or `wanted` with what the server owns of `old`."""
        asked, current = wanted["metadata"], old["metadata"]
        for field, shown in (("uid", "UID"), ("resourceVersion", "")):
            if asked.get(field) and asked[field] != current[field]:
                why = f"Precondition failed: {shown} is {current[field]}, not {asked[field]}"
                raise errors.conflict(kind.plural, kind.group, current["name"], why if shown else _MODIFIED)
        new = _clean(wanted)
        if status:
            patched: Object = _clean(old) | ({"status": new["status"]} if "status" in new else {})
            return patched
        kept = {key: current[key] for key in _SERVER_OWNED if key in current}
        own = {
            k: v
            for k, v in new["metadata"].items()
            if k not in (*_SERVER_OWNED, *_NOT_STORED) and v not in ({}, [], "")
        }
        new["metadata"] = own | kept
        if kind.status:
            new.pop("status", None)
            new |= {"status": old["status"]} if "status" in old else {}
        new |= {"apiVersion": kind.api_version, "kind": kind.kind}
        kind.defaults(new)
        self._admission.complete_update(kind, old, new)
        if kind.generation and _spec(new) != _spec(old):
            new["metadata"]["generation"] = current.get("generation", 0) + 1
        return new

    async def _admitted(self, kind: Kind, old: Object, new: Object, *, status: bool, dry_run: bool) -> Object:
        subresource = "status" if status else ""
        write = Write(kind=kind, operation="UPDATE", old=old, subresource=subresource, dry_run=dry_run)
        new = await self._webhooks.mutate(write, new)
        with understood(kind.kind):
            wrong = [*rules.metadata(kind, new), *rules.metadata_update(old, new)]
            _refuse(kind, new, [*wrong, *kind.rules(new), *kind.update_rules(old, new)])
        await self._webhooks.validate(write, new)
        return new


def _clean(obj: Any) -> Any:
    """Return a copy without nulls, which mean the same as fields that are left out."""
    if isinstance(obj, dict):
        return {str(key): _clean(value) for key, value in obj.items() if value is not None}
    return [_clean(item) for item in obj] if isinstance(obj, list) else obj


def _named(new: Object) -> Object:
    """Drop the empty fields of the metadata, as Go's `omitempty` does, and what the body says of its kind."""
    metadata = {key: value for key, value in new["metadata"].items() if value not in ({}, [], "")}
    return {key: value for key, value in new.items() if key not in ("apiVersion", "kind")} | {"metadata": metadata}


def _spec(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in ("metadata", "status")}


def _refuse(kind: Kind, obj: Object, found: Iterable[FieldError]) -> None:
    """Raise ApiError 422, listing every invalid field."""
    if wrong := list(found):
        raise errors.invalid(kind.kind, kind.group, obj["metadata"].get("name", ""), wrong)

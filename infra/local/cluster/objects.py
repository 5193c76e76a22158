"""The objects of the cluster in memory: the counterpart of etcd and the API server's registries.

Controllers use `Objects` in process and are subject to the same defaults, validation and admission as a request
over HTTP; only the strict decoding of unknown fields belongs to HTTP.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from random import Random, SystemRandom
from typing import Any
from uuid import UUID

import orjson

from infra.local.cluster import admission, deletion, errors, strategies
from infra.local.cluster.errors import ApiError
from infra.local.cluster.expiry import Expiry
from infra.local.cluster.history import Change, History
from infra.local.cluster.managed_fields import CONTROLLERS, Manager, Owners, Write, bookkeeping
from infra.local.cluster.ownership import FOREGROUND, Key, Ownership, blocks, key_of, references, without_owner
from infra.local.cluster.plain_kinds import SYSTEM_CLASSES
from infra.local.cluster.resources import RESOURCES, Resource

__all__ = ["RESOURCES", "ApiError", "Change", "Object", "ObjectList", "Objects", "Resource", "copied", "timestamp"]

Object = dict[str, Any]
"""A Kubernetes object as JSON."""

ObjectList = list[Object]
"""Needed because `Objects.list` shadows the builtin inside its class."""

_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"  # k8s.io/apimachinery/pkg/util/rand: no vowels, no 0 1 3


def copied(obj: Object) -> Object:
    """Return a deep copy; several times faster than copy.deepcopy."""
    copy: Object = orjson.loads(orjson.dumps(obj))
    return copy


def timestamp(moment: datetime) -> str:
    """Format a metav1.Time: RFC 3339, UTC, whole seconds. `moment` is timezone-aware and in UTC."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


class Objects:
    """The store. Its methods are synchronous, for one event loop. `clock` returns timezone-aware UTC datetimes."""

    def __init__(self, clock: Callable[[], datetime], *, random: Random | None = None, window: int = 2000) -> None:
        self._clock = clock
        self._random = random or SystemRandom()
        self._history = History(RESOURCES, window)
        self._objects: dict[str, dict[Key, Object]] = {plural: {} for plural in RESOURCES}
        self._uids: dict[str, Key] = {}
        self._ownership = Ownership()
        self._expiry = Expiry()
        for name in deletion.PERMANENT_NAMESPACES:
            self.create("namespaces", {"metadata": {"name": name}})
        for name, value in SYSTEM_CLASSES.items():
            self.create("priorityclasses", {"metadata": {"name": name}, "value": value})

    def get(self, plural: str, namespace: str | None, name: str) -> Object:
        """Return a deep copy of the object. Raise ApiError 404."""
        self._expire()
        return copied(self._stored(Key(plural, namespace or "", name)))

    def list(self, plural: str, namespace: str | None = None) -> ObjectList:
        """Return deep copies, ordered by namespace and name."""
        return [copied(obj) for obj in self.stored(plural, namespace)]

    def stored(self, plural: str, namespace: str | None = None) -> Sequence[Object]:
        """Return the objects themselves, for reading only: a change replaces an object, it never modifies it."""
        self._expire()
        found = self._objects[plural]
        return [found[key] for key in sorted(found) if not namespace or key.namespace == namespace]

    def create(self, plural: str, obj: Object, *, dry_run: bool = False, owners: Owners | None = None) -> Object:
        """Default, admit, validate and store a new object. Raise ApiError 409 AlreadyExists, 422 Invalid, 403, 404.

        A dry run does everything but store it. Without `owners` its fields have no owner until somebody applies them.
        """
        resource = RESOURCES[plural]
        new = strategies.for_create(resource, copied(obj))
        metadata = new["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            # The longest base is 58: k8s.io/apiserver/pkg/storage/names.
            suffix = "".join(self._random.choices(_SUFFIX, k=5))
            metadata["name"] = metadata["generateName"][:58] + suffix
        metadata["uid"] = str(UUID(int=self._random.getrandbits(128), version=4))
        metadata["creationTimestamp"] = timestamp(self._clock())
        admission.admit(self, resource, new)
        strategies.validate_create(resource, new)
        key = key_of(resource, new)
        if key in self._objects[plural]:
            raise errors.already_exists(plural, resource.group, key.name)
        if resource.has_generation:
            metadata["generation"] = 1
        if owners:
            metadata["managedFields"] = owners(strategies.nothing(resource), new)
        if not dry_run:
            self._history.record(plural, "ADDED", new, None)
            self._keep(key, new)
        return copied(new)

    def update(
        self,
        plural: str,
        obj: Object,
        *,
        status: bool = False,
        dry_run: bool = False,
        owners: Owners | None = None,
    ) -> Object:
        """Replace the object, or only its status, and return it.

        With metadata.resourceVersion set, concurrency is optimistic (ApiError 409 Conflict). The generation rises
        when the spec changes; an update without changes has no effect. An object being deleted is removed with its
        last finalizer; then its last state is returned.
        """
        resource = RESOURCES[plural]
        key = key_of(resource, obj)
        old = self._stored(key)
        strategies.check_preconditions(resource, old, obj["metadata"])
        new = strategies.for_update(resource, old, copied(obj), status=status)
        admission.admit_update(resource, old, new)
        strategies.validate_update(resource, old, new)
        if resource.has_generation and new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        if owners or "managedFields" in old["metadata"]:
            owners = owners or self._controllers(resource, status=status)
            kept = {key: value for key, value in new["metadata"].items() if key != "managedFields"}
            managed = owners(old, new)
            new["metadata"] = kept | ({"managedFields": managed} if managed else {})
        if new != old and not dry_run:
            self._replace(key, new)
        return copied(new)

    def _controllers(self, resource: Resource, *, status: bool) -> Owners:
        """Return the owners for changes made in process: all controllers count as one manager."""
        manager = Manager("Update", CONTROLLERS, resource.api_version, "status" if status else "")
        return bookkeeping(Write.of(resource, manager, timestamp(self._clock())))

    def delete(
        self,
        plural: str,
        namespace: str | None,
        name: str,
        *,
        grace_seconds: int | None = None,
        propagation: str = "Background",
    ) -> Object:
        """Delete an object, or mark it as being deleted; return its current or last state.

        Finalizers, a bound pod's grace period, a namespace's contents and (Foreground) blocking dependents keep it,
        with a deletionTimestamp. A bound pod is removed by `grace_seconds=0`, which its kubelet sends.
        """
        key = Key(plural, namespace or "", name)
        old = self._stored(key)
        uid = old["metadata"]["uid"]
        waits = self._waits(old, propagation)
        new = self.rehearse_delete(plural, namespace, name, grace_seconds=grace_seconds, propagation=propagation)
        if propagation == "Orphan":
            self._orphan(uid)
        if plural == "namespaces":
            return self._delete_namespace(key, old, new)
        if new != old:
            self._replace(key, new)
        if waits:
            for dependent in self._ownership.dependents(uid):
                self._delete(dependent, propagation="Foreground")
            self._release_owner(uid)
        return copied(new)

    def rehearse_delete(
        self, plural: str, namespace: str | None, name: str, *, grace_seconds: int | None, propagation: str
    ) -> Object:
        """Return the object as `delete` would mark it, without storing it. Raise ApiError as `delete` does."""
        old = self._stored(Key(plural, namespace or "", name))
        deletion.check(RESOURCES[plural], old, propagation)
        grace = deletion.grace(plural, old, grace_seconds)
        waits = self._waits(old, propagation)
        return deletion.marked(copied(old), timestamp(self._clock()), grace, foreground=waits)

    def _waits(self, owner: Object, propagation: str) -> bool:
        return propagation == "Foreground" and bool(self._ownership.dependents(owner["metadata"]["uid"]))

    @property
    def version(self) -> int:
        """Return the latest resourceVersion."""
        return self._history.version

    async def changed(self, since: int) -> int:
        """Wait until the version is greater than `since`; return it."""
        return await self._history.changed(since)

    def changes(self, plural: str, since: int) -> Sequence[Change]:
        """Return the changes of a resource after `since`, oldest first. Raise ApiError 410 if they were compacted."""
        return self._history.since(plural, since)

    def expire_history(self) -> None:
        """Discard all changes so far: the effect of an etcd compaction on old watches."""
        self._history.compact()

    def _stored(self, key: Key) -> Object:
        found = self._objects[key.plural].get(key)
        if found is None:
            raise errors.not_found(key.plural, RESOURCES[key.plural].group, key.name)
        return found

    def _keep(self, key: Key, new: Object) -> None:
        self._objects[key.plural][key] = new
        self._uids[new["metadata"]["uid"]] = key
        self._ownership.note(key, new)
        if key.plural == "events":
            self._expiry.note(key, new["metadata"]["resourceVersion"], self._clock())
            self._expire()

    def _expire(self) -> None:
        """Remove the events that were not written for an hour."""
        for key, version in self._expiry.due(self._clock()):
            event = self._objects["events"].get(key)
            if event is not None and event["metadata"]["resourceVersion"] == version:
                self._remove(key, copied(event))

    def _replace(self, key: Key, new: Object) -> None:
        """Store the changed object, or remove it if its deletion was only waiting for this change."""
        if deletion.is_over(key.plural, new):
            self._remove(key, new)
            return
        self._history.record(key.plural, "MODIFIED", new, self._objects[key.plural][key])
        self._keep(key, new)

    def _remove(self, key: Key, last: Object) -> None:
        previous = self._objects[key.plural].pop(key)
        uid = last["metadata"]["uid"]
        del self._uids[uid]
        self._ownership.forget(key)
        self._history.record(key.plural, "DELETED", last, previous)
        for dependent in self._ownership.dependents(uid):
            self._collect(dependent, uid)
        for reference in references(previous):
            self._release_owner(reference["uid"])
        if key.namespace:
            self._settle_namespace(key.namespace)

    def _collect(self, key: Key, owner_uid: str) -> None:
        """Garbage-collect a dependent of a removed owner; one with other owners only loses the reference."""
        dependent = self._objects[key.plural].get(key)
        if dependent is None:
            return
        orphan = without_owner(dependent, owner_uid)
        if any(reference["uid"] in self._uids for reference in references(orphan)):
            self._replace(key, copied(orphan))
        else:
            self._delete(key)

    def _orphan(self, owner_uid: str) -> None:
        for key in self._ownership.dependents(owner_uid):
            self._replace(key, copied(without_owner(self._objects[key.plural][key], owner_uid)))

    def _delete(self, key: Key, propagation: str = "Background") -> None:
        current = self._objects[key.plural].get(key)
        if current is not None and "deletionTimestamp" not in current["metadata"]:
            self.delete(key.plural, key.namespace, key.name, propagation=propagation)

    def _release_owner(self, uid: str) -> None:
        """Remove the foreground finalizer of an owner once no dependent blocks its deletion any more."""
        key = self._uids.get(uid)
        if key is None:
            return
        owner = self._objects[key.plural][key]
        finalizers = owner["metadata"].get("finalizers", [])
        left = (self._objects[d.plural][d] for d in self._ownership.dependents(uid))
        if FOREGROUND in finalizers and not any(blocks(dependent, uid) for dependent in left):
            self._replace(key, deletion.without_finalizer(copied(owner), FOREGROUND))

    def _delete_namespace(self, key: Key, old: Object, new: Object) -> Object:
        new["status"] = {"phase": "Terminating"}
        if new != old:
            self._history.record(key.plural, "MODIFIED", new, old)
            self._keep(key, new)
        for plural in self._objects:
            for content in [k for k in self._objects[plural] if k.namespace == key.name]:
                self._delete(content)
        self._settle_namespace(key.name)
        return copied(new)

    def _settle_namespace(self, name: str) -> None:
        """Remove a terminating namespace once it is empty, as the namespace controller does."""
        key = Key("namespaces", "", name)
        found = self._objects["namespaces"].get(key)
        if found is None or "deletionTimestamp" not in found["metadata"]:
            return
        empty = not any(k.namespace == name for kept in self._objects.values() for k in kept)
        if empty and not found["metadata"].get("finalizers"):
            self._remove(key, copied(found))

"""The objects in memory, how they are deleted and collected as garbage (k8s.io/apiserver/pkg/registry)."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from itertools import takewhile
from typing import Any

import orjson

from tpu_standins.clients.objects import timestamp
from tpu_standins.embedded.store import errors
from tpu_standins.embedded.store.kinds import Key, Kind, Object, defined
from tpu_standins.embedded.store.table import BUILT_IN

FOREGROUND, ORPHAN, OWNERS = "foregroundDeletion", "orphan", "ownerReferences"
PERMANENT_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
PROPAGATIONS = ("Background", "Foreground", "Orphan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """What is asked of a deletion. An empty `propagation` is the kind's own; `grace_seconds` matter to pods only."""

    propagation: str = ""
    grace_seconds: int | None = None
    dry_run: bool = False


def marked(kind: Kind, old: Object, asked: Deletion, now: datetime) -> Object:
    """Return the object with what its deletion writes into it first; unchanged if it is simply removed.

    Pods and namespaces are always marked, others only if a finalizer holds them. Jobs orphan their pods by default.
    """
    metadata, finalizers = old["metadata"], list(old["metadata"].get("finalizers", []))
    propagation = asked.propagation or ("Orphan" if kind.id == "jobs" else "Background")
    own = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(propagation)
    finalizers += [own] if own and own not in finalizers else []
    if kind.id not in ("pods", "namespaces") and not finalizers:
        return old
    grace = _grace(old, asked) if kind.id == "pods" else 0
    pending = metadata.get("deletionGracePeriodSeconds")
    if "deletionTimestamp" in metadata and (not pending or grace >= pending):
        return old
    end = timestamp(now + timedelta(seconds=grace))
    new = metadata | {"deletionTimestamp": end, "deletionGracePeriodSeconds": grace}
    if "generation" in metadata and "deletionTimestamp" not in metadata:
        new["generation"] += 1
    return old | {"metadata": new | ({"finalizers": finalizers} if finalizers else {})}


def _grace(pod: Object, asked: Deletion) -> int:
    """Return the grace period in seconds: none unless the pod is running on a node."""
    if not pod["spec"].get("nodeName") or pod["status"].get("phase") in ("Succeeded", "Failed"):
        return 0
    seconds: int = pod["spec"]["terminationGracePeriodSeconds"] if asked.grace_seconds is None else asked.grace_seconds
    return seconds if seconds >= 0 else 1


def is_over(kind: Kind, obj: Object) -> bool:
    """Return whether nothing holds an object that is being deleted any more; namespaces wait for their content."""
    metadata = obj["metadata"]
    held = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
    return kind.id != "namespaces" and "deletionTimestamp" in metadata and not held


def owners(obj: Object) -> Iterator[dict[str, Any]]:
    yield from obj["metadata"].get("ownerReferences") or ()


def _without(obj: Object, field: str, gone: str) -> Object:
    """Return the object without a finalizer, or without the reference to the owner of this UID."""
    known = obj["metadata"].get(field, ())
    kept = [each for each in known if gone != (each["uid"] if field == OWNERS else each)]
    metadata = {key: value for key, value in obj["metadata"].items() if key != field}
    return obj | {"metadata": metadata | ({field: kept} if kept else {})}


_FIRST = 100  # the resourceVersion before the first change, as in a cluster that has been up
_DEFINITIONS = "customresourcedefinitions"
_PLAIN = Deletion()
_BACKGROUND = Deletion(propagation="Background")


@dataclass(frozen=True, kw_only=True)
class Change:
    """One change of one object: `type` is ADDED, MODIFIED, or DELETED with the last state. Neither dict changes."""

    version: int
    type: str
    object: Object
    previous: Object | None

    @cached_property
    def encoded(self) -> bytes:
        """Return the object as JSON, encoded once for all watches."""
        return orjson.dumps(self.object)


class Objects:
    """The store, for one event loop; other threads may read. A change replaces an object, it never modifies it."""

    def __init__(self, clock: Callable[[], datetime], window: int = 2000) -> None:
        self.kinds = dict(BUILT_IN)
        """By id: those of the table, and those that CustomResourceDefinitions define."""
        self.version = _FIRST
        """The latest resourceVersion."""
        self.listeners: list[Callable[[], None]] = []
        """Called after each change."""
        self._window = window
        self._changes: defaultdict[str, deque[Change]] = defaultdict(deque)
        self._compacted: defaultdict[str, int] = defaultdict(lambda: _FIRST)
        self._bell = asyncio.Event()
        self._clock = clock
        self._objects: defaultdict[str, dict[Key, Object]] = defaultdict(dict, {kind: {} for kind in self.kinds})
        self._keys: dict[str, Key] = {}
        self._dependents: defaultdict[str, dict[Key, None]] = defaultdict(dict)

    def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """Return the object, for reading only. Raise ApiError 404."""
        found = self.find(Key(kind.id, namespace if kind.namespaced else "", name))
        if found is None:
            raise errors.about(404, "NotFound", (kind.plural, kind.group, name), "%s not found")
        return found

    def find(self, key: Key) -> Object | None:
        return self._objects[key.kind].get(key)

    def stored(self, kind: Kind, namespace: str = "") -> Sequence[Object]:
        """Return the objects, for reading only, by namespace and name."""
        found = self._objects[kind.id].copy()
        return [found[key] for key in sorted(found) if namespace in ("", key.namespace)]

    def past(self, kind: Kind, version: int) -> Sequence[Object]:
        """Return the objects as they were, by undoing later changes. Raise ApiError 410 if those were compacted."""
        found = self._objects[kind.id].copy()
        for change in reversed(self.changes(kind, version)):
            if change.previous is None:
                del found[kind.key(change.object)]
            else:
                found[kind.key(change.object)] = change.previous
        return [found[key] for key in sorted(found)]

    def changes(self, kind: Kind, since: int) -> Sequence[Change]:
        """Return the changes after `since`, oldest first. Raise ApiError 410 if they were compacted."""
        if since < self._compacted[kind.id]:
            message = f"too old resource version: {since} ({self._compacted[kind.id]})"
            raise errors.ApiError(410, "Expired", message)
        newer = takewhile(lambda change: change.version > since, reversed(self._changes[kind.id]))
        return list(newer)[::-1]

    def ring(self) -> None:
        """Wake all who wait for a change."""
        bell, self._bell = self._bell, asyncio.Event()
        bell.set()
        for listener in self.listeners:
            listener()

    async def rung(self) -> None:
        """Wait for the next change, or the next call of `ring`."""
        await self._bell.wait()

    def add(self, kind: Kind, new: Object) -> Object:
        """Store a new object and return it; one whose owners are all gone is collected. Raise ApiError 409."""
        key = kind.key(new)
        if self.find(key) is not None:
            raise errors.about(409, "AlreadyExists", (kind.plural, kind.group, key.name), "%s already exists")
        stored = self._record("ADDED", kind, key, new)
        known = list(owners(stored))
        if known and not any(owner["uid"] in self._keys for owner in known):
            self.delete(kind, key.namespace, key.name, _BACKGROUND)
        return stored

    def put(self, kind: Kind, new: Object) -> Object:
        """Replace an object, or remove it if its deletion only waited for this; return it as it is or was last."""
        key = kind.key(new)
        old = self.get(kind, key.namespace, key.name)
        if new == old:
            return old
        if is_over(kind, new):
            self._remove(kind, key)
            return new
        stored = self._record("MODIFIED", kind, key, new)
        for owner in owners(stored):
            self._release(owner["uid"])
        return stored

    def delete(self, kind: Kind, namespace: str, name: str, asked: Deletion = _PLAIN) -> tuple[Object, bool]:
        """Delete an object, or mark it while something holds it; return it so, and whether nothing holds it."""
        old, is_namespace = self.get(kind, namespace, name), kind.id == "namespaces"
        if is_namespace and name in PERMANENT_NAMESPACES:
            raise errors.forbidden("namespaces", "", name, "this namespace may not be deleted")
        new, key = marked(kind, old, asked, self._clock()), kind.key(old)
        gone = not is_namespace and ("deletionTimestamp" not in new["metadata"] or is_over(kind, new))
        if asked.dry_run:
            return new, gone
        if is_namespace:
            new = new | {"status": new["status"] | {"phase": "Terminating"}}
        if new != old:
            new = self._record("MODIFIED", kind, key, new)
        if gone:
            self._remove(kind, key)
        elif is_namespace:
            self._empty(name)
        else:
            self._propagate(kind, key)
        return new, gone

    def _record(self, what: str, kind: Kind, key: Key, new: Object) -> Object:
        old, version, changes = self.find(key), self.version + 1, self._changes[kind.id]
        stored = new | {"metadata": new["metadata"] | {"resourceVersion": str(version)}}
        changes.append(Change(version=version, type=what, object=stored, previous=old))
        while len(changes) > self._window:  # older ones are compacted, as in etcd
            self._compacted[kind.id] = changes.popleft().version
        for owner in owners(old) if old else ():
            self._dependents[owner["uid"]].pop(key, None)
        if what == "DELETED":
            del self._objects[kind.id][key], self._keys[stored["metadata"]["uid"]]
        else:
            self._objects[kind.id][key] = stored
            self._keys[stored["metadata"]["uid"]] = key
            for owner in owners(stored):
                self._dependents[owner["uid"]][key] = None
            if kind.id == _DEFINITIONS:
                self.kinds[key.name] = defined(stored)
        self.version = version  # last: who reads it in another thread finds all that it counts
        self.ring()
        return stored

    def _remove(self, kind: Kind, key: Key) -> None:
        last = self._objects[kind.id][key]
        uid = last["metadata"]["uid"]
        self._record("DELETED", kind, key, last)
        for dependent in list(self._dependents.pop(uid, ())):
            self._collect(dependent, uid)
        for owner in owners(last):
            self._release(owner["uid"])
        if kind.id == _DEFINITIONS:
            for each in list(self._objects[key.name]):
                self.delete(self.kinds[key.name], each.namespace, each.name, _BACKGROUND)
            del self.kinds[key.name]
        self._settle(key.namespace)

    def _collect(self, key: Key, owner: str) -> None:
        """Delete a dependent of a removed owner; one with other owners only loses the reference."""
        kind, found = self.kinds[key.kind], self.find(key)
        if found is not None:
            orphan = _without(found, OWNERS, owner)
            if any(other["uid"] in self._keys for other in owners(orphan)):
                self.put(kind, orphan)
            elif "deletionTimestamp" not in found["metadata"]:
                self.delete(kind, key.namespace, key.name, _BACKGROUND)

    def _propagate(self, kind: Kind, key: Key) -> None:
        """Do what the garbage collector's own finalizers ask for, then remove them."""
        owner = self._objects[kind.id][key]
        uid, finalizers = owner["metadata"]["uid"], owner["metadata"].get("finalizers", ())
        for each in list(self._dependents[uid]):
            found, its_kind = self.find(each), self.kinds[each.kind]
            if found is not None and ORPHAN in finalizers:
                self.put(its_kind, _without(found, OWNERS, uid))
            elif found is not None and FOREGROUND in finalizers and "deletionTimestamp" not in found["metadata"]:
                owns = self._dependents[found["metadata"]["uid"]]
                how = Deletion(propagation="Foreground" if owns else "Background")
                self.delete(its_kind, each.namespace, each.name, how)
        if ORPHAN in finalizers:
            self.put(kind, _without(owner, "finalizers", ORPHAN))
        self._release(uid)

    def _release(self, uid: str) -> None:
        """Remove the foreground finalizer of an owner once no dependent blocks its deletion."""
        key = self._keys.get(uid)
        found = key and self.find(key)
        if not key or not found or FOREGROUND not in found["metadata"].get("finalizers", ()):
            return
        left = (self.find(each) for each in self._dependents[uid])
        blocking = (owner for obj in left if obj for owner in owners(obj) if owner["uid"] == uid)
        if not any(owner.get("blockOwnerDeletion") for owner in blocking):
            self.put(self.kinds[key.kind], _without(found, "finalizers", FOREGROUND))

    def _empty(self, namespace: str) -> None:
        for kind_id in list(self._objects):
            for key in [key for key in self._objects[kind_id] if key.namespace == namespace]:
                found = self.find(key)
                if found is not None and "deletionTimestamp" not in found["metadata"]:
                    self.delete(self.kinds[kind_id], namespace, key.name, _BACKGROUND)
        self._settle(namespace)

    def _settle(self, namespace: str) -> None:
        key = Key("namespaces", "", namespace)
        found = self.find(key)
        ending = found is not None and "deletionTimestamp" in found["metadata"]
        if ending and not any(each.namespace == namespace for kept in self._objects.values() for each in kept):
            self._remove(self.kinds["namespaces"], key)

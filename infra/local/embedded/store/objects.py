"""The objects in memory, with garbage collection: what etcd and the garbage collector are to kube-apiserver."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime

from infra.local.embedded.store import deletion, errors
from infra.local.embedded.store.deletion import FOREGROUND, ORPHAN, Deletion, is_over, owners
from infra.local.embedded.store.history import Change, ChangeType, History
from infra.local.embedded.store.kinds import Key, Kind, Object, defined
from infra.local.embedded.store.table import BUILT_IN

_DEFINITIONS = "customresourcedefinitions"
_PLAIN = Deletion()
_BACKGROUND = Deletion(propagation="Background")


class Objects:
    """The store, for one event loop; other threads may read. A change replaces an object, it never modifies it."""

    def __init__(self, clock: Callable[[], datetime], window: int = 2000) -> None:
        self.kinds = dict(BUILT_IN)
        """By id: those of the table, and those that CustomResourceDefinitions define."""
        self.history = History(window)
        self._clock = clock
        self._objects: defaultdict[str, dict[Key, Object]] = defaultdict(dict)
        self._keys: dict[str, Key] = {}
        self._dependents: defaultdict[str, dict[Key, None]] = defaultdict(dict)

    @property
    def version(self) -> int:
        """Return the latest resourceVersion."""
        return self.history.version

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
        return self.history.since(kind.id, since)

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
        """Delete an object, or mark it as being deleted; return it so, and whether nothing holds it. Raise ApiError.

        Finalizers, a bound pod's grace period and a namespace's content hold it.
        """
        old, is_namespace = self.get(kind, namespace, name), kind.id == "namespaces"
        if is_namespace and name in deletion.PERMANENT_NAMESPACES:
            raise errors.forbidden("namespaces", "", name, "this namespace may not be deleted")
        new, key = deletion.marked(kind, old, asked, self._clock()), kind.key(old)
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

    def _record(self, what: ChangeType, kind: Kind, key: Key, new: Object) -> Object:
        old = self.find(key)
        stored = self.history.record(kind.id, what, new, old)
        for owner in owners(old) if old else ():
            self._dependents[owner["uid"]].pop(key, None)
        if what != "DELETED":
            self._objects[kind.id][key] = stored
            self._keys[stored["metadata"]["uid"]] = key
            for owner in owners(stored):
                self._dependents[owner["uid"]][key] = None
            if kind.id == _DEFINITIONS:
                self.kinds[key.name] = defined(stored)
        return stored

    def _remove(self, kind: Kind, key: Key) -> None:
        last = self._objects[kind.id][key]
        uid = last["metadata"]["uid"]
        self._record("DELETED", kind, key, last)
        del self._objects[kind.id][key], self._keys[uid]
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
            orphan = deletion.without_owner(found, owner)
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
                self.put(its_kind, deletion.without_owner(found, uid))
            elif found is not None and FOREGROUND in finalizers and "deletionTimestamp" not in found["metadata"]:
                owns = self._dependents[found["metadata"]["uid"]]
                how = Deletion(propagation="Foreground" if owns else "Background")
                self.delete(its_kind, each.namespace, each.name, how)
        if ORPHAN in finalizers:
            self.put(kind, deletion.without_finalizer(owner, ORPHAN))
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
            self.put(self.kinds[key.kind], deletion.without_finalizer(found, FOREGROUND))

    def _empty(self, namespace: str) -> None:
        for kind_id in list(self._objects):
            for key in [key for key in self._objects[kind_id] if key.namespace == namespace]:
                found = self.find(key)
                if found is not None and "deletionTimestamp" not in found["metadata"]:
                    self.delete(self.kinds[kind_id], namespace, key.name, _BACKGROUND)
        self._settle(namespace)

    def _settle(self, namespace: str) -> None:
        """Remove a namespace that is being deleted once it is empty."""
        key = Key("namespaces", "", namespace)
        found = self.find(key)
        ending = found is not None and "deletionTimestamp" in found["metadata"]
        if ending and not any(each.namespace == namespace for kept in self._objects.values() for each in kept):
            self._remove(self.kinds["namespaces"], key)

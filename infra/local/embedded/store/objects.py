"""The objects in memory, with garbage collection: what etcd and the garbage collector are to kube-apiserver."""

from collections.abc import Callable, Sequence
from datetime import datetime

from infra.local.embedded.store import deletion, errors
from infra.local.embedded.store.catalog import DEFINITIONS, Catalog
from infra.local.embedded.store.deletion import FOREGROUND, ORPHAN, Deletion, is_over, owners
from infra.local.embedded.store.history import Change, ChangeType, History
from infra.local.embedded.store.kinds import Key, Kind, Object

_PLAIN = Deletion()
_BACKGROUND = Deletion(propagation="Background")


class Objects:
    """The store, for one event loop; other threads may read. A change replaces an object, it never modifies it."""

    def __init__(self, clock: Callable[[], datetime], window: int = 2000) -> None:
        self.catalog = Catalog()
        self.history = History(window)
        self._clock = clock
        self._objects: dict[str, dict[Key, Object]] = {}
        self._keys: dict[str, Key] = {}
        self._dependents: dict[str, dict[Key, None]] = {}

    @property
    def version(self) -> int:
        """Return the latest resourceVersion."""
        return self.history.version

    def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """Return the object, for reading only. Raise ApiError 404."""
        found = self.find(Key(kind.id, namespace if kind.namespaced else "", name))
        if found is None:
            raise errors.not_found(kind.plural, kind.group, name)
        return found

    def find(self, key: Key) -> Object | None:
        return self._objects.get(key.kind, {}).get(key)

    def stored(self, kind: Kind, namespace: str = "") -> Sequence[Object]:
        """Return the objects, for reading only, by namespace and name."""
        found = list(self._objects.get(kind.id, {}).items())
        return [obj for key, obj in sorted(found, key=_by_key) if namespace in ("", key.namespace)]

    def past(self, kind: Kind, version: int) -> Sequence[Object]:
        """Return the objects as they were, by undoing later changes. Raise ApiError 410 if those were compacted."""
        items = dict(self._objects.get(kind.id, {}))
        for change in reversed(self.history.since(kind.id, version)):
            key = kind.key(change.object)
            if change.previous is None:
                del items[key]
            else:
                items[key] = change.previous
        return [items[key] for key in sorted(items)]

    def changes(self, kind: Kind, since: int) -> Sequence[Change]:
        """Return the changes after `since`, oldest first. Raise ApiError 410 if they were compacted."""
        return self.history.since(kind.id, since)

    def add(self, kind: Kind, new: Object) -> Object:
        """Store a new object and return it. Raise ApiError 409.

        One all of whose owners are gone is collected at once.
        """
        key = kind.key(new)
        if self.find(key) is not None:
            raise errors.already_exists(kind.plural, kind.group, key.name)
        stored = self._record("ADDED", kind, key, new)
        if kind.id == DEFINITIONS:
            self.catalog.define(stored)
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
        if kind.id == DEFINITIONS:
            self.catalog.define(stored)
        if FOREGROUND not in stored["metadata"].get("finalizers", ()):
            for owner in owners(stored):
                self._release(owner["uid"])
        return stored

    def delete(self, kind: Kind, namespace: str, name: str, asked: Deletion = _PLAIN) -> tuple[Object, bool]:
        """Delete an object, or mark it as being deleted; return it so, and whether nothing holds it. Raise ApiError.

        Finalizers, a bound pod's grace period and a namespace's content hold it.
        """
        old = self.get(kind, namespace, name)
        if kind.id == "namespaces" and name in deletion.PERMANENT_NAMESPACES:
            raise errors.forbidden("namespaces", "", name, "this namespace may not be deleted")
        new = deletion.marked(kind, old, asked, self._clock())
        free = new is old and "deletionTimestamp" not in old["metadata"]
        gone = (free or is_over(kind, new)) and kind.id != "namespaces"
        if asked.dry_run:
            return new, gone
        key = kind.key(old)
        if kind.id == "namespaces":
            new = new | {"status": new["status"] | {"phase": "Terminating"}}
        if new != old:
            new = self._record("MODIFIED", kind, key, new)
        if gone:
            self._remove(kind, key)
        elif kind.id == "namespaces":
            self._empty(name)
        else:
            self._propagate(kind, key)
        return new, gone

    def _record(self, what: ChangeType, kind: Kind, key: Key, new: Object) -> Object:
        old = self.find(key)
        stored = self.history.record(kind.id, what, new, old)
        for owner in owners(old) if old else ():
            self._dependents.get(owner["uid"], {}).pop(key, None)
        if what == "DELETED":
            return stored
        self._objects.setdefault(kind.id, {})[key] = stored
        self._keys[stored["metadata"]["uid"]] = key
        for owner in owners(stored):
            self._dependents.setdefault(owner["uid"], {})[key] = None
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
        if kind.id == DEFINITIONS:
            self._undefine(last)
        self._settle(key.namespace)

    def _undefine(self, definition: Object) -> None:
        kind_id = definition["metadata"]["name"]
        for key in list(self._objects.get(kind_id, ())):
            self.delete(self.catalog.named(kind_id), key.namespace, key.name, _BACKGROUND)
        self.catalog.forget(definition)
        self._objects.pop(kind_id, None)

    def _collect(self, key: Key, owner: str) -> None:
        """Delete a dependent of a removed owner; one with other owners only loses the reference."""
        kind, found = self.catalog.named(key.kind), self.find(key)
        if found is None:
            return
        orphan = deletion.without_owner(found, owner)
        if any(other["uid"] in self._keys for other in owners(orphan)):
            self.put(kind, orphan)
        elif "deletionTimestamp" not in found["metadata"]:
            self.delete(kind, key.namespace, key.name, _BACKGROUND)

    def _propagate(self, kind: Kind, key: Key) -> None:
        """Do what the garbage collector's own finalizers ask for, then remove them."""
        found = self._objects[kind.id][key]
        uid, finalizers = found["metadata"]["uid"], found["metadata"].get("finalizers", ())
        dependents = [(each, self.find(each)) for each in self._dependents.get(uid, {})]
        for each, obj in dependents:
            its_kind = self.catalog.named(each.kind)
            if obj is not None and ORPHAN in finalizers:
                self.put(its_kind, deletion.without_owner(obj, uid))
            elif obj is not None and FOREGROUND in finalizers and "deletionTimestamp" not in obj["metadata"]:
                owns = self._dependents.get(obj["metadata"]["uid"])
                how = Deletion(propagation="Foreground" if owns else "Background")
                self.delete(its_kind, each.namespace, each.name, how)
        if ORPHAN in finalizers:
            self.put(kind, deletion.without_finalizer(found, ORPHAN))
        self._release(uid)

    def _release(self, uid: str) -> None:
        """Remove the foreground finalizer of an owner once no dependent blocks its deletion."""
        key = self._keys.get(uid)
        found = key and self.find(key)
        if not key or not found or FOREGROUND not in found["metadata"].get("finalizers", ()):
            return
        left = (self.find(each) for each in self._dependents.get(uid, {}))
        blocked = (owner for obj in left if obj for owner in owners(obj) if owner["uid"] == uid)
        if not any(owner.get("blockOwnerDeletion") for owner in blocked):
            self.put(self.catalog.named(key.kind), deletion.without_finalizer(found, FOREGROUND))

    def _empty(self, namespace: str) -> None:
        for kind_id, kept in list(self._objects.items()):
            for key in [key for key in kept if key.namespace == namespace]:
                found = self.find(key)
                if found is not None and "deletionTimestamp" not in found["metadata"]:
                    self.delete(self.catalog.named(kind_id), namespace, key.name, _BACKGROUND)
        self._settle(namespace)

    def _settle(self, namespace: str) -> None:
        """Remove a namespace that is being deleted once it is empty."""
        key = Key("namespaces", "", namespace)
        found = self.find(key)
        if found is None or "deletionTimestamp" not in found["metadata"] or found["metadata"].get("finalizers"):
            return
        if not any(each.namespace == namespace for kept in self._objects.values() for each in kept):
            self._remove(self.catalog.named("namespaces"), key)


def _by_key(item: tuple[Key, Object]) -> Key:
    return item[0]

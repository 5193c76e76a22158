"""Owner references: the index that the garbage collector uses, by the owner's UID."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from infra.local.cluster.resources import Resource

FOREGROUND = "foregroundDeletion"
"""metav1.FinalizerDeleteDependents"""


class Key(NamedTuple):
    """The key of an object; `namespace` is empty for cluster-scoped ones."""

    plural: str
    namespace: str
    name: str


def key_of(resource: Resource, obj: Mapping[str, Any]) -> Key:
    metadata = obj.get("metadata") or {}
    namespace = metadata.get("namespace", "") if resource.namespaced else ""
    return Key(resource.plural, namespace, metadata.get("name", ""))


class Ownership:
    def __init__(self) -> None:
        self._dependents: dict[str, dict[Key, None]] = {}
        self._owners: dict[Key, tuple[str, ...]] = {}

    def note(self, key: Key, obj: dict[str, Any]) -> None:
        """Record the current owner references of `obj`."""
        self.forget(key)
        uids = tuple(reference["uid"] for reference in references(obj))
        if uids:
            self._owners[key] = uids
        for uid in uids:
            self._dependents.setdefault(uid, {})[key] = None

    def forget(self, key: Key) -> None:
        for uid in self._owners.pop(key, ()):
            dependents = self._dependents[uid]
            del dependents[key]
            if not dependents:
                del self._dependents[uid]

    def dependents(self, uid: str) -> list[Key]:
        return list(self._dependents.get(uid, ()))


def references(obj: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from obj["metadata"].get("ownerReferences") or ()


def blocks(obj: dict[str, Any], owner_uid: str) -> bool:
    """Return whether a foreground deletion of the owner waits for this dependent."""
    return any(r["uid"] == owner_uid and r.get("blockOwnerDeletion", False) for r in references(obj))


def without_owner(obj: dict[str, Any], owner_uid: str) -> dict[str, Any]:
    """Return a copy without the owner reference to `owner_uid`."""
    kept = [r for r in references(obj) if r["uid"] != owner_uid]
    metadata = {k: v for k, v in obj["metadata"].items() if k != "ownerReferences"}
    return obj | {"metadata": metadata | ({"ownerReferences": kept} if kept else {})}

"""What is known of the objects of one kind, from a list, the events that follow it, and the answers to own writes.

An event or answer that is older than what is known changes nothing, so that an object never goes back.
resourceVersions of one server can be compared (Kubernetes API concepts, "Resource versions").
"""

from collections.abc import Iterable

from tpu_standins.clients.kinds import Kind
from tpu_standins.clients.objects import Object

Key = tuple[str, str]
"""Namespace, empty for objects of the cluster, and name."""


class WentBack(Exception):
    """An event is older than those before it: the server has lost what it had. The kind must be listed again."""


def version_of(obj: Object) -> int:
    return int(obj["metadata"].get("resourceVersion") or 0)


def key_of(obj: Object) -> Key:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


class Memory:
    """Not for several threads. Methods that change something return whether they did."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._objects: dict[Key, Object] = {}
        self._gone: set[str] = set()
        self.version = -1
        """Up to which the server's changes are known; -1 before the first list."""

    def get(self, namespace: str | None, name: str) -> Object | None:
        return self._objects.get((namespace or "", name))

    def all(self, namespace: str | None = None) -> list[Object]:
        """Return the objects, ordered by namespace and name."""
        return [self._objects[key] for key in sorted(self._objects) if not namespace or key[0] == namespace]

    def listed(self, items: Iterable[Object], version: int) -> bool:
        """Replace what is known by a list; own later writes are kept, unless the server has lost its history."""
        found = {obj["metadata"]["uid"]: self._whole(obj) for obj in items}
        before, later = self._objects, version >= self.version
        self._gone = self._gone & found.keys() if later else set()
        self._objects = {key_of(obj): obj for uid, obj in found.items() if uid not in self._gone}
        if later:
            self._objects |= {key: obj for key, obj in before.items() if version_of(obj) > version}
        self.version = version
        return self._objects != before

    def saw(self, change: str, obj: Object) -> bool:
        """Apply an event of the watch. Raises WentBack."""
        version = version_of(obj)
        if version < self.version:
            raise WentBack(f"{self._kind.plural} went back from version {self.version} to {version}")
        self.version = version
        if change == "BOOKMARK":
            return False
        if change == "DELETED":
            return self._lose(obj)
        return self._keep(obj)

    def wrote(self, obj: Object) -> bool:
        """Apply the answer to a write, unless the watch has passed it."""
        return version_of(obj) > self.version and self._keep(obj)

    def deleted(self, key: Key, answer: Object) -> bool:
        """Apply the answer to a deletion: the object as it waits for its end, or as it ended, or a Status with its UID.

        The watch may be ahead of the answer, and have shown another object of this name.
        """
        metadata = answer.get("metadata") or {}
        if "deletionTimestamp" in metadata and (
            metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
        ):
            return self.wrote(answer)
        known, uid = self._objects.get(key), metadata.get("uid") or (answer.get("details") or {}).get("uid")
        if known is None or known["metadata"]["uid"] != uid:
            return False
        del self._objects[key]
        self._gone.add(uid)
        return True

    def _whole(self, obj: Object) -> Object:
        """Return the object with its type, which lists leave out."""
        return {"apiVersion": self._kind.api, "kind": self._kind.name} | obj

    def _keep(self, obj: Object) -> bool:
        key = key_of(obj)
        known = self._objects.get(key)
        if obj["metadata"]["uid"] in self._gone or (known and version_of(known) >= version_of(obj)):
            return False
        self._objects[key] = self._whole(obj)
        return True

    def _lose(self, obj: Object) -> bool:
        self._gone.discard(obj["metadata"]["uid"])
        key = key_of(obj)
        known = self._objects.get(key)
        if known is None or known["metadata"]["uid"] != obj["metadata"]["uid"]:
            return False
        del self._objects[key]
        return True

"""A cluster in memory for controllers: it keeps objects and their versions, and refuses what a test wants refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tpu_standins.clients.errors import ApiError
from tpu_standins.clients.kinds import KINDS
from tpu_standins.clients.objects import Object, copied

START = datetime(2026, 1, 1, tzinfo=UTC)
Refusal = Callable[[str, str, Object], ApiError | None]


def never(_verb: str, _plural: str, _obj: Object) -> ApiError | None:
    return None


@dataclass
class FakeObjects:
    """Implements `Objects`. `refuses` sees each write first: the verb, the plural, and the object."""

    refuses: Refusal = never
    version: int = 0
    kept: dict[tuple[str, str, str], Object] = field(default_factory=dict)

    def stored(self, plural: str, namespace: str | None = None) -> Sequence[Object]:
        return [obj for key, obj in sorted(self.kept.items()) if key[0] == plural and namespace in (None, key[1])]

    def get(self, plural: str, namespace: str | None, name: str) -> Object:
        return copied(self._known(plural, namespace, name))

    def create(self, plural: str, obj: Object) -> Object:
        self._allow("create", plural, obj)
        kind, metadata = KINDS[plural], obj["metadata"]
        namespace = metadata.get("namespace", "default") if kind.namespaced else ""
        key = (plural, namespace, metadata["name"])
        if key in self.kept:
            raise ApiError(409, "AlreadyExists", f'{plural} "{metadata["name"]}" already exists')
        own = {"uid": f"uid-{self.version + 1}", **({"namespace": namespace} if namespace else {})}
        return self._keep(key, {"apiVersion": kind.api, "kind": kind.name} | obj | {"metadata": metadata | own})

    def update(self, plural: str, obj: Object, *, status: bool = False) -> Object:
        self._allow("update", plural, obj)
        metadata = obj["metadata"]
        old = self._known(plural, metadata.get("namespace"), metadata["name"])
        if metadata.get("resourceVersion", old["metadata"]["resourceVersion"]) != old["metadata"]["resourceVersion"]:
            raise ApiError(409, "Conflict", "the object has been modified")
        new = old | {"status": obj["status"]} if status else obj | {"status": old.get("status", {})}
        return self._keep((plural, metadata.get("namespace", ""), metadata["name"]), new)

    def patch(self, plural: str, namespace: str | None, name: str, change: Object, *, status: bool = False) -> Object:
        self._allow("patch", plural, change)
        old = self._known(plural, namespace, name)
        parts = {key: value for key, value in change.items() if (key == "status") == status}
        changed = {key: {**old.get(key, {}), **value} for key, value in parts.items()}
        return self._keep((plural, namespace or "", name), old | changed)

    def delete(
        self,
        plural: str,
        namespace: str | None,
        name: str,
        *,
        grace_seconds: int | None = None,
        propagation: str = "Background",
    ) -> None:
        """Remove it with what it owns; a bound pod is only marked, unless it is to go at once."""
        self._allow("delete", plural, {"propagation": propagation})
        old = self._known(plural, namespace, name)
        key = (plural, namespace or "", name)
        if plural == "pods" and old.get("spec", {}).get("nodeName") and grace_seconds != 0:
            marks = {"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30}
            self._keep(key, old | {"metadata": old["metadata"] | marks})
            return
        del self.kept[key]
        self.version += 1
        for owned in [k for k, obj in self.kept.items() if old["metadata"]["uid"] in _owners(obj)]:
            del self.kept[owned]

    def names(self, plural: str) -> list[str]:
        return [obj["metadata"]["name"] for obj in self.stored(plural)]

    def _allow(self, verb: str, plural: str, obj: Object) -> None:
        refusal = self.refuses(verb, plural, obj)
        if refusal is not None:
            raise refusal

    def _known(self, plural: str, namespace: str | None, name: str) -> Object:
        found = self.kept.get((plural, namespace or "", name))
        if found is None:
            raise ApiError(404, "NotFound", f'{plural} "{name}" not found')
        return found

    def _keep(self, key: tuple[str, str, str], obj: Object) -> Object:
        self.version += 1
        new = copied(obj)
        new["metadata"]["resourceVersion"] = str(self.version)
        self.kept[key] = new
        return copied(new)


def _owners(obj: Object) -> list[str]:
    return [reference["uid"] for reference in obj["metadata"].get("ownerReferences", [])]

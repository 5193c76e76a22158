"""The kinds that are served: those of the table, and those that CustomResourceDefinitions define."""

from collections.abc import Sequence

from infra.local.embedded.store.columns import Column, columns
from infra.local.embedded.store.kinds import Kind, Object
from infra.local.embedded.store.table import BUILT_IN

DEFINITIONS = "customresourcedefinitions"


class Catalog:
    def __init__(self) -> None:
        self._kinds = dict(BUILT_IN)

    def named(self, kind_id: str) -> Kind:
        """Return the kind of that id. Raise KeyError."""
        return self._kinds[kind_id]

    def all(self) -> Sequence[Kind]:
        return list(self._kinds.values())

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        served = (kind for kind in self.all() if (kind.group, kind.version, kind.plural) == (group, version, plural))
        return next(served, None)

    def define(self, definition: Object) -> None:
        """Serve, or serve differently, the storage version of a CustomResourceDefinition."""
        kind = defined(definition)
        self._kinds[kind.id] = kind

    def forget(self, definition: Object) -> None:
        self._kinds.pop(defined(definition).id, None)


def defined(definition: Object) -> Kind:
    """Return the kind that a CustomResourceDefinition defines (pure)."""
    spec, names = definition["spec"], definition["spec"]["names"]
    version = next(each for each in spec["versions"] if each["storage"])
    extra = tuple(
        Column(each["name"], each["jsonPath"], each.get("priority", 0), each.get("type", "string"))
        for each in version.get("additionalPrinterColumns", [])
    )
    return Kind(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        kind=names["kind"],
        singular=names["singular"],
        short=tuple(names.get("shortNames", ())),
        categories=tuple(names.get("categories", ())),
        namespaced=spec["scope"] == "Namespaced",
        status="status" in version.get("subresources", {}),
        generation=True,
        custom=True,
        needs_version=True,
        columns=(*columns("Name"), *(extra or columns("Age"))),
    )

"""What is known of a kind, and of those that CustomResourceDefinitions define (pure)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tpu_standins.embedded.store.columns import Column, Computed, columns
from tpu_standins.embedded.store.errors import FieldError, qualified
from tpu_standins.embedded.store.labels import Rule, is_subdomain

Object = dict[str, Any]
"""A Kubernetes object as JSON."""


class Key(NamedTuple):
    """Where an object is; `namespace` is empty for kinds without namespaces."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One row of the table of kinds; names are as in discovery.

    `status`: it is written only through the subresource. `first_status`: that of a new object; None keeps the
    request's. `generation`: metadata.generation counts changes of the spec. `unchecked`: it is defined with rules in
    CEL, which nobody checks here. `answers_deleted`: DELETE answers the object, else a Status. `needs_version`: a PUT
    must name a resourceVersion. `put_creates`: PUT creates what is not there. `subresources`: those beyond status.
    `fields`: what field selectors may name beyond the name.
    """

    group: str = ""
    version: str = "v1"
    plural: str
    kind: str
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    namespaced: bool = True
    status: bool = False
    first_status: Mapping[str, Any] | None = None
    generation: bool = False
    custom: bool = False
    unchecked: bool = False
    answers_deleted: bool = False
    needs_version: bool = False
    put_creates: bool = False
    subresources: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    columns: tuple[Column, ...] = columns("Name, Age")
    computed: Computed = lambda _, __: {}
    is_name: Rule = is_subdomain
    defaults: Callable[[Object], None] = lambda _: None
    rules: Callable[[Object], Iterable[FieldError]] = lambda _: ()
    update_rules: Callable[[Object, Object], Iterable[FieldError]] = lambda _, __: ()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def id(self) -> str:
        """Return the name under which its objects are kept: the plural, with the group of custom kinds."""
        return qualified(self.plural, self.group) if self.custom else self.plural

    def key(self, obj: Mapping[str, Any]) -> Key:
        metadata = obj.get("metadata") or {}
        return Key(self.id, metadata.get("namespace", "") if self.namespaced else "", metadata.get("name", ""))


def defined(definition: Object) -> Kind:
    """Return the kind that a CustomResourceDefinition defines, in its storage version."""
    spec, names = definition["spec"], definition["spec"]["names"]
    version = next(each for each in spec["versions"] if each["storage"])
    shown = [
        Column(each["name"], each["jsonPath"], each.get("priority", 0), each.get("type", "string"))
        for each in version.get("additionalPrinterColumns", [])
    ]
    return Kind(
        group=spec["group"], version=version["name"], plural=names["plural"], kind=names["kind"],
        short=tuple(names.get("shortNames", ())), categories=tuple(names.get("categories", ())),
        namespaced=spec["scope"] == "Namespaced", status="status" in version.get("subresources", {}), generation=True,
        custom=True, unchecked="x-kubernetes-validations" in str(version.get("schema")), needs_version=True,
        columns=(*columns("Name"), *(shown or columns("Age"))),
    )  # fmt: skip

"""What is known of a kind (pure)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from infra.local.embedded.store.columns import Column, Computed, columns, nothing_computed
from infra.local.embedded.store.errors import FieldError, qualified
from infra.local.embedded.store.names import Rule, is_subdomain

Object = dict[str, Any]
"""A Kubernetes object as JSON."""


class Key(NamedTuple):
    """Where an object is; `namespace` is empty for kinds without namespaces."""

    kind: str
    namespace: str
    name: str


def no_defaults(_: Object) -> None:
    """Leave the object as it is."""


def no_rules(_: Object) -> Iterable[FieldError]:
    return ()


def no_update_rules(_: Object, __: Object) -> Iterable[FieldError]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One row of the table of kinds; `group`, `version` and `names` are as in discovery.

    `status`: its status is written only through the subresource. `first_status`: the status of a new object, whatever
    the request has; None keeps what the request has. `generation`: metadata.generation counts changes of the spec.
    `custom`: defined by a CustomResourceDefinition. `answers_deleted`: DELETE answers the object, else a Status.
    `needs_version`: an update must name a resourceVersion. `put_creates`: PUT creates what is not there.
    `subresources`: those beyond status. `fields`: what field selectors may name beyond name and namespace.
    """

    group: str = ""
    version: str = "v1"
    plural: str
    kind: str
    singular: str = ""
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    namespaced: bool = True
    status: bool = False
    first_status: Mapping[str, Any] | None = None
    generation: bool = False
    custom: bool = False
    answers_deleted: bool = False
    needs_version: bool = False
    put_creates: bool = False
    subresources: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    columns: tuple[Column, ...] = field(default_factory=lambda: columns("Name, Age"))
    computed: Computed = nothing_computed
    is_name: Rule = is_subdomain
    defaults: Callable[[Object], None] = no_defaults
    rules: Callable[[Object], Iterable[FieldError]] = no_rules
    update_rules: Callable[[Object, Object], Iterable[FieldError]] = no_update_rules

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def id(self) -> str:
        """Return the name under which its objects are kept: the plural, with the group of custom kinds."""
        return qualified(self.plural, self.group) if self.custom else self.plural

    def key(self, obj: Mapping[str, Any]) -> Key:
        metadata = obj.get("metadata") or {}
        namespace = metadata.get("namespace", "") if self.namespaced else ""
        return Key(self.id, namespace, metadata.get("name", ""))

"""How values of a type are divided into fields that are owned separately (pure).

The part of structured-merge-diff's schema (sigs.k8s.io/structured-merge-diff) that the served kinds use.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import orjson

from infra.local.cluster import topology
from infra.local.cluster.shapes import Type, shape

Element = str
"""A step of a path as in fieldsV1: `f:name`, `k:{"name":"main"}`, `v:"text"`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The ownership rule of a value.

    `leaf`: owned as a whole. `struct`: by the fields of shape `name`. `map`: by key. `keyed`: by item, identified by
    `keys`. `set`: by item, identified by itself. `element`: the rule of a map's or list's values.
    """

    form: Literal["leaf", "struct", "map", "keyed", "set"]
    name: str = ""
    keys: tuple[str, ...] = ()
    element: "Rule | None" = None

    @property
    def is_list(self) -> bool:
        return self.form in ("keyed", "set")


LEAF = Rule(form="leaf")


def struct(name: str) -> Rule:
    return Rule(form="struct", name=name)


@cache
def rule(kind: Type, where: str = "") -> Rule:
    """Return the rule of a type; `where` is the field of this type, as `Shape.field`."""
    if where in topology.ATOMIC:
        return LEAF
    match kind.form:
        case "object" if kind.name not in topology.ATOMIC or where in topology.SEPARABLE:
            return struct(kind.name)
        case "map" if kind.element:
            return Rule(form="map", element=rule(kind.element))
        case "list" if kind.element and where in topology.KEYED_LISTS:
            return Rule(form="keyed", keys=topology.KEYED_LISTS[where], element=rule(kind.element))
        case "list" if where in topology.SETS:
            return Rule(form="set", element=LEAF)
        case _:
            return LEAF


def field(owner: Rule, key: str) -> Rule | None:
    """Return the rule of a field of a struct or map; None if a struct has no such field."""
    if owner.form == "map":
        return owner.element
    known = shape(owner.name).get(key)
    return rule(known.type, f"{owner.name}.{key}") if known else None


def children(owner: Rule, value: Any) -> Iterator[tuple[Element, Rule, Any]]:
    """Yield the parts of a value, each with its step and rule; nothing for a leaf or a value of another type."""
    if owner.form in ("struct", "map") and isinstance(value, dict):
        yield from ((f"f:{key}", field(owner, key) or LEAF, item) for key, item in value.items())
    elif owner.is_list and isinstance(value, list):
        yield from ((identity(owner, item), owner.element or LEAF, item) for item in value)


def identity(owner: Rule, item: Any) -> Element:
    """Return the path element of a list item: its keys, or its value."""
    if owner.form == "set" or not isinstance(item, dict):
        return "v:" + orjson.dumps(item).decode()
    keys = {key: item.get(key, topology.KEY_DEFAULTS.get(key)) for key in owner.keys}
    named = {key: value for key, value in keys.items() if value is not None}
    return "k:" + orjson.dumps(named, option=orjson.OPT_SORT_KEYS).decode()

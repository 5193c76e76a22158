"""The label and field selectors of a request as one predicate (pure)."""

import re
from collections.abc import Callable

from infra.local.embedded.http.requests import Request
from infra.local.embedded.store import errors
from infra.local.embedded.store.columns import at
from infra.local.embedded.store.kinds import Kind, Object
from infra.local.embedded.store.labels import meets, parsed

Predicate = Callable[[Object], bool]

_TERM = re.compile(r"^(?P<key>[^\s=!,]+)\s*(?P<operator>==|=|!=)\s*(?P<value>[^\s=!,]*)$")


def selection(kind: Kind, request: Request) -> Predicate:
    """Return the predicate. Raise ApiError 400 if a selector is malformed or names an unsupported field."""
    requirements = parsed(request.params.get("labelSelector", ""))
    wanted = _fields(kind, request.params.get("fieldSelector", ""))
    if request.name:
        wanted.append(("metadata.name", True, request.name))
    namespace = request.namespace if kind.namespaced else ""

    def matches(obj: Object) -> bool:
        metadata = obj["metadata"]
        if namespace and metadata["namespace"] != namespace:
            return False
        labels = metadata.get("labels") or {}
        return all(meets(labels, each) for each in requirements) and all(
            (_text(obj, path) == value) is equal for path, equal, value in wanted
        )

    return matches


def _fields(kind: Kind, selector: str) -> list[tuple[str, bool, str]]:
    wanted = []
    for part in filter(None, selector.split(",")):
        found = _TERM.match(part)
        if not found:
            raise errors.bad_request(f"invalid selector: '{selector}'; can't understand '{part}'")
        if found["key"] not in ("metadata.name", "metadata.namespace", *kind.fields):
            raise errors.bad_request(f"field label not supported: {found['key']}")
        wanted.append((found["key"], found["operator"] != "!=", found["value"]))
    return wanted


def _text(obj: Object, path: str) -> str:
    """Return a field as selectors compare it: a string, empty if absent."""
    value = at(obj, f".{path}")
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)

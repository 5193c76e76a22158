"""Matching of labels: metav1.LabelSelector, node selectors, and the selectors of requests (pure)."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from infra.local.embedded.store import errors

Labels = Mapping[str, str]

_SEPARATOR = re.compile(r",(?![^()]*\))")
_EQUALITY = re.compile(r"^(?P<key>[^\s=!,]+)\s*(?P<operator>==|=|!=)\s*(?P<value>[^\s=!,]*)$")
_SET = re.compile(r"^(?P<key>[^\s=!,]+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)$")
_EXISTS = re.compile(r"^(?P<absent>!?)\s*(?P<key>[^\s=!,()]+)$")


def meets(labels: Labels, requirement: Mapping[str, Any]) -> bool:
    """Return whether labels meet one of matchExpressions. A missing key satisfies only NotIn and DoesNotExist.

    Raise ValueError for an unknown operator.
    """
    value, values = labels.get(requirement["key"]), requirement.get("values") or ()
    match requirement["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            if value is None or not value.lstrip("-").isdigit():
                return False
            return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])
        case unknown:
            raise ValueError(f"no selector operator: {unknown}")


def selects(selector: Mapping[str, Any] | None, labels: Labels) -> bool:
    """Return whether a metav1.LabelSelector matches: null matches nothing, an empty one everything."""
    if selector is None:
        return False
    exact = (selector.get("matchLabels") or {}).items()
    return all(labels.get(key) == value for key, value in exact) and all(
        meets(labels, requirement) for requirement in selector.get("matchExpressions") or ()
    )


def parsed(selector: str) -> Sequence[Mapping[str, Any]]:
    """Parse the labelSelector of a request, `a=b,c!=d,e in (f,g),h notin (i),j,!k`. Raise ApiError 400."""
    parts = [part.strip() for part in _SEPARATOR.split(selector)] if selector.strip() else []
    return [_requirement(part) for part in parts]


def _requirement(part: str) -> Mapping[str, Any]:
    if found := _EQUALITY.match(part):
        operator = "NotIn" if found["operator"] == "!=" else "In"
        return {"key": found["key"], "operator": operator, "values": [found["value"]]}
    if found := _SET.match(part):
        values = [value.strip() for value in found["values"].split(",")]
        return {"key": found["key"], "operator": "In" if found["operator"] == "in" else "NotIn", "values": values}
    if found := _EXISTS.match(part):
        return {"key": found["key"], "operator": "DoesNotExist" if found["absent"] else "Exists"}
    raise errors.bad_request(f"unable to parse requirement: found '{part}'")

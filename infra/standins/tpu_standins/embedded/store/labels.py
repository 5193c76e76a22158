"""Names and labels: what they must be, and how selectors match them (apimachinery pkg/util/validation; pure)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tpu_standins.embedded.store import errors
from tpu_standins.embedded.store.errors import FieldError, wrong

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_MAX_ANNOTATIONS_BYTES = 256 * 1024

Rule = Callable[[str], list[str]]


def _rule(what: str, pattern: str, limit: int) -> Rule:
    def check(value: str) -> list[str]:
        why = f"{what} must match (regex used for validation is '{pattern}')"
        found = [] if re.fullmatch(pattern, value) else [why]
        return found + ([f"must be no more than {limit} bytes"] if len(value) > limit else [])

    return check


is_subdomain = _rule("a lowercase RFC 1123 subdomain", rf"{_LABEL}(\.{_LABEL})*", 253)
is_label = _rule("a lowercase RFC 1123 label", _LABEL, 63)
is_service_name = _rule("a DNS-1035 label", "[a-z]([-a-z0-9]*[a-z0-9])?", 63)
is_path_segment = _rule("a path segment", "[^/%]+", 253)
_is_name_part = _rule("name part", _QUALIFIED, 63)
_is_label_value = _rule("a valid label", f"({_QUALIFIED})?", 63)


def is_qualified_name(value: str) -> list[str]:
    """Return the errors of a label's key: an optional subdomain and slash, then a name."""
    prefix, slash, name = value.rpartition("/")
    return [*(f"prefix part {text}" for text in (is_subdomain(prefix) if slash else [])), *_is_name_part(name)]


def label_errors(labels: Mapping[str, str], path: str) -> Iterator[FieldError]:
    for key, value in labels.items():
        yield from (wrong(path, key, why) for why in (*is_qualified_name(key), *_is_label_value(value)))


def annotation_errors(annotations: Mapping[str, str], path: str) -> Iterator[FieldError]:
    yield from (wrong(path, key, why) for key in annotations for why in is_qualified_name(key.lower()))
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > _MAX_ANNOTATIONS_BYTES:
        yield FieldError(path, "FieldValueTooLong", f"Too long: may not be more than {_MAX_ANNOTATIONS_BYTES} bytes")


Labels = Mapping[str, str]

_SEPARATOR = re.compile(r",(?![^()]*\))")
EQUALITY = re.compile(r"^(?P<key>[^\s=!,]+)\s*(?P<operator>==|=|!=)\s*(?P<value>[^\s=!,]*)$")
_SET = re.compile(r"^(?P<key>[^\s=!,]+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)$")
_EXISTS = re.compile(r"^(?P<absent>!?)\s*(?P<key>[^\s=!,()]+)$")


def meets(labels: Labels, requirement: Mapping[str, Any]) -> bool:
    """Return whether labels meet one of matchExpressions; a missing key satisfies only NotIn and DoesNotExist."""
    value, values = labels.get(requirement["key"]), requirement.get("values") or ()
    simple = {"In": value in values, "NotIn": value not in values, "Exists": value is not None}
    simple["DoesNotExist"] = value is None
    return bool(simple[requirement["operator"]])


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
    if found := EQUALITY.match(part):
        operator = "NotIn" if found["operator"] == "!=" else "In"
        return {"key": found["key"], "operator": operator, "values": [found["value"]]}
    if found := _SET.match(part):
        values = [value.strip() for value in found["values"].split(",")]
        return {"key": found["key"], "operator": "In" if found["operator"] == "in" else "NotIn", "values": values}
    if found := _EXISTS.match(part):
        return {"key": found["key"], "operator": "DoesNotExist" if found["absent"] else "Exists"}
    raise errors.bad_request(f"unable to parse requirement: found '{part}'")

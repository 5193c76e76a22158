"""Names, labels and annotations (k8s.io/apimachinery/pkg/util/validation and api/validation; pure)."""

import re
from collections.abc import Callable, Iterator, Mapping

from infra.local.embedded.store.errors import FieldError, wrong

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_MAX_ANNOTATIONS_BYTES = 256 * 1024

Rule = Callable[[str], list[str]]


def _rule(what: str, pattern: str, limit: int) -> Rule:
    def check(value: str) -> list[str]:
        found = (
            [] if re.fullmatch(pattern, value) else [f"{what} must match (regex used for validation is '{pattern}')"]
        )
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

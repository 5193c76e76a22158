"""Names, labels and annotations: `k8s.io/apimachinery/pkg/util/validation` and `api/validation` (pure)."""

import re
from collections.abc import Mapping
from typing import Any

from infra.local.cluster.errors import FieldError

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"
_MAX_ANNOTATIONS_BYTES = 256 * 1024


def _regex(rule: str, example: str, pattern: str) -> str:
    return f"{rule} (e.g. {example}, regex used for validation is '{pattern}')"


def is_dns_subdomain(value: str) -> list[str]:
    """Return the errors of an RFC 1123 subdomain."""
    wrong = ["must be no more than 253 characters"] if len(value) > 253 else []
    if not re.fullmatch(_SUBDOMAIN, value):
        rule = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            "and must start and end with an alphanumeric character"
        )
        wrong.append(_regex(rule, "'example.com'", _SUBDOMAIN))
    return wrong


def is_dns_label(value: str) -> list[str]:
    """Return the errors of an RFC 1123 label."""
    wrong = ["must be no more than 63 characters"] if len(value) > 63 else []
    if not re.fullmatch(_LABEL, value):
        rule = (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
            "and must start and end with an alphanumeric character"
        )
        wrong.append(_regex(rule, "'my-name',  or '123-abc'", _LABEL))
    return wrong


def is_dns_1035_label(value: str) -> list[str]:
    """Return the errors of an RFC 1035 label."""
    wrong = ["must be no more than 63 characters"] if len(value) > 63 else []
    if not re.fullmatch(_LABEL_1035, value):
        rule = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
            "start with an alphabetic character, and end with an alphanumeric character"
        )
        wrong.append(_regex(rule, "'my-name',  or 'abc-123'", _LABEL_1035))
    return wrong


def is_qualified_name(value: str) -> list[str]:
    """Return the errors of a label's key: an optional subdomain and slash, then a name of up to 63 characters."""
    prefix, slash, name = value.rpartition("/")
    wrong = []
    if slash:
        wrong += [f"prefix part {text}" for text in is_dns_subdomain(prefix)]
    if len(name) > 63:
        wrong.append("name part must be no more than 63 characters")
    if not re.fullmatch(_QUALIFIED, name):
        rule = (
            "name part must consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character"
        )
        wrong.append(_regex(rule, "'MyName',  or 'my.name',  or '123-abc'", _QUALIFIED))
    return wrong


def is_label_value(value: str) -> list[str]:
    """Return the errors of a label's value."""
    wrong = ["must be no more than 63 characters"] if len(value) > 63 else []
    if not re.fullmatch(_LABEL_VALUE, value):
        rule = (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character"
        )
        wrong.append(_regex(rule, "'MyValue',  or 'my_value',  or '12345'", _LABEL_VALUE))
    return wrong


def invalid_value(path: str, value: Any, why: str) -> FieldError:
    shown = f'"{value}"' if isinstance(value, str) else value
    return FieldError(path, "FieldValueInvalid", f"Invalid value: {shown}: {why}")


def label_errors(labels: Mapping[str, str], path: str) -> list[FieldError]:
    found = []
    for key, value in labels.items():
        found += [invalid_value(path, key, why) for why in is_qualified_name(key)]
        found += [invalid_value(path, value, why) for why in is_label_value(value)]
    return found


def annotation_errors(annotations: Mapping[str, str], path: str) -> list[FieldError]:
    found = [invalid_value(path, key, why) for key in annotations for why in is_qualified_name(key.lower())]
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > _MAX_ANNOTATIONS_BYTES:
        message = f"Too long: may not be more than {_MAX_ANNOTATIONS_BYTES} bytes"
        found.append(FieldError(path, "FieldValueTooLong", message))
    return found

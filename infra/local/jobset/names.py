"""Names and label values, judged as `k8s.io/apimachinery/pkg/util/validation` does (pure)."""

import re

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_VALUE = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
TOO_LONG = "must be no more than 63 characters"


def subdomain_errors(value: str) -> list[str]:
    """Return the errors of an RFC 1123 subdomain."""
    rule = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
        "and must start and end with an alphanumeric character"
    )
    wrong = ["must be no more than 253 characters"] if len(value) > 253 else []
    return [*wrong, *_unless(_SUBDOMAIN, value, rule, "'example.com'")]


def label_1035_errors(value: str) -> list[str]:
    """Return the errors of an RFC 1035 label."""
    rule = (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
        "start with an alphabetic character, and end with an alphanumeric character"
    )
    wrong = [TOO_LONG] if len(value) > 63 else []
    return [*wrong, *_unless(_LABEL_1035, value, rule, "'my-name',  or 'abc-123'")]


def label_value_errors(value: str) -> list[str]:
    """Return the errors of a label's value."""
    rule = (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
        "and must start and end with an alphanumeric character"
    )
    wrong = [TOO_LONG] if len(value) > 63 else []
    return [*wrong, *_unless(_LABEL_VALUE, value, rule, "'MyValue',  or 'my_value',  or '12345'")]


def _unless(pattern: str, value: str, rule: str, example: str) -> list[str]:
    if re.fullmatch(pattern, value):
        return []
    return [f"{rule} (e.g. {example}, regex used for validation is '{pattern}')"]

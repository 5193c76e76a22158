"""What names and labels of Google Cloud's resources may be, and how VMs are named."""

import re
import string
from collections.abc import Mapping

MOST_LABELS = 64
"""Of a resource [doc:compute/labeling-resources]."""
_RFC1035 = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_LABEL_KEY = re.compile(r"[a-z][-_a-z0-9]{0,62}")
_LABEL_VALUE = re.compile(r"[-_a-z0-9]{0,63}")
_ALPHABET = string.digits + string.ascii_lowercase
_SUFFIXES = len(_ALPHABET) ** 4


def is_name(text: str) -> bool:
    """Return whether it is 1 to 63 characters of RFC 1035, as names and network tags must be [py-gce]."""
    return _RFC1035.fullmatch(text) is not None


def wrong_label(labels: Mapping[str, str]) -> str | None:
    """Return `KEY=VALUE` of the first label that no resource may have [doc:compute/labeling-resources]."""
    for key, value in labels.items():
        if not (_LABEL_KEY.fullmatch(key) and _LABEL_VALUE.fullmatch(value)):
            return f"{key}={value}"
    return None


def suffix(first: int, index: int, step: int) -> str:
    """Return four characters, different for each index if `step` is coprime to 36 ** 4."""
    number, characters = (first + index * step) % _SUFFIXES, ""
    for _ in range(4):
        number, digit = divmod(number, len(_ALPHABET))
        characters = _ALPHABET[digit] + characters
    return characters

"""Exact resource quantities, and the form in which Go writes them: k8s.io/apimachinery/pkg/api/resource (pure)."""

import re
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any, NamedTuple

Amounts = Mapping[str, int]
"""Resource name → amount in billionths, the smallest unit of a quantity: cores, bytes, chips, pods."""

ONE = 10**9
_WRITTEN = re.compile(r"([+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40}))(?:[eE]([+-]?\d{1,2})|([numkMGTPE]|[KMGTPE]i))?")
"""With bounded length and exponent, so that 1e999999999 is not computed."""
_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_UNIT = _DECIMAL.index("")


class _Written(NamedTuple):
    """A quantity's value, and how it was written."""

    value: Fraction
    exponential: bool
    binary: bool


def _parsed(text: str | float) -> _Written:
    found = _WRITTEN.fullmatch(str(text))
    if found is None:
        raise ValueError(f"not a quantity: {str(text)[:60]!r}")
    number, exponent, suffix = found.groups()
    if suffix in _BINARY[1:]:
        return _Written(Fraction(number) * 1024 ** _BINARY.index(suffix), exponential=False, binary=True)
    power = int(exponent) if exponent else 3 * (_DECIMAL.index(suffix or "") - _UNIT)
    return _Written(Fraction(number) * Fraction(10) ** power, exponential=exponent is not None, binary=False)


@lru_cache(maxsize=1024)
def quantity(text: str | float) -> int:
    """Parse "4", "500m", "16Gi", "1e3" as billionths, rounded up. Raise ValueError for anything else."""
    return ceil(_parsed(text).value * ONE)


@lru_cache(maxsize=1024)
def canonical(text: str | float) -> str:
    """Return the quantity without a fraction, in the largest unit of its own kind in which it has none.

    Less than a billionth is rounded up. Raise ValueError if it is not a quantity.
    """
    value, exponential, binary = _parsed(text)
    if binary and value.denominator == 1 and abs(value) >= 1024:
        return _in_units(value, 1024, _BINARY)
    units = tuple(f"e{3 * (each - _UNIT)}" if each != _UNIT else "" for each in range(len(_DECIMAL)))
    return _in_units(Fraction(ceil(value * ONE)), 1000, units if exponential else _DECIMAL)


def _in_units(value: Fraction, base: int, units: tuple[str, ...]) -> str:
    """Return a whole number of the smallest unit, in the largest unit of which it is a whole number."""
    if value == 0:
        return "0"
    chosen = 0
    while chosen + 1 < len(units) and (value / base).denominator == 1:
        value /= base
        chosen += 1
    return f"{value}{units[chosen]}"


def is_extended(resource: str) -> bool:
    """Return whether a resource is none of Kubernetes' own, such as google.com/tpu."""
    domain, slash, _ = resource.partition("/")
    return bool(slash) and domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")


def amounts(listed: Mapping[str, Any] | None) -> Counter[str]:
    """Parse a ResourceList."""
    return Counter({name: quantity(text) for name, text in (listed or {}).items()})


def requested(spec: Mapping[str, Any]) -> Amounts:
    """Return what a pod requests: the sum of its containers, or an init container, and one of "pods"."""
    total = amounts(spec.get("overhead")) + Counter({"pods": ONE})
    running: Counter[str] = Counter()
    for container in spec.get("containers", ()):
        running += amounts((container.get("resources") or {}).get("requests"))
    for container in spec.get("initContainers") or ():
        running |= amounts((container.get("resources") or {}).get("requests"))
    return total + running

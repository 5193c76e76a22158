"""Exact resource quantities: k8s.io/apimachinery/pkg/api/resource (pure)."""

import re
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any

Amounts = Mapping[str, int]
"""Resource name → amount in billionths, the smallest unit of a quantity: cores, bytes, chips, pods."""

ONE = 10**9
_WRITTEN = re.compile(r"([+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40}))(?:[eE]([+-]?\d{1,2})|([numkMGTPE]|[KMGTPE]i))?")
"""With bounded length and exponent, so that 1e999999999 is not computed."""
_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


@lru_cache(maxsize=1024)
def quantity(text: str | float) -> int:
    """Parse "4", "500m", "16Gi", "1e3" as billionths, rounded up. Raise ValueError for anything else."""
    found = _WRITTEN.fullmatch(str(text))
    if found is None:
        raise ValueError(f"not a quantity: {str(text)[:60]!r}")
    number, exponent, suffix = found.groups()
    if suffix in _BINARY:
        return ceil(Fraction(number) * Fraction(1024) ** (1 + _BINARY.index(suffix)) * ONE)
    power = int(exponent) if exponent else 3 * (_DECIMAL.index(suffix or "") - _DECIMAL.index(""))
    return ceil(Fraction(number) * Fraction(10) ** power * ONE)


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

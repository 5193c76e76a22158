"""Exact resource quantities, in the serialization format of k8s.io/apimachinery/pkg/api/resource (pure)."""

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any

Amounts = Mapping[str, int]
"""Resource name → amount in billionths, the smallest unit of a quantity: cores, bytes, chips, pods."""

ONE = 10**9

_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{suffix: Fraction(1000**power) for power, suffix in enumerate("kMGTPE", 1)},
    **{f"{suffix}i": Fraction(1024**power) for power, suffix in enumerate("KMGTPE", 1)},
}
_WRITTEN = re.compile(r"([+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40}))(?:([eE][+-]?\d{1,2})|([numkMGTPE]|[KMGTPE]i))?")
"""With bounded length and exponent, so that 1e999999999 is not computed."""


@lru_cache(maxsize=1024)
def quantity(text: str | float) -> int:
    """Parse "4", "500m", "16Gi", "1e3" as billionths, rounded up. Raise ValueError for anything else."""
    found = _WRITTEN.fullmatch(str(text))
    if found is None:
        raise ValueError(f"not a quantity: {str(text)[:60]!r}")
    number, exponent, suffix = found.groups()
    return ceil(Fraction(number + (exponent or "")) * _SUFFIXES.get(suffix, Fraction(1)) * ONE)


def is_extended(resource: str) -> bool:
    """Return whether a resource is none of Kubernetes' own, such as google.com/tpu."""
    domain, slash, _ = resource.partition("/")
    return bool(slash) and domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")


def amounts(listed: Mapping[str, Any] | None) -> dict[str, int]:
    """Parse a ResourceList."""
    return {name: quantity(text) for name, text in (listed or {}).items()}


def total(parts: Iterable[Amounts]) -> dict[str, int]:
    summed: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():
            summed[name] = summed.get(name, 0) + amount
    return summed


def largest(parts: Iterable[Amounts]) -> dict[str, int]:
    most: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():
            most[name] = max(most.get(name, 0), amount)
    return most


def requested(spec: Mapping[str, Any]) -> dict[str, int]:
    """Return what a pod requests: the sum of its containers, or of an init container, which run first one by one.

    A limit without a request counts as the request. A pod takes one of "pods".
    """
    running = total(map(_of_container, spec.get("containers", ())))
    starting = largest(map(_of_container, spec.get("initContainers") or ()))
    together = total([largest([running, starting]), amounts(spec.get("overhead"))])
    return together | {"pods": ONE}


def _of_container(container: Mapping[str, Any]) -> dict[str, int]:
    resources = container.get("resources") or {}
    return amounts(resources.get("limits")) | amounts(resources.get("requests"))

"""Quantities of resources, exactly (k8s.io/apimachinery/pkg/api/resource, its serialization format)."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

Amounts = Mapping[str, Fraction]
"""Resource name → amount: cpu in cores, memory in bytes, chips and pods in pieces."""

_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}


def quantity(text: str | int | float) -> Fraction:
    """Read "4", "500m", "16Gi", "1e3". ValueError for anything else."""
    written = str(text)
    suffix = next((end for end in (written[-2:], written[-1:]) if end in _SUFFIXES), "")
    return Fraction(written.removesuffix(suffix)) * _SUFFIXES.get(suffix, Fraction(1))


def amounts(listed: Mapping[str, Any] | None) -> dict[str, Fraction]:
    """Read a ResourceList."""
    return {name: quantity(text) for name, text in (listed or {}).items()}


def total(parts: Iterable[Amounts]) -> dict[str, Fraction]:
    summed: dict[str, Fraction] = {}
    for part in parts:
        for name, amount in part.items():
            summed[name] = summed.get(name, Fraction()) + amount
    return summed


def largest(parts: Iterable[Amounts]) -> dict[str, Fraction]:
    most: dict[str, Fraction] = {}
    for part in parts:
        for name, amount in part.items():
            most[name] = max(most.get(name, Fraction()), amount)
    return most


def requested(spec: Mapping[str, Any]) -> dict[str, Fraction]:
    """Sum what a pod's containers ask for at once; init containers run before them, one after the other.

    A limit without a request is a request (the API server defaults it). One pod takes one place of "pods".
    """
    running = total(map(_of_container, spec.get("containers", ())))
    starting = largest(map(_of_container, spec.get("initContainers") or ()))
    together = total([largest([running, starting]), amounts(spec.get("overhead"))])
    return together | {"pods": Fraction(1)}


def _of_container(container: Mapping[str, Any]) -> dict[str, Fraction]:
    resources = container.get("resources") or {}
    return amounts(resources.get("limits")) | amounts(resources.get("requests"))

"""Kubernetes quantities, exactly, and what a pod requests of a resource.

Grammar: k8s.io/apimachinery/pkg/api/resource, the serialization format of Quantity. Sums:
k8s.io/component-helpers/resource, PodRequests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import ceil
from types import MappingProxyType
from typing import Any

MOST = (1 << 63) - 1
"""Kubernetes counts no further."""

_NOTHING = Fraction(0)
_QUANTITY = re.compile(
    r"\+?(?P<number>\d+(?:\.\d*)?|\.\d+)(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?\d{1,2}))?", re.ASCII
)
_LONGEST = 64
"""Longer ones, and exponents of three digits, say nothing that a machine could offer."""

_FACTORS: Mapping[str, Fraction] = MappingProxyType(
    {
        "n": Fraction(1, 10**9),
        "u": Fraction(1, 10**6),
        "m": Fraction(1, 10**3),
        "k": Fraction(10**3),
        **{letter: Fraction(10**power) for letter, power in zip("MGTPE", range(6, 19, 3), strict=True)},
        **{f"{letter}i": Fraction(2**power) for letter, power in zip("KMGTPE", range(10, 61, 10), strict=True)},
    }
)


def quantity(written: str | float) -> Fraction:
    """Read "4", "500m", "1.5Gi", "1e3", or a number as YAML gives it; ValueError for all else, and for less than 0."""
    text = str(written)
    found = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        raise ValueError(f'"{text[:_LONGEST]}" is no quantity')
    number = Fraction(found["number"])
    if found["exponent"]:
        return number * Fraction(10) ** int(found["exponent"])
    return number * _FACTORS.get(found["suffix"], Fraction(1))


def extended(pod_spec: Mapping[str, Any], resource: str) -> int:
    """Sum what a pod requests of an extended resource, which comes in whole numbers; ValueError names the field."""
    asked = _of_containers(pod_spec, resource)
    if asked.denominator != 1:
        raise ValueError(f"{resource}: the containers request {float(asked)}, it comes in whole numbers")
    return min(int(asked), MOST)


def cpu_milli(pod_spec: Mapping[str, Any]) -> int:
    """Sum the thousandths of a CPU that a pod requests, rounded up; ValueError names the field that is no quantity."""
    return min(ceil(_of_pod(pod_spec, "cpu") * 1000), MOST)


def memory_bytes(pod_spec: Mapping[str, Any]) -> int:
    """Sum the memory that a pod requests, as `cpu_milli`."""
    return min(ceil(_of_pod(pod_spec, "memory")), MOST)


def _of_pod(pod_spec: Mapping[str, Any], resource: str) -> Fraction:
    """Take what the pod itself says (Kubernetes 1.32) before the containers' sum, and add the runtime's overhead.

    A limit of the pod stands for a request that neither it nor its containers make.
    """
    own = pod_spec.get("resources") or {}
    asked = _named(own, "requests", resource, "resources")
    if asked is None:
        asked = _of_containers(pod_spec, resource) or _named(own, "limits", resource, "resources")
    return (asked or _NOTHING) + (_named(pod_spec, "overhead", resource, "spec") or _NOTHING)


def _of_containers(pod_spec: Mapping[str, Any], resource: str) -> Fraction:
    """Take the most that is asked for at one time: while the pod starts, or while it runs.

    Init containers run one after the other, each beside the sidecars that were started before it; sidecars are those
    that are restarted always, and go on.
    """
    sidecars = starting = _NOTHING
    for container in pod_spec.get("initContainers") or ():
        asked = _of_container(container, resource)
        starting = max(starting, sidecars + asked)
        if container.get("restartPolicy") == "Always":
            sidecars += asked
    containers: Iterable[Mapping[str, Any]] = pod_spec["containers"]
    running = sum((_of_container(container, resource) for container in containers), sidecars)
    return max(starting, running)


def _of_container(container: Mapping[str, Any], resource: str) -> Fraction:
    """Read the request, for which a limit stands where there is none."""
    resources, where = container.get("resources") or {}, f"container {container.get('name')}: resources"
    asked = _named(resources, "requests", resource, where)
    return asked if asked is not None else _named(resources, "limits", resource, where) or _NOTHING


def _named(holder: Mapping[str, Any], section: str, resource: str, where: str) -> Fraction | None:
    written = (holder.get(section) or {}).get(resource)
    if written is None:
        return None
    try:
        return quantity(written)
    except ValueError as wrong:
        raise ValueError(f"{where}.{section}.{resource}: {wrong}") from wrong

"""Exact Kubernetes quantities, and the resource requests of pods.

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
"""The largest quantity in Kubernetes."""

Exact = int | Fraction
_QUANTITY = re.compile(
    r"\+?(?P<number>\d+(?:\.\d*)?|\.\d+)(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?\d{1,2}))?", re.ASCII
)
_LONGEST = 64
"""No machine could offer what needs more characters, or an exponent of three digits."""

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
    """Return the value of "4", "500m", "1.5Gi", "1e3" or a number; raise ValueError otherwise, and below 0."""
    return Fraction(_exact(written))


def _exact(written: str | float) -> Exact:
    """Return the value as `quantity` does; most are whole numbers, which are read and added fast."""
    text = str(written)
    if len(text) <= _LONGEST and text.isascii() and text.isdigit():
        return int(text)
    found = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        raise ValueError(f'"{text[:_LONGEST]}" is not a valid quantity')
    number = Fraction(found["number"])
    if found["exponent"]:
        return number * Fraction(10) ** int(found["exponent"])
    return number * _FACTORS.get(found["suffix"], Fraction(1))


def extended(pod_spec: Mapping[str, Any], resource: str) -> int:
    """Return a pod's request of an extended resource; raise ValueError, naming the field, if it is not an integer."""
    requested = _of_containers(pod_spec, resource)
    if requested.denominator != 1:
        raise ValueError(f"{resource}: the containers request {float(requested)}, which must be a whole number")
    return min(int(requested), MOST)


def cpu_milli(pod_spec: Mapping[str, Any]) -> int:
    """Return a pod's CPU request in thousandths, rounded up; raise ValueError, naming the field, if it is invalid."""
    return min(ceil(_of_pod(pod_spec, "cpu") * 1000), MOST)


def memory_bytes(pod_spec: Mapping[str, Any]) -> int:
    """Return a pod's memory request in bytes; raise ValueError like `cpu_milli`."""
    return min(ceil(_of_pod(pod_spec, "memory")), MOST)


def ephemeral_bytes(pod_spec: Mapping[str, Any]) -> int:
    """Return a pod's request of local disk in bytes; raise ValueError like `cpu_milli`."""
    return min(ceil(_of_pod(pod_spec, "ephemeral-storage")), MOST)


def requested(pod_spec: Mapping[str, Any], prefixes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the extended resources and huge pages with these prefixes that a pod requests; raise like `extended`."""
    containers = (*(pod_spec.get("initContainers") or ()), *pod_spec["containers"])
    sections = ((each.get("resources") or {}).get(name) or {} for each in containers for name in ("requests", "limits"))
    names = {name for section in sections for name in section if name.startswith(prefixes)}
    return tuple(name for name in sorted(names) if extended(pod_spec, name))


def _of_pod(pod_spec: Mapping[str, Any], resource: str) -> Exact:
    """Return the request at pod level (Kubernetes 1.32), else that of the containers, plus the pod's overhead.

    The limit at pod level counts as the request if neither the pod nor its containers have one.
    """
    own = pod_spec.get("resources") or {}
    requested = _named(own, "requests", resource, "resources")
    if requested is None:
        requested = _of_containers(pod_spec, resource) or _named(own, "limits", resource, "resources")
    return (requested or 0) + (_named(pod_spec, "overhead", resource, "spec") or 0)


def _of_containers(pod_spec: Mapping[str, Any], resource: str) -> Exact:
    """Return the most that the containers request at one time, while the pod starts or while it runs.

    Init containers run one after the other, together with the sidecars that were started before; sidecars are init
    containers with restartPolicy Always, and keep running.
    """
    sidecars: Exact = 0
    starting: Exact = 0
    for container in pod_spec.get("initContainers") or ():
        requested = _of_container(container, resource)
        starting = max(starting, sidecars + requested)
        if container.get("restartPolicy") == "Always":
            sidecars += requested
    containers: Iterable[Mapping[str, Any]] = pod_spec["containers"]
    running = sum((_of_container(container, resource) for container in containers), sidecars)
    return max(starting, running)


def _of_container(container: Mapping[str, Any], resource: str) -> Exact:
    """Return the request of a container, for which its limit counts if there is none."""
    resources, where = container.get("resources") or {}, f"container {container.get('name')}: resources"
    requested = _named(resources, "requests", resource, where)
    return requested if requested is not None else _named(resources, "limits", resource, where) or 0


def _named(holder: Mapping[str, Any], section: str, resource: str, where: str) -> Exact | None:
    written = (holder.get(section) or {}).get(resource)
    if written is None:
        return None
    try:
        return _exact(written)
    except ValueError as wrong:
        raise ValueError(f"{where}.{section}.{resource}: {wrong}") from wrong

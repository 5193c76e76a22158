"""How the key of hosts is told that may come to other namespaces (`planning.keys`): with the namespace they are for."""

from __future__ import annotations


def within(namespace: str, key: str) -> str:
    """Return what is told of a key on hosts that are for a namespace; without one no pod fits."""
    return f"{namespace}/{key}"


def parted(told: str) -> tuple[str | None, str]:
    """Return the namespace and the key that are told; None: the hosts never come to another one."""
    namespace, separator, key = told.rpartition("/")
    return (namespace if separator else None), key


def is_keyed(told: str, wanted: str) -> bool:
    """Return whether hosts carry a key that is wanted; a key alone is wanted in whatever namespace they are."""
    return told == wanted or (parted(wanted)[0] is None and parted(told)[1] == wanted)

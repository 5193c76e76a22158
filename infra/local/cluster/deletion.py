"""How an object is deleted: grace periods, finalizers, propagation (pure).

Facts: k8s.io/apiserver/pkg/registry/rest/delete.go, pkg/registry/core/pod/strategy.go (CheckGracefulDelete).
"""

from typing import Any

from infra.local.cluster import errors
from infra.local.cluster.ownership import FOREGROUND
from infra.local.cluster.resources import Resource

PERMANENT_NAMESPACES = ("default", "kube-system")

_PROPAGATIONS = ("Background", "Foreground", "Orphan")
_DEFAULT_GRACE_SECONDS = 30  # corev1.DefaultTerminationGracePeriodSeconds


def check(resource: Resource, old: dict[str, Any], propagation: str) -> None:
    """Raise ApiError if a deletion is refused: 403 for permanent namespaces, 422 for an unknown propagation policy."""
    name = old["metadata"]["name"]
    if resource.plural == "namespaces" and name in PERMANENT_NAMESPACES:
        raise errors.forbidden("namespaces", "", name, "this namespace may not be deleted")
    if propagation not in _PROPAGATIONS:
        listed = ", ".join(f'"{p}"' for p in (*_PROPAGATIONS, "nil"))
        cause = errors.FieldError(
            "propagationPolicy",
            "FieldValueNotSupported",
            f'Unsupported value: "{propagation}": supported values: {listed}',
        )
        raise errors.invalid("DeleteOptions", "meta.k8s.io", "", [cause])


def grace(plural: str, old: dict[str, Any], asked: int | None) -> int:
    """Return the grace period in seconds, 0 except for pods running on a node. A second request may only shorten it."""
    if plural != "pods":
        return 0
    spec = old.get("spec", {})
    finished = old.get("status", {}).get("phase") in ("Succeeded", "Failed")
    if not spec.get("nodeName") or finished:
        return 0
    granted: int = spec.get("terminationGracePeriodSeconds", _DEFAULT_GRACE_SECONDS) if asked is None else asked
    pending = old["metadata"].get("deletionGracePeriodSeconds")
    return granted if pending is None else min(granted, pending)


def marked(new: dict[str, Any], now: str, grace_seconds: int, *, foreground: bool) -> dict[str, Any]:
    """Mark `new` as being deleted and return it."""
    metadata = new["metadata"]
    metadata.setdefault("deletionTimestamp", now)
    metadata["deletionGracePeriodSeconds"] = grace_seconds
    finalizers = metadata.get("finalizers", [])
    if foreground and FOREGROUND not in finalizers:
        metadata["finalizers"] = [*finalizers, FOREGROUND]
    return new


def is_over(plural: str, obj: dict[str, Any]) -> bool:
    """Return whether an object that is being deleted has nothing left to wait for."""
    metadata = obj["metadata"]
    if plural == "namespaces" or "deletionTimestamp" not in metadata:
        return False
    return not metadata.get("finalizers") and not metadata.get("deletionGracePeriodSeconds")


def without_finalizer(new: dict[str, Any], finalizer: str) -> dict[str, Any]:
    metadata = new["metadata"]
    kept = [name for name in metadata.get("finalizers", []) if name != finalizer]
    metadata.pop("finalizers", None)
    if kept:
        metadata["finalizers"] = kept
    return new

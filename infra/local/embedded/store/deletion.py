"""How an object is deleted: grace periods, finalizers, propagation (pure).

Facts: k8s.io/apiserver/pkg/registry/rest/delete.go and generic/registry/store.go, pkg/registry/core/pod/strategy.go.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from infra.local.embedded.store.kinds import Kind, Object

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
PERMANENT_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
PROPAGATIONS = ("Background", "Foreground", "Orphan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """What is asked of a deletion. An empty `propagation` is the kind's own; `grace_seconds` matter to pods only."""

    propagation: str = ""
    grace_seconds: int | None = None
    dry_run: bool = False


def timestamp(moment: datetime) -> str:
    """Format a metav1.Time: RFC 3339, UTC, whole seconds. `moment` is timezone-aware and in UTC."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def marked(kind: Kind, old: Object, asked: Deletion, now: datetime) -> Object:
    """Return the object with what its deletion writes into it first; unchanged if it is simply removed.

    Pods and namespaces are always marked, others only if a finalizer holds them. Jobs orphan their pods by default.
    """
    propagation = asked.propagation or ("Orphan" if kind.id == "jobs" else "Background")
    metadata, finalizers = old["metadata"], list(old["metadata"].get("finalizers", []))
    own = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(propagation)
    if own and own not in finalizers:
        finalizers.append(own)
    if kind.id not in ("pods", "namespaces") and not finalizers:
        return old
    grace = _grace(old, asked) if kind.id == "pods" else 0
    pending = metadata.get("deletionGracePeriodSeconds")
    if "deletionTimestamp" in metadata and (not pending or grace >= pending):
        return old
    new = metadata | {
        "deletionTimestamp": timestamp(now + timedelta(seconds=grace)),
        "deletionGracePeriodSeconds": grace,
    }
    if "generation" in metadata and "deletionTimestamp" not in metadata:
        new["generation"] = metadata["generation"] + 1
    return old | {"metadata": new | ({"finalizers": finalizers} if finalizers else {})}


def _grace(pod: Object, asked: Deletion) -> int:
    """Return the grace period in seconds: none unless the pod is running on a node."""
    spec, finished = pod["spec"], pod["status"].get("phase") in ("Succeeded", "Failed")
    if not spec.get("nodeName") or finished:
        return 0
    seconds: int = spec["terminationGracePeriodSeconds"] if asked.grace_seconds is None else asked.grace_seconds
    return seconds if seconds >= 0 else 1


def is_over(kind: Kind, obj: Object) -> bool:
    """Return whether nothing holds an object that is being deleted any more; namespaces wait for their content."""
    metadata = obj["metadata"]
    if kind.id == "namespaces" or "deletionTimestamp" not in metadata:
        return False
    return not metadata.get("finalizers") and not metadata.get("deletionGracePeriodSeconds")


def owners(obj: Object) -> Iterator[dict[str, Any]]:
    yield from obj["metadata"].get("ownerReferences") or ()


def without_owner(obj: Object, uid: str) -> Object:
    """Return the object without the owner reference to `uid`."""
    return _without(obj, "ownerReferences", [each for each in owners(obj) if each["uid"] != uid])


def without_finalizer(obj: Object, finalizer: str) -> Object:
    return _without(obj, "finalizers", [name for name in obj["metadata"].get("finalizers", []) if name != finalizer])


def _without(obj: Object, field: str, kept: list[Any]) -> Object:
    metadata = {key: value for key, value in obj["metadata"].items() if key != field}
    return obj | {"metadata": metadata | ({field: kept} if kept else {})}

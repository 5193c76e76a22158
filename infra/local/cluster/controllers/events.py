"""Kubernetes Events of the controllers: one per object and reason, counted when it happens again.

The recorder of `k8s.io/client-go/tools/events` keys its series the same way: by object and reason, not by text.
"""

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from infra.local.cluster.objects import ApiError, Object, Objects, timestamp


@dataclass(frozen=True, slots=True)
class Happening:
    """`regarding`: the object it happened to; `source`: the component that says so."""

    regarding: Object
    reason: str
    message: str
    source: str
    warns: bool = False


def record(objects: Objects, happening: Happening, now: datetime) -> None:
    """Record something that happened now. Never call it for what merely still is so: each call is a change."""
    known = _known(objects, happening)
    if known is None:
        _create(objects, happening, now)
        return
    again = {"message": happening.message, "count": known["count"] + 1, "lastTimestamp": timestamp(now)}
    objects.update("events", known | again)


def record_once(objects: Objects, happening: Happening, now: datetime) -> None:
    """Record what may have been so before, unless an event of this reason is there already."""
    if _known(objects, happening) is None:
        _create(objects, happening, now)


def _known(objects: Objects, happening: Happening) -> Object | None:
    try:
        return objects.get("events", happening.regarding["metadata"]["namespace"], _name(happening))
    except ApiError as error:
        if error.reason != "NotFound":
            raise
        return None


def _name(happening: Happening) -> str:
    metadata = happening.regarding["metadata"]
    digest = sha256(f"{metadata['uid']}\n{happening.reason}".encode()).hexdigest()
    return f"{metadata['name']}.{digest[:16]}"


def _create(objects: Objects, happening: Happening, now: datetime) -> None:
    regarding = happening.regarding
    metadata = regarding["metadata"]
    event: Object = {
        "metadata": {"name": _name(happening), "namespace": metadata["namespace"]},
        "involvedObject": {
            "apiVersion": regarding["apiVersion"],
            "kind": regarding["kind"],
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
        },
        "reason": happening.reason,
        "message": happening.message,
        "type": "Warning" if happening.warns else "Normal",
        "source": {"component": happening.source},
        "reportingComponent": happening.source,
        "reportingInstance": "local",
        "firstTimestamp": timestamp(now),
        "lastTimestamp": timestamp(now),
        "count": 1,
    }
    try:
        objects.create("events", event)
    except ApiError as error:
        if error.reason != "Forbidden":  # a namespace that is being deleted takes no more events
            raise

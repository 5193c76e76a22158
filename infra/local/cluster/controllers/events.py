"""Kubernetes Events of the controllers: one per object and reason, with a count of repetitions.

The recorder of `k8s.io/client-go/tools/events` keys its series the same way: by object and reason, not by message.
"""

import logging
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from infra.local.cluster.controllers.rounds import Doubt
from infra.local.cluster.objects import ApiError, Object, Objects, timestamp

_log = logging.getLogger(__name__)

_MESSAGE_LIMIT = 1024  # events.k8s.io/v1 Event.note
_NAME_LIMIT = 253 - len(".") - 16  # leaves room for the suffix of the event's name
_IDENTITY = ("namespace", "name", "uid", "resourceVersion")


@dataclass(frozen=True, slots=True)
class Happening:
    """`regarding`: the object concerned; `source`: the reporting component."""

    regarding: Object
    reason: str
    message: str
    source: str
    warns: bool = False


def record(objects: Objects, happening: Happening, now: datetime) -> None:
    """Record something that happened now. Do not call it for a state that merely persists: each call is a change."""
    known = _known(objects, happening)
    if known is None:
        _create(objects, happening, now)
        return
    again = {
        "message": happening.message[:_MESSAGE_LIMIT],
        "count": known["count"] + 1,
        "lastTimestamp": timestamp(now),
    }
    objects.update("events", known | again)


def record_once(objects: Objects, happening: Happening, now: datetime) -> None:
    """Record a state that may persist, unless an event with this reason already exists."""
    if _known(objects, happening) is None:
        _create(objects, happening, now)


def doubting(objects: Objects, source: str, now: datetime) -> Doubt:
    """Return a function that reports, once per object and source, that a controller cannot process an object."""

    def doubt(obj: Object, error: Exception) -> None:
        message = f"{source} cannot process this object: {type(error).__name__}: {error}"
        happening = Happening(obj, f"NotUnderstoodBy{_camel(source)}", message, source, warns=True)
        if _known(objects, happening) is None:
            _log.warning("%s %s: %s", obj["kind"], obj["metadata"]["name"], message, exc_info=error)
            _create(objects, happening, now)

    return doubt


def _camel(source: str) -> str:
    return "".join(word.capitalize() for word in source.split("-"))


def _known(objects: Objects, happening: Happening) -> Object | None:
    try:
        return objects.get("events", _namespace(happening.regarding), _name(happening))
    except ApiError as error:
        if error.reason != "NotFound":
            raise
        return None


def _namespace(regarding: Object) -> str:
    """Return the namespace of an event; events about nodes are in the default namespace."""
    return str(regarding["metadata"].get("namespace", "default"))


def _name(happening: Happening) -> str:
    metadata = happening.regarding["metadata"]
    digest = sha256(f"{metadata['uid']}\n{happening.reason}".encode()).hexdigest()
    return f"{metadata['name'][:_NAME_LIMIT].rstrip('-.')}.{digest[:16]}"


def _create(objects: Objects, happening: Happening, now: datetime) -> None:
    regarding = happening.regarding
    metadata = regarding["metadata"]
    event: Object = {
        "metadata": {"name": _name(happening), "namespace": _namespace(regarding)},
        "involvedObject": {"apiVersion": regarding["apiVersion"], "kind": regarding["kind"]}
        | {key: metadata[key] for key in _IDENTITY if key in metadata},
        "reason": happening.reason,
        "message": happening.message[:_MESSAGE_LIMIT],
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
        if error.reason != "Forbidden":  # a namespace that is being deleted accepts no more events
            raise

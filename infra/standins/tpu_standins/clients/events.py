"""Kubernetes Events of a controller, as its recorder writes them: with eventTime, action and series.

Source: k8s.io/client-go tools/events. Events are the same if they are about the same version of an object, with the
same type, reason and action; what they say may differ. The first repeat within six minutes makes them a series of two.
"""

import logging
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta

from tpu_standins.clients.errors import ApiError, Unreachable
from tpu_standins.clients.objects import Object, Objects, exact_timestamp
from tpu_standins.clients.rounds import Doubt

_log = logging.getLogger(__name__)

_SERIES_LIFE = timedelta(minutes=6)
_MESSAGE_LIMIT = 1024  # events.k8s.io/v1 Event.note
_NAME_LIMIT = 253 - len(".") - 16  # leaves room for the suffix of the event's name
_IDENTITY = ("namespace", "name", "uid", "resourceVersion")
_OMITTED = "…"

Key = tuple[str, str, str, str, bool]


@dataclass(frozen=True, slots=True)
class Happening:
    """`regarding`: the object concerned; `action`: what was done or tried, one word."""

    regarding: Object
    reason: str
    message: str
    warns: bool = False
    action: str = "Reconciling"


@dataclass(slots=True)
class _Known:
    """An Event that was created: where, when it was last repeated, and how often it was seen."""

    namespace: str
    name: str
    seen: datetime
    count: int = 1


class Recorder:
    """Records the Events of one component, `source`. One that the server refuses is lost: nobody could read it.

    It may be used from several threads.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._known: dict[Key, _Known] = {}
        """Who was seen longest ago comes first."""
        self._number = 0

    def record(self, objects: Objects, happening: Happening, now: datetime) -> None:
        """Record something that happened now."""
        metadata = happening.regarding["metadata"]
        version = metadata.get("resourceVersion", "")
        key = (metadata["uid"], version, happening.reason, happening.action, happening.warns)
        with self._lock:
            before = self._seen(key, now)
            if before is None:
                event = self._event(happening, now)
                self._known[key] = _Known(event["metadata"]["namespace"], event["metadata"]["name"], now)
        try:
            if before is None:
                objects.create("events", event)
            elif before.count == 2:
                series = {"count": before.count, "lastObservedTime": exact_timestamp(now)}
                objects.patch("events", before.namespace, before.name, {"series": series})
        except Unreachable:
            raise
        except ApiError as error:
            _log.info("the event %s of %s is lost: %s", happening.reason, metadata["name"], error)

    def doubting(self, objects: Objects, now: datetime) -> Doubt:
        """Return a function that reports, once per version of an object, that it cannot be processed."""

        def doubt(obj: Object, error: Exception) -> None:
            message = f"{self._source} cannot process this object: {type(error).__name__}: {error}"
            reason = "NotUnderstoodBy" + "".join(word.capitalize() for word in self._source.split("-"))
            version = obj["metadata"].get("resourceVersion", "")
            if (obj["metadata"]["uid"], version, reason, "Reconciling", True) not in self._known:
                _log.warning("%s %s: %s", obj["kind"], obj["metadata"]["name"], message, exc_info=error)
            self.record(objects, Happening(obj, reason, message, warns=True), now)

        return doubt

    def _seen(self, key: Key, now: datetime) -> _Known | None:
        """Note that a series was seen again, after those that are over were forgotten; None: it is new."""
        while self._known and now >= next(iter(self._known.values())).seen + _SERIES_LIFE:
            del self._known[next(iter(self._known))]
        known = self._known.pop(key, None)
        if known is not None:
            self._known[key] = known
            known.seen = now
            known.count += 1
        return known

    def _event(self, happening: Happening, now: datetime) -> Object:
        """Return the Event; one about an object of the cluster is in the default namespace."""
        regarding = happening.regarding
        metadata = regarding["metadata"]
        self._number = max(self._number + 1, int(now.timestamp() * 10**6) * 1000)
        return {
            "metadata": {
                "name": f"{metadata['name'][:_NAME_LIMIT].rstrip('-.')}.{self._number:016x}",
                "namespace": metadata.get("namespace", "default"),
            },
            "eventTime": exact_timestamp(now),
            "involvedObject": {"apiVersion": regarding["apiVersion"], "kind": regarding["kind"]}
            | {key: metadata[key] for key in _IDENTITY if key in metadata},
            "reason": happening.reason,
            "action": happening.action,
            "message": _shortened(happening.message),
            "type": "Warning" if happening.warns else "Normal",
            "reportingComponent": self._source,
            "reportingInstance": f"{self._source}-local",
        }


def _shortened(message: str) -> str:
    """Return the message, at most as long as an Event's may be, in bytes."""
    encoded = message.encode()
    if len(encoded) <= _MESSAGE_LIMIT:
        return message
    return encoded[: _MESSAGE_LIMIT - len(_OMITTED.encode())].decode(errors="ignore") + _OMITTED

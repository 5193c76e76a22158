"""Writes the mirror in a thread of its own, one object after the other: neither Events nor answers wait for it.

| what is told of an object                         | then                                                        |
|---------------------------------------------------|-------------------------------------------------------------|
| what it shows already, or less new than that      | nothing                                                     |
| something else                                    | it is written; of several things, the last                  |
| that it is not, and it is of this workload        | it is deleted                                               |
| nothing, in a list that has its place             | the same, unless it was told since                          |

What was told is taken at once, and is lost with the process: the heartbeat's digest is that of what was written.
"""

from __future__ import annotations

import random
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol

import structlog

from relay.agenda import rising_pause
from relay.mirror.calls import NotInstalled
from relay.mirror.objects import Json, Kept, confirmation, kept, object_of
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.records.mirror import Mirrored, MirrorKind, key_of
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.ports.publisher import AnyMirror, MirrorChanged, MirrorConfirmed, MirrorListed

_log = structlog.get_logger()

PACE = 0.02
"""Seconds between two writes: 500 objects that change at once take half a minute, and the API server has others."""
LISTED_EVERY = timedelta(minutes=10)
"""How often the objects are listed, to find those that somebody deleted; or looked for while they are not installed."""
LOOK_EVERY = 5.0
_NEVER = datetime.min.replace(tzinfo=UTC)
_ANOTHERS = Kept(1, _NEVER, "")
"""What is known of an object that somebody else wrote, or that was refused: with its digest the sums differ."""


class Objects(Protocol):
    """Single calls to the API server, as in `relay.mirror.calls`."""

    def objects(self, kind: MirrorKind) -> Iterator[Json]: ...

    def apply(self, kind: MirrorKind, obj: Json) -> bool: ...

    def confirm(self, obj: Json) -> None: ...

    def remove(self, kind: MirrorKind, namespace: str, name: str) -> None: ...


class _Due(NamedTuple):
    told: Mirrored
    at: datetime


class MirrorWriter:
    """`put` and `digest` may be called by any thread; `now` is a steady clock."""

    def __init__(self, cluster: ClusterId, objects: Objects, now: Callable[[], datetime], pace: float = PACE) -> None:
        self._cluster, self._objects, self._now, self._pace = cluster, objects, now, pace
        self._kept: dict[str, Kept] = {}
        self._due: OrderedDict[str, _Due] = OrderedDict()
        self._confirmed: datetime | None = None
        self._listed_at: datetime | None = None
        self._installed = False
        self._missed = False
        self._changed = threading.Condition()
        self._stopping = False

    @property
    def digest(self) -> int | None:
        """The sum of the digests of the objects; None: they were not listed yet, or are not installed."""
        with self._changed:
            return sum(each.digest for each in self._kept.values()) if self._installed else None

    def put(self, told: AnyMirror) -> None:
        """Have what was told written, as far as it is news."""
        with self._changed:
            match told:
                case MirrorConfirmed(at=at):
                    self._confirmed = max(at, self._confirmed or at)
                case MirrorChanged(objects=objects, at=at):
                    for each in objects:
                        self._take(each, at)
                case MirrorListed(objects=objects, at=at):
                    for each in (*objects, *self._unlisted(told)):
                        self._take(each, at)
            self._changed.notify_all()

    def run(self) -> None:
        """Write until `stop` is called."""
        failures = 0
        while not self._stopping:
            try:
                wrote = self.turn()
                failures = 0
            except (Temporary, Permanent) as trouble:
                failures += 1
                _log.warning(LogEvent.MIRROR_FAILED, error=str(trouble), waiting=len(self._due))
                self._wait(rising_pause(1.0, failures) * random.uniform(0.5, 1))  # noqa: S311 - jitter, not a secret
            else:
                self._wait(self._pace if wrote else LOOK_EVERY, until_told=not wrote)

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def turn(self) -> bool:
        """List the objects if that is due, or write one; return whether another may be written at once."""
        now = self._now()
        if self._listed_at is None or now - self._listed_at >= LISTED_EVERY:
            self._list(now)
        if not self._installed:
            return False
        return self._write_next() or self._write_confirmation()

    def _list(self, now: datetime) -> None:
        """Learn which objects there are. While they are not installed, nothing is written, and nothing kept."""
        try:
            found = {
                key_of(kind, each["namespace"], each["name"]): kept(each, now) or _ANOTHERS
                for kind in MirrorKind
                for each in self._objects.objects(kind)
            }
        except NotInstalled as why:
            if not self._missed:
                _log.warning(LogEvent.MIRROR_OFF, error=str(why))
            self._missed, self._listed_at = True, now
            with self._changed:
                self._installed = False
                self._due.clear()
            return
        _log.info(LogEvent.MIRROR_LISTED, objects=len(found))
        with self._changed:
            self._kept, self._listed_at, self._installed, self._missed = found, now, True, False

    def _take(self, told: Mirrored, at: datetime) -> None:
        known, due = self._kept.get(told.key), self._due.get(told.key)
        last = due.at if due is not None else known.at if known is not None else _NEVER
        uid = due.told.uid if due is not None else known.uid if known is not None else told.uid
        if at < last or (not told.digest and uid not in {told.uid, ""}):
            return
        is_so = (told.digest, told.uid) == (known.digest, known.uid) if known is not None else not told.digest
        if is_so:
            self._due.pop(told.key, None)
            return
        self._due[told.key] = _Due(told, at)

    def _unlisted(self, told: MirrorListed) -> Iterator[Mirrored]:
        """Yield the objects of a list's range that it does not have, as ones that are not to be."""
        listed = {each.key for each in told.objects}
        for key, each in list(self._kept.items()):
            if key not in listed and told.within(key):
                kind, namespace, name = key.split("/", 2)
                yield Mirrored(kind=MirrorKind(kind), namespace=namespace, name=name, uid=each.uid, digest=0)

    def _write_next(self) -> bool:
        """Write the first object that is due; return whether there was one. Temporary: it stays due."""
        with self._changed:
            if not self._due:
                return False
            key = next(iter(self._due))
            told, at = self._due[key]
        digest = told.digest
        try:
            self._write(told, at)
        except Permanent as refused:
            _log.warning(LogEvent.MIRROR_FAILED, object=key, error=str(refused))
            digest = _ANOTHERS.digest
        except Temporary:
            with self._changed:
                if key in self._due:
                    self._due.move_to_end(key)  # it may be refused for long where it is: the others come first
            raise
        with self._changed:
            if self._due.get(key) == _Due(told, at):
                del self._due[key]
            if digest:
                self._kept[key] = Kept(digest, at, told.uid)
            else:
                self._kept.pop(key, None)
        return True

    def _write(self, told: Mirrored, at: datetime) -> None:
        if told.digest:
            self._objects.apply(told.kind, object_of(told, at))
        else:
            self._objects.remove(told.kind, told.namespace, told.name)

    def _write_confirmation(self) -> bool:
        with self._changed:
            at, self._confirmed = self._confirmed, None
        if at is not None:
            self._objects.confirm(confirmation(self._cluster, at))
        return at is not None

    def _wait(self, seconds: float, *, until_told: bool = False) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or (until_told and self._has_work()), seconds)

    def _has_work(self) -> bool:
        return self._installed and (bool(self._due) or self._confirmed is not None)

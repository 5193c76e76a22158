"""Answers the admission checks of Kueue whose controller the relay is, in a thread of its own.

| Kueue                                        | the relay                                                           |
|----------------------------------------------|---------------------------------------------------------------------|
| has an AdmissionCheck of ours                | says once that it is active; never that it is not, for a failure    |
| reserves quota for a workload, check Pending | tells the functions of its demand, as if its leaders waited         |
| has it wait                                  | says in the check what it waits for                                 |
|                                              | Ready once its slices stand                                         |
| takes the quota away                         | tells the functions that it is suspended, as it is                  |

An admission that passes all this is not enough for pods to run: a gang's are held by their gate until all stand.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from queue import Empty, Queue
from typing import Protocol

import structlog

from relay.health import Health
from relay.kueue.books import KueueBooks, KueueEvent
from relay.kueue.findings import NONE_NEEDED, Progress, Told, finding
from relay.kueue.objects import AdmissionCheck, CheckState, Queued
from relay.kueue.reservations import Reservation, kind_of
from relay.kueue.rules import Finding, to_write
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.ports.publisher import AnyMirror, MirrorConfirmed

_log = structlog.get_logger()

LOOK_SECONDS = 1.0
KNOWN_SECONDS = 10.0
KNOWN_WITHIN = timedelta(minutes=2)
"""After which suspended workloads are told of as they are, though Kueue's objects could not be read."""
MOST_EVENTS = 1_000
_PART = "admission checks"
ACTIVE_MESSAGE = "The relay of the TPU slice provisioner answers it."
NO_PARAMETERS = "spec.parameters: this check has none; create it anew without them."


class Calls(Protocol):
    """As `relay.kueue.calls.KueueCalls`."""

    def apply(self, to: Queued, ours: frozenset[str], finding: Finding, now: datetime) -> bool: ...

    def announce(self, check: AdmissionCheck, *, active: bool, message: str, now: datetime) -> None: ...

    def asks_us(self, queued: Queued) -> bool:
        """Return whether what a Workload stands for may ask for slices from here."""


class View(Protocol):
    """The cluster as the relay sees it; may raise Temporary."""

    def reserve(self, reservations: Mapping[WorkloadUid, Reservation]) -> None:
        """Have the slices of these suspended workloads made, and of no others."""

    def progress(self, workloads: Collection[WorkloadUid]) -> Mapping[WorkloadUid, Progress]:
        """Return these workloads as far as they are known, and nothing while a watch is interrupted."""


class CheckKeeper:
    """Owns Kueue's objects in the thread of `run`; `now` runs evenly, and shows the time of day."""

    def __init__(self, calls: Calls, view: View, now: Callable[[], datetime], health: Health) -> None:
        self._calls, self._view, self._now, self._health = calls, view, now, health
        self._events: Queue[KueueEvent] = Queue(MOST_EVENTS)
        self._books = KueueBooks()
        self._began = now()
        self._checks_known = threading.Event()
        self._reserved: Mapping[WorkloadUid, Reservation] | None = None
        """What the relay was told last; None: nothing yet."""
        self._told: dict[WorkloadUid, Told] = {}
        """What the functions told of workloads; set by any thread."""
        self._quota: dict[str, tuple[datetime | None, datetime]] = {}
        """Since when each Workload has quota, by Kueue's clock in whole seconds, and when that was seen; by its UID."""
        self._told_at: dict[str, datetime] = {}
        """When something was written of a Workload that has quota, by its UID."""
        self._written: dict[str, str] = {}
        """The version of each Workload that was written to last: its next one shows it."""
        self._failed: set[str] = set()
        """The UIDs of those that could not be written to: others come first."""
        self._stopping = threading.Event()

    def put(self, event: KueueEvent) -> None:
        """Put what a watch delivers on the queue; wait while it is full."""
        self._events.put(event)

    def is_asked(self) -> bool:
        """Return whether Kueue has a check of ours, once that is known. May be called by any thread."""
        self._checks_known.wait(KNOWN_SECONDS)
        return bool(self._books.ours)

    def tell(self, told: AnyMirror) -> None:
        """Keep what the functions told of workloads. May be called by any thread."""
        if not isinstance(told, MirrorConfirmed):
            for shown in (each.workload for each in told.objects if each.workload is not None):
                uid, before = shown.owner.uid, self._told.get(shown.owner.uid)
                if before is None or before.at <= told.at:
                    self._told[uid] = Told(shown=shown, at=told.at, heard_at=self._now())

    def run(self) -> None:
        """Handle what the watches deliver until `stop` is called; look at least every `LOOK_SECONDS`."""
        while not self._stopping.is_set():
            self.take(LOOK_SECONDS)
            self.look()

    def stop(self) -> None:
        self._stopping.set()

    def take(self, at_most: float = 0.0) -> None:
        """Handle the events that wait, the first of them for at most so many seconds."""
        self._health.ticked(_PART)
        try:
            self._take(self._events.get(timeout=at_most) if at_most else self._events.get_nowait())
            for _ in range(self._events.qsize()):
                self._take(self._events.get_nowait())
        except Empty:
            return

    def look(self) -> None:
        """Write what is to be written; what fails is looked at again."""
        try:
            self._announce()
            self._reserve()
            self._answer()
        except (Temporary, Permanent) as trouble:
            _log.warning(LogEvent.ADMISSION_CHECK_FAILED, error=str(trouble))

    def _take(self, event: KueueEvent) -> None:
        self._health.ticked(event.kind)
        self._books.take(event)
        if self._books.checks_known:
            self._checks_known.set()

    def _announce(self) -> None:
        for each in self._books.checks:
            if each.active is each.parameters or each.active is None:
                active, message = not each.parameters, NO_PARAMETERS if each.parameters else ACTIVE_MESSAGE
                self._calls.announce(each, active=active, message=message, now=self._now())

    def _reserve(self) -> None:
        """Have the relay know for whom quota is reserved; for nobody, if Kueue does not say it in time."""
        if not self._books.known and (self._reserved is not None or self._now() - self._began < KNOWN_WITHIN):
            return
        reservations = self._books.reservations()
        if reservations != self._reserved:
            self._view.reserve(reservations)
            self._reserved = reservations

    def _answer(self) -> None:
        asked, ours = self._books.asked(), self._books.ours
        self._forget(asked)
        seen = self._view.progress({uid for each in asked if each.holds_quota and (uid := _owner(each))})
        others_wait = {each.uid for each in asked if each.reserved_at is None and not each.over}
        for each in sorted(asked, key=lambda it: it.uid in self._failed):
            if self._written.get(each.uid) != each.version:
                self._write(each, ours, self._found(each, seen, others_wait=bool(others_wait)))

    def _found(self, queued: Queued, seen: Mapping[WorkloadUid, Progress], *, others_wait: bool) -> Finding | None:
        """Return what is found of a workload; one that the relay does not know is looked up: it may ask for no TPU."""
        uid = _owner(queued)
        if not queued.holds_quota:
            return None
        if uid is None:
            return NONE_NEEDED
        if (known := seen.get(uid)) is not None:
            return finding(queued, known, self._told_since(queued, uid), self._now(), others_wait=others_wait)
        settled = queued.admitted or all(each.state is CheckState.READY for each in self._books.of_ours(queued))
        return None if settled or self._calls.asks_us(queued) else NONE_NEEDED

    def _told_since(self, queued: Queued, uid: WorkloadUid) -> Told | None:
        """Return what the functions told of a workload since it has quota; None: nothing."""
        told, (since, seen_at) = self._told.get(uid), self._quota[queued.uid]
        is_news = told is not None and told.heard_at >= seen_at and (since is None or told.at >= since)
        return told if is_news else None

    def _forget(self, asked: Collection[Queued]) -> None:
        """Forget what was written to those without quota: once they have some they are told at once."""
        there, with_quota = {each.uid for each in asked}, {each.uid for each in asked if each.holds_quota}
        owners, now = {_owner(each) for each in asked}, self._now()
        known = {each.uid: (each.reserved_at, now) for each in asked if each.holds_quota}
        before = {uid: quota for uid, quota in self._quota.items() if uid in known and quota[0] == known[uid][0]}
        self._quota = known | before
        self._told_at = {uid: at for uid, at in self._told_at.items() if uid in with_quota}
        self._written = {uid: version for uid, version in self._written.items() if uid in there}
        self._failed &= there
        for uid in [uid for uid in [*self._told] if uid not in owners]:
            self._told.pop(uid, None)

    def _write(self, queued: Queued, ours: frozenset[str], found: Finding | None) -> None:
        self._health.ticked(_PART)
        now = self._now()
        finding = to_write(queued, ours, found, now, self._told_at.get(queued.uid))
        if finding is None:
            return
        self._failed.add(queued.uid)
        try:
            if self._calls.apply(queued, ours, finding, now):
                _log.info(LogEvent.ADMISSION_CHECK_WRITTEN, workload=_name(queued), state=finding.state)
                self._told_at[queued.uid] = now
            self._failed.discard(queued.uid)
        except Permanent as refused:
            _log.error(LogEvent.ADMISSION_CHECK_FAILED, workload=_name(queued), error=str(refused))
        self._written[queued.uid] = queued.version


def _owner(queued: Queued) -> WorkloadUid | None:
    """Return the UID of the workload that a Workload stands for; None: it is of a kind that has its slices later."""
    return WorkloadUid(queued.owner.uid) if queued.owner is not None and kind_of(queued) is not None else None


def _name(queued: Queued) -> str:
    return f"{queued.namespace}/{queued.name}"

"""One thread owns the fact queue: it takes what the others put on a queue, and posts the facts that are due.

| who                 | puts                                              | and then             |
|---------------------|---------------------------------------------------|----------------------|
| watches             | `WatchEvent`: what they see                       | goes on              |
| inbox               | `Asked`: a question that facts will answer        | goes on              |
| inbox, node patcher,| `Read`: what it wants to know from the fact queue,| waits for the answer |
| relay.node_groups   | or to tell it                                     |                      |
| lookups             | `LookedUp`: facts that can be published now       | goes on              |

The owner never waits for the network: what is unknown of facts is looked up by others (`relay.lookups`), and facts are
posted to the outbox. So heartbeats, and all facts that depend on no look-up, go out however slow the API server is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime, timedelta
from queue import Empty, Queue
from typing import Any, TypeVar

import structlog

from relay.agenda import Subject
from relay.fact_queue import FactQueue
from relay.gangs.gates import Gates
from relay.health import Health
from relay.kueue.findings import Progress
from relay.kueue.reservations import Reservation, may_be_reserved
from relay.lookups.threads import VOLUMES_AGAIN_AFTER, Done, Due, LookedUp, lacks_volumes, without_unknown
from relay.lookups.users import PodsOn
from relay.node_groups.evictor import Eviction, evictions
from relay.node_groups.keeper import not_held
from relay.node_patches import NodePatch, needed_patches
from relay.objects import (
    Bookmarked,
    Failed,
    Kind,
    Known,
    Leader,
    Listed,
    Lost,
    Pool,
    Saw,
    Seen,
    Ticked,
    Unparseable,
    WatchEvent,
    Workload,
)
from relay.telling.workloads import HeldBack
from tpu_slices.domain.model.facts import Fact
from tpu_slices.domain.model.node_groups import NodesExpected
from tpu_slices.domain.model.questions import FactQuestion, Question
from tpu_slices.domain.model.slices import ClaimId, WorkloadJob, WorkloadUid
from tpu_slices.ports.errors import Temporary
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.wire.gangs import ALL

_log = structlog.get_logger()
T = TypeVar("T")

SHORTEST, LONGEST = 0.05, 0.5
"""Seconds between two checks for facts that are due."""
MOST_EVENTS = 1_000
"""The most that waits on the queue: beyond it, watches wait for the owner, and the API server for them."""
ANSWERED_WITHIN = 30.0
"""Seconds; an owner that takes longer has ended or hangs."""
LAST_LOOKUPS = timedelta(seconds=3)
"""How long look-ups may take at the end: what is unknown then stays so."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that facts will answer, or that is answered beside them."""

    question: FactQuestion | Question


@dataclass(frozen=True, slots=True)
class Read:
    """What another thread wants to know of the fact queue."""

    read: Callable[[FactQueue], Any]
    answer: Future[Any]


Event = WatchEvent | Asked | Read | LookedUp


class Relay:
    """Owns the fact queue in the thread of `run`; every other method may be called by any thread.

    Implements `inbox.ClusterView`. `look_up` begins a look-up, and puts what is found. `now` is a monotonic clock, used
    for intervals only.
    """

    def __init__(
        self,
        queue: FactQueue,
        now: Callable[[], datetime],
        look_up: Callable[[Due, Done], None],
        post: Callable[[Sequence[Fact]], None],
        health: Health,
    ) -> None:
        self._events: Queue[Event] = Queue(MOST_EVENTS)
        self._queue = queue
        self._now = now
        self._health = health
        self._look_up = look_up
        self._post = post
        self.nodes_expected: Callable[[NodesExpected], None] = lambda _: None
        """Called about nodes that are expected, by any thread."""
        self.gates = Gates(queue)
        """Owned as the fact queue is, but for what is set once at the start."""
        self._unknown: dict[Subject, Due] = {}
        self._complete = threading.Event()
        self._stopping = threading.Event()

    def put(self, event: Event) -> None:
        """Put an event on the queue; wait while it is full."""
        self._events.put(event)

    def ask(self, question: FactQuestion | Question) -> None:
        self.put(Asked(question))

    def expect(self, expected: NodesExpected) -> None:
        """Have these nodes labelled as they come."""
        self.nodes_expected(expected)

    def leader_pod(self, job: WorkloadJob) -> Leader | None:
        return self._read(lambda queue: queue.cache.leader_pod(job))

    def needed_patches(self) -> tuple[NodePatch, ...]:
        return self._read(lambda queue: needed_patches(queue.cache, queue.closing, self._now()))

    def lacks_chips(self, slice_id: ClaimId) -> bool:
        return self._read(lambda queue: queue.cache.lacks_chips(slice_id))

    def held_back(self) -> list[HeldBack]:
        return self._read(lambda queue: queue.held_back(self._now()))

    def unserved(self) -> list[Leader] | None:
        return self._read(FactQueue.unserved)

    def groups_not_held(self) -> tuple[Workload, ...]:
        return self._read(lambda queue: not_held(queue.cache))

    def needed_evictions(self) -> tuple[Eviction, ...]:
        return self._read(lambda queue: evictions(queue.cache, queue.closing))

    def evicted(self, pool: Pool) -> None:
        self._read(lambda queue: queue.evicted(pool, self._now()))

    def reserve(self, reservations: Mapping[WorkloadUid, Reservation]) -> None:
        """Have these suspended workloads, for which Kueue has quota, ask for slices, and no others."""
        self._read(lambda queue: queue.reserve(reservations, self._now()))

    def is_reserved(self, uid: WorkloadUid) -> bool:
        return self._read(lambda queue: queue.reservations.has(uid))

    def progress(self, workloads: Collection[WorkloadUid]) -> Mapping[WorkloadUid, Progress]:
        """Return these workloads with how many of their slices stand, as far as that is known."""
        return self._read(lambda queue: {} if queue.interrupted else dict(self._progress(queue, workloads)))

    def _progress(self, queue: FactQueue, workloads: Collection[WorkloadUid]) -> Iterator[tuple[WorkloadUid, Progress]]:
        for uid in workloads:
            if (known := queue.cache.workload(uid)) is not None and not may_be_reserved(known):
                stand, of = self.gates.standing.counted(known, ALL) if known.served else (0, 0)
                yield uid, Progress(workload=known, stand=stand, of=of)

    def _read(self, read: Callable[[FactQueue], T]) -> T:
        answer: Future[T] = Future()
        self.put(Read(read, answer))
        try:
            return answer.result(ANSWERED_WITHIN)
        except TimeoutError as late:
            raise Temporary("the relay's fact queue does not answer") from late

    def wait_until_complete(self) -> None:
        """Block until every list is in place, or `stop` is called."""
        self._complete.wait()

    def stop(self) -> None:
        self._stopping.set()
        self._complete.set()

    def run(self) -> None:
        """Handle events and post facts until `stop` is called, then those that are still being gathered."""
        while not self._stopping.is_set():
            self._health.ticked("facts")
            self.turn(self._pause())
        self._end()

    def turn(self, at_most: float = 0.0) -> None:
        """Handle the events that wait, for the first at most so many seconds, and post the facts that are due."""
        self._take_events(at_most)
        self._publish(self._queue.due(self._now()))
        self.gates.turn(self._now())

    def _end(self) -> None:
        """Post what is left; what is still unknown after a while is left out."""
        self._take_events(0.0)
        self._publish(self._queue.flush(self._now()))
        deadline = self._now() + LAST_LOOKUPS
        while self._unknown and self._now() < deadline:
            self._take_events(SHORTEST)
        for due in [*self._unknown.values()]:
            self._known(LookedUp(due.subject, without_unknown(due)))
        self._post([fact for due in self._queue.flush(self._now()) for fact in without_unknown(due)])

    def _take_events(self, at_most: float) -> None:
        try:
            self._take(self._events.get(timeout=at_most) if at_most else self._events.get_nowait())
            for _ in range(self._events.qsize()):
                self._take(self._events.get_nowait())
        except Empty:
            return

    def _publish(self, dues: Sequence[Due]) -> None:
        """Post facts at once, unless something is unknown of them."""
        self._post([fact for due in dues if due.unknown is None for fact in due.facts])
        for due in dues:
            if due.unknown is not None:
                self._unknown[due.subject] = due
                self._look_up(due, self.put)

    def _known(self, found: LookedUp) -> None:
        """Post facts that were looked up, unless they were posted without that."""
        due = self._unknown.pop(found.subject, None)
        if due is None:
            return
        again_at = self._now() + VOLUMES_AGAIN_AFTER if lacks_volumes(found.facts) else None
        self._queue.resume(found.subject, again_at)
        self._post(found.facts)
        if isinstance(due.unknown, PodsOn):
            self._queue.looked(due, found, self._now())

    def _take(self, event: Event) -> None:
        match event:
            case Asked(question):
                self._queue.ask(question, self._now())
            case Read(read, answer):
                answer.set_result(read(self._queue))
            case LookedUp():
                self._known(event)
            case Ticked(kind):
                self._health.ticked(kind)
            case Failed(kind, why):
                self._queue.failed(kind)
                self._health.failed(kind, why)
            case Listed() | Saw() | Lost() | Bookmarked():
                self._see(event)
                self._health.bookmarked(event.kind)
                if self._queue.complete:
                    self._complete.set()

    def _see(self, event: Listed[Kind, Known] | Saw[Kind, Known] | Lost[Kind, Known] | Bookmarked[Kind]) -> None:
        now = self._now()
        match event:
            case Listed(kind, listed, version):
                for each in listed:
                    _log_parse_error(each)
                self._queue.listed(kind, listed, version, now)
                for each in listed:
                    self.gates.saw(each, now)
            case Saw(kind, seen, version):
                _log_parse_error(seen)
                self._queue.bookmarked(kind, version, now)
                new = isinstance(seen, Leader) and self._queue.cache.leaders.get(seen.identity) is None
                self._queue.saw(seen, now)
                self.gates.saw(seen, now, new=new)
            case Lost(kind, identity, version, last, deleted):
                self._queue.bookmarked(kind, version, now)
                final = last if isinstance(last, Workload) else None
                self._queue.lost(kind, identity, now, final, version if deleted else None)
            case Bookmarked(kind, version):
                self._queue.bookmarked(kind, version, now)

    def _pause(self) -> float:
        due = min(filter(None, (self._queue.next_due(), self.gates.next_due())), default=None)
        return LONGEST if due is None else min(LONGEST, max(SHORTEST, (due - self._now()).total_seconds()))


def _log_parse_error(seen: Seen) -> None:
    match seen:
        case Workload(parse_error=str(why)):
            _log.warning(LogEvent.TEMPLATE_UNPARSEABLE, namespace=seen.name.namespace, name=seen.name.name, error=why)
        case Unparseable(kind, identity, why):
            _log.warning(LogEvent.OBJECT_UNPARSEABLE, kind=kind, id=identity, error=why)
        case _:
            pass

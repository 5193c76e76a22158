"""The fact queue, shared by threads: watches write to it, the inbox reads from it, and due facts are posted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime

import structlog

from relay.fact_queue import FactQueue
from relay.health import Health
from relay.lookups import Open
from relay.node_patches import needed_patches
from relay.objects import JobSet, Kind, Leader, NodePatch, Seen, Unparseable
from tpu_slices.domain.model.facts import Fact, HostsListQuestion, HostsQuestion, SlicesWanted, WorkloadsListed
from tpu_slices.domain.model.slices import WorkloadJob
from tpu_slices.ports.log_events import LogEvent

_log = structlog.get_logger()

SHORTEST, LONGEST = 0.05, 0.5
"""Seconds between two checks for facts that are due."""


class Relay:
    """One lock around the fact queue, and one loop that posts facts that are due.

    Implements `watch.FactSink` and `inbox.ClusterView`. Before due facts are posted, `complete` looks up what they
    depend on (`relay.lookups`); the lock is not held meanwhile. `now` is a monotonic clock, used for intervals only.
    """

    def __init__(
        self,
        queue: FactQueue,
        now: Callable[[], datetime],
        complete: Callable[[Sequence[Fact], Open], list[Fact]],
        post: Callable[[list[Fact]], None],
        health: Health,
    ) -> None:
        self._queue = queue
        self._now = now
        self._health = health
        self._complete = complete
        self._post = post
        self._changed = threading.Condition()
        self._stopping = False

    def listed(self, kind: Kind, seen: Sequence[Seen], version: str) -> None:
        for each in seen:
            _log_parse_error(each)
        with self._changed:
            self._queue.listed(kind, seen, version, self._now())
            self._changed.notify_all()
        self._health.bookmarked(kind)

    def saw(self, kind: Kind, seen: Seen, version: str) -> None:
        _log_parse_error(seen)
        with self._changed:
            self._queue.bookmarked(kind, version, self._now())
            self._queue.saw(seen, self._now())
            self._changed.notify_all()
        self._health.bookmarked(kind)

    def lost(self, kind: Kind, identity: str, version: str, last: JobSet | None) -> None:
        with self._changed:
            self._queue.bookmarked(kind, version, self._now())
            self._queue.lost(kind, identity, self._now(), last)
            self._changed.notify_all()
        self._health.bookmarked(kind)

    def bookmarked(self, kind: Kind, version: str) -> None:
        with self._changed:
            self._queue.bookmarked(kind, version, self._now())
        self._health.bookmarked(kind)

    def ticked(self, kind: Kind) -> None:
        self._health.ticked(kind)

    def failed(self, kind: Kind, why: str) -> None:
        with self._changed:
            self._queue.failed(kind)
        self._health.failed(kind, why)

    def workload_list(self, asked_at: datetime) -> tuple[WorkloadsListed, ...]:
        with self._changed:
            return self._queue.workload_list(asked_at, self._now())

    def leader_pod(self, job: WorkloadJob) -> Leader | None:
        with self._changed:
            return self._queue.cache.leader_pod(job)

    def ask(self, question: HostsQuestion | HostsListQuestion) -> None:
        with self._changed:
            self._queue.ask(question, self._now())
            self._changed.notify_all()

    def needed_patches(self) -> tuple[NodePatch, ...]:
        with self._changed:
            return needed_patches(self._queue.cache, self._queue.closing)

    def wait_until_complete(self) -> None:
        """Block until every list is in place, or `stop` is called."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue.complete or self._stopping)

    def run(self) -> None:
        """Post facts that are due until `stop` is called, then those that are still being gathered."""
        stopping = False
        while not stopping:
            self._health.ticked("report")
            with self._changed:
                self._changed.wait(self._pause())
                stopping = self._stopping
            self.publish_due(last=stopping)

    def publish_due(self, *, last: bool = False) -> None:
        """Post facts that are due; with `last`, also those that are still being gathered."""
        with self._changed:
            facts = self._queue.flush(self._now()) if last else self._queue.due(self._now())
            in_demand = {fact.workload.owner.uid for fact in facts if isinstance(fact, SlicesWanted)}
            mounted = {uid: self._queue.cache.claims(uid) for uid in in_demand}
            left = Open(mounted, [self._queue.vacancy(fact) for fact in facts])
        self._post(self._complete(facts, left))

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def _pause(self) -> float:
        due = self._queue.next_due()
        if self._stopping or due is None:
            return SHORTEST if self._stopping else LONGEST
        return min(LONGEST, max(SHORTEST, (due - self._now()).total_seconds()))


def _log_parse_error(seen: Seen) -> None:
    match seen:
        case JobSet(parse_error=str(why)):
            _log.warning(LogEvent.TEMPLATE_UNPARSEABLE, namespace=seen.name.namespace, jobset=seen.name.name, error=why)
        case Unparseable(kind, identity, why):
            _log.warning(LogEvent.OBJECT_UNPARSEABLE, kind=kind, id=identity, error=why)
        case _:
            pass

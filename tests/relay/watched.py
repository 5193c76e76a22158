"""A fact queue whose time is stepped by the test, and ways to read its facts."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from relay import translate
from relay.agenda import Timing
from relay.fact_queue import FactQueue
from relay.objects import JobSet, Kind, Seen
from relay.relay import Relay
from tests.builders import CLUSTER
from tests.relay.objects import node
from tpu_slices.domain.model.facts import (
    Fact,
    Heartbeat,
    HostsChanged,
    SlicesWanted,
    WorkloadChanged,
    WorkloadState,
)
from tpu_slices.wire.messages import decode_fact, encode_fact

START = datetime(2026, 11, 1, 12, tzinfo=UTC)
READERS = {
    Kind.JOBSETS: translate.jobset,
    Kind.LEADERS: translate.leader,
    Kind.HOSTS: translate.host,
}
KINDS = {"JobSet": Kind.JOBSETS, "Pod": Kind.LEADERS, "Node": Kind.HOSTS}


def a_relay(queue: FactQueue, now: Callable[[], datetime], **others: Any) -> Relay:
    """Return a relay that looks nothing up unless a test says so."""
    return Relay(queue, now, **{"complete": lambda facts, _: list(facts), **others})


class Watched:
    """A fact queue and its clock; every list was empty at the start, and the first heartbeat has been taken."""

    def __init__(self) -> None:
        self.queue = FactQueue(CLUSTER, Timing())
        self.now = START
        for kind in Kind:
            self.relist(kind)
        self.due_facts()

    def relist(self, kind: Kind, *objects: dict[str, Any], version: int = 1) -> None:
        self.queue.listed(kind, [read(obj) for obj in objects], str(version), self.now)

    def see(self, *objects: dict[str, Any]) -> None:
        for obj in objects:
            self.queue.saw(read(obj), self.now)
            self.queue.bookmarked(KINDS[obj["kind"]], obj["metadata"]["resourceVersion"], self.now)

    def lose(self, obj: dict[str, Any], version: int = 100) -> None:
        seen = read(obj)
        kind = KINDS[obj["kind"]]
        self.queue.lost(kind, seen.identity, self.now, seen if isinstance(seen, JobSet) else None)
        self.queue.bookmarked(kind, str(version), self.now)

    def pass_time(self, seconds: float) -> None:
        """Let time pass while every watch sends bookmarks."""
        self.now += timedelta(seconds=seconds)
        for kind in Kind:
            self.queue.bookmarked(kind, "1", self.now)

    def due_facts(self) -> list[Fact]:
        """Return the facts that are due now, heartbeats left out; they are due only once. The functions accept each."""
        facts = self.queue.due(self.now)
        for fact in facts:
            message = encode_fact(fact)
            assert decode_fact(message.data, message.attributes) == fact
        return [fact for fact in facts if not isinstance(fact, Heartbeat)]

    def listed(self) -> list[str] | None:
        """Return the UIDs of the list of JobSets, None if the relay is not sure of it."""
        parts = self.queue.workload_list(self.now, self.now)
        return [uid for part in parts for uid in part.uids] if parts else None


def read(obj: dict[str, Any]) -> Seen:
    seen = READERS[KINDS[obj["kind"]]](obj)
    assert seen is not None
    return seen


def demand(facts: Sequence[Fact]) -> list[list[int]]:
    return [[leader.job_index for leader in fact.waiting] for fact in facts if isinstance(fact, SlicesWanted)]


def counts(facts: Sequence[Fact]) -> list[tuple[int, int]]:
    return [(fact.usable, fact.joined) for fact in reports(facts)]


def states(facts: Sequence[Fact]) -> list[tuple[str, WorkloadState]]:
    return [(fact.workload.owner.uid, fact.state) for fact in facts if isinstance(fact, WorkloadChanged)]


def reports(facts: Sequence[Fact]) -> list[HostsChanged]:
    return [fact for fact in facts if isinstance(fact, HostsChanged)]


def occupants(facts: Sequence[Fact]) -> list[list[str]]:
    """Return the occupants' pods of each report of hosts."""
    return [[occupant.pod_uid for occupant in fact.occupants] for fact in reports(facts)]


def nodes(count: int, **parts: Any) -> list[dict[str, Any]]:
    return [node(number, **parts) for number in range(count)]

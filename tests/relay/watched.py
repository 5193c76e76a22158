"""A fact queue whose time is stepped by the test, and ways to read its facts."""

import gc
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from types import FunctionType, ModuleType
from typing import Any, Self, TypeVar

from relay import translate
from relay.agenda import Timing
from relay.fact_queue import FactQueue
from relay.health import Health
from relay.lookups.threads import Due, LookedUp, Mounted, VolumeLookups
from relay.lookups.users import Looks, PodsOn, Users
from relay.node_patches import NodePatch, needed_patches
from relay.objects import Host, Kind, Leader, Seen, Workload
from relay.pods.reading import pod_of_a_group, pod_of_a_job
from relay.relay import Event, Relay
from tests.builders import CLUSTER
from tests.relay.objects import Json, node, read_jobset
from tpu_slices.domain.model.facts import (
    Fact,
    Family,
    Heartbeat,
    HostsChanged,
    Listed,
    SlicesWanted,
    WorkloadChanged,
    WorkloadState,
)
from tpu_slices.domain.model.questions import ListQuestion, RepeatQuestion
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.domain.records.hosts import key_of
from tpu_slices.wire.messages import decode_fact, encode_fact
from tpu_slices.wire.readers import READERS as READERS_OF
from tpu_slices.wire.workloads import COMPLETION_INDEX
from tpu_slices_simulator.relays import due_facts

START = datetime(2026, 11, 1, 12, tzinfo=UTC)
READERS: Mapping[Kind, Callable[[dict[str, Any]], Seen | None]] = {
    Kind.JOBSETS: read_jobset,
    Kind.JOBS: partial(translate.workload, READERS_OF[OwnerKind.JOB]),
    Kind.LEADER_WORKER_SETS: partial(translate.workload, READERS_OF[OwnerKind.LEADER_WORKER_SET]),
    Kind.NODE_GROUPS: partial(translate.workload, READERS_OF[OwnerKind.TPU_NODE_GROUP]),
    Kind.LEADERS: pod_of_a_job,
    Kind.UNINDEXED: translate.leader,
    Kind.GROUP_LEADERS: pod_of_a_group,
    Kind.PODS: translate.pod_by_itself,
    Kind.HOSTS: translate.host,
}
KINDS = {
    "JobSet": Kind.JOBSETS,
    "Job": Kind.JOBS,
    "LeaderWorkerSet": Kind.LEADER_WORKER_SETS,
    "TPUNodeGroup": Kind.NODE_GROUPS,
    "Pod": Kind.LEADERS,
    "Node": Kind.HOSTS,
}


class SteppedRelay(Relay):
    """A relay without a thread of its own: it takes an event as soon as that is put, and `turn` posts what is due."""

    def put(self, event: Event) -> None:
        super().put(event)
        self._take_events(0.0)


def nothing_found(due: Due) -> LookedUp:
    """Return what looking up finds where no pod, volume or workload is."""
    return LookedUp(due.subject, due.facts, Users())


def a_relay(
    queue: FactQueue,
    now: Callable[[], datetime],
    post: Callable[[Sequence[Fact]], None],
    health: Health,
    look_up: Callable[[Due], LookedUp] = nothing_found,
) -> SteppedRelay:
    """Return a relay whose look-ups end at once; they find nothing unless a test says so."""
    return SteppedRelay(queue, now, lambda due, done: done(look_up(due)), post, health)


def looking_up(volumes: VolumeLookups, looks: Looks) -> Callable[[Due], LookedUp]:
    """Return a function that looks up what is unknown, as the threads of `Lookups` do."""

    def look_up(due: Due) -> LookedUp:
        match due.unknown:
            case Mounted() as mounted:
                return LookedUp(due.subject, volumes.completed(due.facts, mounted))
            case PodsOn() as asked:
                return LookedUp(due.subject, *looks.looked(due.facts, asked))
            case None:
                return LookedUp(due.subject, due.facts)

    return look_up


def none_of(queue: FactQueue, *kinds: Kind) -> None:
    """Let the queue learn that there are no objects of these kinds."""
    for kind in kinds:
        queue.listed(kind, [], "1", START)


class Watched:
    """A fact queue and its clock; every list was empty at the start, and the first heartbeat has been taken."""

    def __init__(self) -> None:
        self.queue = FactQueue(CLUSTER, Timing())
        self.now = START
        for kind in Kind:
            self.relist(kind)
        self.due_facts()

    @classmethod
    def after(cls, *objects: dict[str, Any]) -> Self:
        """Return the fact queue of a relay that starts when these objects are there; nothing was taken yet."""
        started = cls.__new__(cls)
        started.queue, started.now = FactQueue(CLUSTER, Timing()), START
        for kind in Kind:
            started.relist(kind, *(obj for obj in objects if kind_of(obj) is kind))
        return started

    def relist(self, kind: Kind, *objects: dict[str, Any], version: int = 1) -> None:
        self.queue.listed(kind, [read(obj) for obj in objects], str(version), self.now)

    def see(self, *objects: dict[str, Any]) -> None:
        for obj in objects:
            self.queue.saw(read(obj), self.now)
            self.queue.bookmarked(kind_of(obj), obj["metadata"]["resourceVersion"], self.now)

    def lose(self, obj: dict[str, Any], version: int = 100) -> None:
        seen = read(obj)
        kind = kind_of(obj)
        self.queue.lost(kind, seen.identity, self.now, seen if isinstance(seen, Workload) else None, str(version))
        self.queue.bookmarked(kind, str(version), self.now)

    def pass_time(self, seconds: float) -> None:
        """Let time pass while every watch sends bookmarks."""
        self.now += timedelta(seconds=seconds)
        for kind in Kind:
            self.queue.bookmarked(kind, "1", self.now)

    def asked_for_hosts(self) -> None:
        """Let the functions ask to repeat the hosts of every pool that was told, as they do of those that differ."""
        keys = tuple(key_of(*pool) for pool in self.queue._published.digests)
        self.queue.ask(RepeatQuestion(family=Family.HOSTS, keys=keys), self.now)

    def patches(self) -> tuple[NodePatch, ...]:
        """Return the patches that nodes need now."""
        return needed_patches(self.queue.cache, self.queue.closing, self.now)

    def due_facts(self) -> list[Fact]:
        """Return the facts that are due now, heartbeats left out; they are due only once. The functions accept each."""
        facts = due_facts(self.queue, self.now)
        for fact in facts:
            message = encode_fact(fact)
            assert decode_fact(message.data, message.attributes) == fact
        return [fact for fact in facts if not isinstance(fact, Heartbeat)]

    def asked_for_list(self, family: Family) -> None:
        """Let the functions ask for the list of a family, as they do when the digests differ: all was told by then."""
        if self.now < START + Timing().introduce:
            self.pass_time(Timing().introduce.total_seconds())
        self.queue.ask(ListQuestion(family=family, asked_at=self.now), self.now)

    def digests(self, family: Family) -> Mapping[str, int]:
        """Ask for the list of a family, take what is due, and return what is listed by key."""
        self.asked_for_list(family)
        return digests_of(self.due_facts())

    def listed(self) -> list[str]:
        """Return the UIDs of the list of workloads."""
        return [*self.digests(Family.WORKLOADS)]


def kind_of(obj: dict[str, Any]) -> Kind:
    labels = obj["metadata"].get("labels") or {}
    if obj["kind"] == "Pod" and "leaderworkerset.sigs.k8s.io/name" in labels:
        return Kind.GROUP_LEADERS
    if obj["kind"] == "Pod" and COMPLETION_INDEX not in labels:
        return Kind.UNINDEXED
    return KINDS[obj["kind"]]


def read(obj: dict[str, Any]) -> Seen:
    seen = READERS[kind_of(obj)](obj)
    assert seen is not None
    return seen


def digests_of(facts: Sequence[Fact]) -> Mapping[str, int]:
    """Return what the one list among these facts has by key; fail if there is none, or another one."""
    (listed,) = (fact for fact in facts if isinstance(fact, Listed))
    return listed.digests


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


S = TypeVar("S", Workload, Leader, Host)


def read_as(kind: type[S], obj: Json) -> S:
    seen = read(obj)
    assert isinstance(seen, kind)
    return seen


def objects_kept(*parts: object) -> int:
    """Return the number of objects that these parts keep, however deep."""
    found: dict[int, object] = {}
    new = [*parts]
    while new:
        one = new.pop()
        if id(one) not in found and not isinstance(one, type | ModuleType | FunctionType):
            found[id(one)] = one
            new += gc.get_referents(one)
    return len(found)

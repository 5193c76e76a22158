"""A relay in memory: the production fact queue, what its watches show it, and what it looks up in the cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from relay.answers import answers
from relay.fact_queue import FactQueue
from relay.gangs.gates import Gates
from relay.hosts.occupants import HostPod
from relay.joining.tokens import Bootstrap, Tokens
from relay.lookups.threads import Due, LookedUp
from relay.lookups.users import Looks, PodsOn, Users, in_turn
from relay.node_groups import keeper
from relay.node_groups.evictor import Evictor, Pods, evictions
from relay.node_groups.keeper import NodeGroupKeeper, not_held
from relay.node_patches import NodePatch, needed_patches
from relay.objects import JobPod, Kind, Known, Pool, Workload, WorkloadName
from tpu_slices.domain.model.facts import Fact, Pinning
from tpu_slices.domain.model.gangs import Gating
from tpu_slices.domain.model.node_groups import NodesExpected
from tpu_slices.domain.model.questions import AnyQuestion, FactQuestion, Question
from tpu_slices.domain.model.slices import ClusterId, Owner, WorkloadUid
from tpu_slices.ports.clock import Clock


class ApiServer(Protocol):
    """What the relay reads of a cluster."""

    @property
    def version(self) -> str: ...

    @property
    def bootstrap(self) -> Bootstrap: ...

    def listed(self, kind: Kind) -> Sequence[Known]: ...

    def workload(self, owner: Owner) -> Mapping[str, Any] | None: ...

    @property
    def pinning(self) -> Pinning | None: ...
    @property
    def gating(self) -> Gating | None: ...

    @property
    def mirrored(self) -> int | None: ...

    def nodes_of(self, pool: Pool) -> Collection[str]: ...

    def chip_pods_on(self, node: str, *, exactly: bool) -> Sequence[HostPod]: ...

    def workload_named(self, name: WorkloadName) -> Workload | None: ...


class Groups(keeper.Groups, Pods, Protocol):
    """What it writes of TPUNodeGroups."""


class FakeRelay:
    """It has listed everything when it starts. While a watch hangs it shows nothing; then everything is listed anew."""

    def __init__(self, cluster: ClusterId, server: ApiServer, clock: Clock) -> None:
        self.queue = FactQueue(cluster, pinning=lambda: server.pinning)
        self.queue.gating = lambda: server.gating
        self.queue.mirrored = lambda: server.mirrored
        self._gates = Gates(self.queue)
        self._gates.open = self._let_go
        self._opening: dict[WorkloadName, Sequence[JobPod]] = {}
        self._server, self._clock = server, clock
        self._tokens = Tokens(server.bootstrap, clock.now)
        self._looks = Looks(server, clock.now, in_turn)
        self._hanging: frozenset[Kind] = frozenset()
        for kind in Kind:
            self._lists(kind)

    def hangs(self, kinds: frozenset[Kind]) -> None:
        """Let these watches hang, and no others."""
        back, self._hanging = self._hanging - kinds, kinds
        for kind in sorted(back):
            self._lists(kind)

    def saw(self, kind: Kind, seen: Known) -> None:
        if kind not in self._hanging:
            self.queue.saw(seen, self._clock.now())
            self._gates.saw(seen, self._clock.now())

    def lost(self, kind: Kind, identity: str, last: Workload | None = None) -> None:
        """Show that an object was deleted at the version that is the cluster's now."""
        if kind not in self._hanging:
            self.queue.lost(kind, identity, self._clock.now(), last, self._server.version)

    def lists_anew(self) -> None:
        """Let every watch break off, so that it has to begin with a list."""
        for kind in sorted(set(Kind) - self._hanging):
            self._lists(kind)

    def facts(self) -> Iterator[Fact]:
        """Yield what is published now."""
        version, now = self._server.version, self._clock.now()
        for kind in Kind:
            if kind not in self._hanging:
                self.queue.bookmarked(kind, version, now)
        while dues := self.queue.due(now):
            for due in dues:
                self.queue.resume(due.subject)
                if not isinstance(due.unknown, PodsOn):
                    yield from due.facts
                    continue
                facts, users = self._looks.looked(due.facts, due.unknown)
                yield from facts
                self.queue.looked(due, LookedUp(due.subject, facts, users), now)

    def asked(self, question: AnyQuestion) -> Sequence[Fact]:
        """Return the facts that answer a question at once; others come with the next facts."""
        return answers(question, self, self._server, self._tokens, self._clock.now())

    def ask(self, question: FactQuestion | Question) -> None:
        self.queue.ask(question, self._clock.now())

    def expect(self, expected: NodesExpected) -> None:
        """Label nothing: nodes here come with their labels."""

    def is_reserved(self, uid: WorkloadUid) -> bool:
        return self.queue.reservations.has(uid)

    def needed_patches(self) -> tuple[NodePatch, ...]:
        return needed_patches(self.queue.cache, self.queue.closing, self._clock.now())

    @property
    def is_blind(self) -> bool:
        """Whether a watch hangs: what it sees is not what is there."""
        return bool(self._hanging)

    def opens(self) -> list[str]:
        """Return the UIDs of the pods of gangs that may start now."""
        self._gates.turn(self._clock.now())
        return [each.pod_uid for pods in self._opening.values() for each in pods]

    def _let_go(self, name: WorkloadName, pods: Sequence[JobPod]) -> None:
        self._opening[name] = pods

    def tends(self, groups: Groups) -> None:
        """Hold TPUNodeGroups, and evict pods, as the threads of `relay.node_groups` do."""
        queue, now = self.queue, self._clock.now
        NodeGroupKeeper(lambda: not_held(queue.cache), groups, now).look()
        Evictor(lambda: evictions(queue.cache, queue.closing), groups, lambda pool: queue.evicted(pool, now())).look()

    def _lists(self, kind: Kind) -> None:
        listed, now = self._server.listed(kind), self._clock.now()
        self.queue.listed(kind, listed, self._server.version, now)
        for each in listed:
            self._gates.saw(each, now)


def due_facts(queue: FactQueue, now: datetime) -> list[Fact]:
    """Return the facts that are due; whatever is looked up for them, nobody is found."""
    facts: list[Fact] = []
    while dues := queue.due(now):
        facts += facts_of(queue, dues, now)
    return facts


def facts_of(queue: FactQueue, dues: Sequence[Due], now: datetime) -> list[Fact]:
    for due in dues:
        queue.resume(due.subject)
        if isinstance(due.unknown, PodsOn):
            queue.looked(due, LookedUp(due.subject, due.facts, Users()), now)
    return [fact for due in dues for fact in due.facts]

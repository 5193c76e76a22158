"""The whole provisioner in memory: the production flows on fakes, under a small cluster whose relay publishes facts.

Messages are delivered at least once; one whose handler crashes is delivered again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, cast

from relay.node_groups.writer import NodeGroupWriter
from relay.objects import PoolKey
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import Fact, Family, Heartbeat, HostsChanged, Listed, WorkloadState
from tpu_slices.domain.model.node_groups import NodesGone
from tpu_slices.domain.model.questions import ListQuestion
from tpu_slices.domain.model.slices import ClaimId, ClusterId, PoolName, SliceId, WorkloadUid, attempt_named, slice_id
from tpu_slices.domain.planning.pool_labels import labels_of_pool
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows.joining import hand_on
from tpu_slices.flows.looking import Told
from tpu_slices.flows.mirror.telling import mirroring
from tpu_slices.flows.receive import receive
from tpu_slices.flows.reconcile import reconcile_in_turn
from tpu_slices.flows.round_trip import echo_reconciled
from tpu_slices.flows.sweep import sweep
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices_simulator.api_server import ApiServer
from tpu_slices_simulator.cluster import FakeCluster
from tpu_slices_simulator.fakes.backend import FakeBackend
from tpu_slices_simulator.fakes.clock import FakeClock
from tpu_slices_simulator.fakes.gke import FakeOperation
from tpu_slices_simulator.fakes.publisher import FakePublisher
from tpu_slices_simulator.fakes.reservations import FakeReservations
from tpu_slices_simulator.fakes.store import FakeStore
from tpu_slices_simulator.fuse import Crash, Fuse, Fused
from tpu_slices_simulator.live import LiveWorkload

MINUTE = timedelta(minutes=1)
STEP = timedelta(seconds=6)
"""More than the relay takes to gather demand, or to close hosts."""


class System:
    """Nothing happens by itself: `steps` and `sweeps` let seconds pass, in which every part does what it can."""

    def __init__(self, settings: ClusterSettings, now: datetime, fuse: Fuse | None = None) -> None:
        self.settings = settings
        self.fuse = fuse or Fuse()
        self.clock = FakeClock(now)
        self.store = FakeStore()
        most = max(5, settings.limits.operations)
        self.backend = FakeBackend(self.clock, cluster_gke_id=settings.gke_id, operation_limit=most)
        self.reservations = FakeReservations(self.backend, self.clock)
        self.publisher = FakePublisher()
        self.cluster = FakeCluster(self.clock, settings.cluster)
        self.relay_lists_nothing = False
        """Whether it sees no workload, and is wrong."""
        self.relay_is_earlier = False
        """Whether its heartbeats have no digests, and it knows no ListQuestion."""
        self.passes_updates = True
        """Whether the relay's subscription to updates is one to its cluster's topic."""
        self.crashes = 0
        self._facts: deque[tuple[datetime, Fact]] = deque()
        """With the times at which they were published."""
        self._late: list[tuple[datetime, datetime, Fact]] = []
        """With the times at which they arrive and were published."""
        self._log_entries: list[tuple[datetime, FakeOperation]] = []
        """Operations that ended, and when the entry of GKE's audit log on each arrives."""
        self._taken_requests = self._taken_questions = self._taken_statuses = 0
        self.api_server = ApiServer(self.cluster)
        self._writer = NodeGroupWriter(self.api_server, self.api_server.lacks_chips)
        self._with_nodes: dict[PoolName, PoolKey] = {}
        self._bare: set[PoolName] = set()
        """The pools whose nodes lack our labels, as those of the pool were replaced."""
        publisher = cast("Any", Fused(self.publisher, self.fuse))
        self.deps = ReconcileDeps(
            store=mirroring(cast("Any", Fused(self.store, self.fuse)), publisher, self.clock),
            backend=cast("Any", Fused(self.backend, self.fuse)),
            publisher=publisher,
            clock=self.clock,
            reservations=cast("Any", Fused(self.reservations, self.fuse)),
        )
        self.store.put_settings(settings)

    # people

    @property
    def workloads(self) -> dict[WorkloadUid, LiveWorkload]:
        return self.cluster.workloads

    def ends(self, jobset: LiveWorkload, state: WorkloadState = WorkloadState.COMPLETED) -> None:
        jobset.state = state
        self.cluster.changes(jobset)
        self.relay_publishes()

    def suspends(self, jobset: LiveWorkload) -> None:
        jobset.ref = replace(jobset.ref, generation=jobset.ref.generation + 1)
        self.ends(jobset, WorkloadState.SUSPENDED)

    def resumes(self, jobset: LiveWorkload) -> None:
        jobset.ref = replace(jobset.ref, generation=jobset.ref.generation + 1)
        self.ends(jobset, WorkloadState.ACTIVE)

    def leaves(self, jobset: LiveWorkload, index: int = 0) -> None:
        """Let the leader of a Job leave its hosts; a new one waits in its place."""
        self.cluster.removes_pod(jobset, index)
        self.relay_publishes()

    @property
    def relay_is_dead(self) -> bool:
        return not self.cluster.relays

    @relay_is_dead.setter
    def relay_is_dead(self, dead: bool) -> None:
        self.cluster.runs_relays(0 if dead else max(1, len(self.cluster.relays)))

    def publish(self, fact: Fact) -> None:
        """Send a fact."""
        self._facts.append((self.clock.now(), fact))

    def tells_of_change(self, pool: PoolName) -> None:
        """Let GKE's audit log say that an operation of somebody else on a pool ended."""
        path = self.settings.path
        self.backend.ended.append(FakeOperation(name="theirs", pool=pool, cluster_path=path, creates=None, done=True))

    def told_after(self, ended: FakeOperation) -> Iterable[timedelta]:  # noqa: ARG002 - who overrides it asks
        """Return after which times GKE's audit log tells that an operation ended; none: it does not."""
        return (timedelta(0),)

    def loses_request(self) -> bool:
        """Return whether the next reconcile request never arrives."""
        return False

    # time

    def sweeps(self) -> None:
        self._survive(self._sweep)
        self.deliver()

    def steps(self) -> None:
        """Let the cluster, its relay and the functions do in a few seconds what needs no more time."""
        for _ in range(2):
            self.cluster_lives()
            self.deliver()
            self.clock.advance(STEP)

    def deliver(self) -> None:
        """Deliver every message until none is left; one whose handler crashes is delivered again."""
        now = self.clock.now()
        self._facts.extend((sent, fact) for at, sent, fact in self._late if at <= now)
        self._late = [each for each in self._late if each[0] > now]
        ended, self.backend.ended = self.backend.ended, []
        self._log_entries += ((now + after, each) for each in ended for after in self.told_after(each))
        logged = [each for at, each in self._log_entries if at <= now]
        self._log_entries = [each for each in self._log_entries if each[0] > now]
        for each in logged:
            self._survive(partial(self._follow, each))
        for _ in range(1_000_000):
            if not self._delivers_one():
                return
        raise AssertionError("messages never end")

    def _delivers_one(self) -> bool:
        """Return whether there was a message."""
        if self._facts:
            published_at, fact = self._facts.popleft()
            if not self._survive(partial(self._receive, fact, published_at)):
                self._facts.append((published_at, fact))
        elif self._taken_requests < len(self.publisher.requests):
            cluster, slice_ = self.publisher.requests[self._taken_requests]
            self._taken_requests += 1
            if not self.loses_request() and not self._survive(partial(self._reconcile, cluster, slice_)):
                self.publisher.requests.append((cluster, slice_))
        elif self.publisher.answers:
            cluster, slice_, answer = self.publisher.answers.pop(0)
            if not self.loses_request() and not self._survive(partial(self._reconcile_with, cluster, slice_, answer)):
                self.publisher.answers.append((cluster, slice_, answer))
        elif self.publisher.echoes:
            cluster, asked_at = self.publisher.echoes.pop(0)
            echo_reconciled(asked_at, cluster, self.deps)
        elif self.publisher.joins:
            cluster, token = self.publisher.joins.pop(0)
            if not self._survive(partial(hand_on, token, cluster, self.deps)):
                self.publisher.joins.append((cluster, token))
        else:
            return False
        return True

    # the functions; whoever measures what they use calls them as Pub/Sub does

    def _receive(self, fact: Fact, published_at: datetime) -> None:
        receive(fact, self.settings.cluster, self.deps, published_at)

    def _reconcile(self, cluster: ClusterId, slice_: ClaimId | SliceId) -> object:
        waiting, ended = self.publisher.waiting.get(slice_), slice_ in self.publisher.ended
        self.publisher.ended.discard(slice_)
        told = Told(ended=ended, waiting=waiting, slots=waiting is not None)
        return [*reconcile_in_turn(cluster, slice_, self.deps, told)]

    def _reconcile_with(self, cluster: ClusterId, slice_: SliceId, answer: HostsChanged) -> object:
        return [*reconcile_in_turn(cluster, slice_, self.deps, Told(answer=answer))]

    def _follow(self, ended: FakeOperation) -> object:
        created, named = ended.creates and ended.failure is None, attempt_named(ended.pool)
        if named is None:
            return None
        told = Told(ended=True, created=ended.name if created else None, slots=True)
        return [*reconcile_in_turn(self.settings.cluster, slice_id(*named), self.deps, told)]

    def _sweep(self) -> object:
        return sweep(self.settings.cluster, self.deps)

    def _survive(self, step: Callable[[], object]) -> bool:
        try:
            step()
        except Crash:
            self.crashes += 1
            return False
        except (Temporary, Permanent):
            return True  # the sweep makes up for it, or it can never succeed: no message store is needed to show that
        return True

    # the cluster and its relay

    def cluster_lives(self) -> None:
        """Let controllers, kubelets and the scheduler do what they can, and the relay publish what it sees."""
        self._nodes_join()
        self._nodes_go()
        self.cluster.pods_end()
        self._nodes_are_relabelled()
        self.cluster.creates_pods()
        self.cluster.opens_pods()
        self.cluster.schedules_pods()
        self._relay_answers()
        self.relay_publishes()

    def relay_publishes(self) -> None:
        for fact in self.cluster.facts():
            self.publish(self._spoken(fact))

    def _spoken(self, fact: Fact) -> Fact:
        """Return what the relay says that runs."""
        if self.relay_lists_nothing:
            return _listing_nothing(fact)
        return replace(fact, digests={}) if self.relay_is_earlier and isinstance(fact, Heartbeat) else fact

    def _nodes_join(self) -> None:
        for pool in self.backend.pools.values():
            if pool.order is None or not self.backend.hosts_join(pool):
                continue
            first = f"{pool.name}-{pool.generation * (pool.order.spec.hosts if pool.order.spec else 0)}"
            if pool.name not in self._with_nodes or first not in self.cluster.nodes:
                self._with_nodes[pool.name] = PoolKey(pool.order.slice_id, pool.order.attempt)
                self.cluster.has_nodes(pool.order, pool.generation)

    def _nodes_go(self) -> None:
        for name in list(self._with_nodes):
            pool = self.backend.pools.get(name)
            if pool is None or not pool.hosts_joined:
                go = self.cluster.machines_go if self.settings.self_managed else self.cluster.loses_nodes
                go(self._with_nodes.pop(name))

    def _nodes_are_relabelled(self) -> None:
        """Let the labels of nodes be those of their pools, as GKE does."""
        for pool in self.backend.pools.values():
            order, bare = pool.order, bool(pool.lacking)
            if order is None or order.spec is None or self.settings.self_managed or bare == (pool.name in self._bare):
                continue
            ours = labels_of_pool(order.job, order.attempt, order.spec)
            for name in self.cluster.nodes_of(PoolKey(order.slice_id, order.attempt)):
                labels = dict.fromkeys(ours) if bare else ours
                self.cluster.changes_node(self.cluster.nodes[name], {"metadata": {"labels": labels}})
            self._bare = self._bare | {pool.name} if bare else self._bare - {pool.name}

    def _relay_answers(self) -> None:
        """Let each question be answered by one of the relays: they share a subscription."""
        relays = self.cluster.relays
        if not relays:
            return
        for number in range(self._taken_questions, len(self.publisher.questions)):
            _, question = self.publisher.questions[number]
            if self.relay_is_earlier and isinstance(question, ListQuestion):
                continue
            if isinstance(question, NodesGone):
                self._writer.forget_nodes(question)
            for fact in relays[number % len(relays)].asked(question):
                self.publish(fact)
        self._taken_questions = len(self.publisher.questions)
        for _, tried in self.publisher.tries if self.passes_updates else ():
            for fact in relays[0].asked(tried):
                self.publish(fact)
        self.publisher.tries.clear()
        self.relay_writes()
        self.cluster.patches_nodes()

    def relay_writes(self) -> None:
        """Let relays write the status of TPUNodeGroups, hold them and evict pods."""
        for _, update in self.publisher.node_groups[self._taken_statuses :]:
            self._writer.write(update)
        self._taken_statuses = len(self.publisher.node_groups)
        for relay in self.cluster.relays:
            relay.tends(self.api_server)

    # what there is

    @property
    def pools(self) -> list[str]:
        return sorted(self.backend.pools)

    @property
    def records(self) -> dict[ClaimId | SliceId, SliceRecord]:
        """The records of slices, each by the claim that has it, or by its id."""
        return {record.name: record for record in self.store.slice_records(self.settings.cluster)}


def _listing_nothing(fact: Fact) -> Fact:
    """Return what a relay says that sees no workload, and is wrong."""
    match fact:
        case Heartbeat(digests=digests):
            return replace(fact, count=0, digests={**digests, Family.WORKLOADS: 0})
        case Listed(family=Family.WORKLOADS):
            return replace(fact, digests={})
        case _:
            return fact

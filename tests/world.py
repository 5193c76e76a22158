"""The whole system in memory: the production flows on fakes, a small cluster, and a fuse that can blow anywhere.

Messages are delivered at least once, in any order the test asks for; one whose handler crashes is delivered again.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, cast

from relay.messages import list_of
from relay.objects import PoolKey
from tests.builders import CLUSTER, MINUTE, NOW, a_job, a_jobset_ref, a_request, an_owner, settings
from tests.fake_cluster import FakeCluster, LiveWorkload
from tests.fakes.backend import FakeBackend
from tests.fakes.clock import FakeClock
from tests.fakes.publisher import FakePublisher
from tests.fakes.store import FakeStore
from tests.fuse import Crash, Fuse, Fused
from tpu_slices.domain.model.facts import (
    Answer,
    Echo,
    EchoQuestion,
    Fact,
    Heartbeat,
    HostsListQuestion,
    HostsQuestion,
    RepeatQuestion,
    WorkloadListQuestion,
    WorkloadState,
)
from tpu_slices.domain.model.observations import Creating, Deleting
from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.domain.model.slices import ClusterId, OwnerKind, PoolName, SliceId, WorkloadUid, slice_id
from tpu_slices.domain.reconciling.inventory import RelayHeartbeat, digest_of
from tpu_slices.flows.receive import receive
from tpu_slices.flows.reconcile import reconcile
from tpu_slices.flows.round_trip import echo_reconciled
from tpu_slices.flows.sweep import sweep
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.errors import Permanent, Temporary

STEP = timedelta(seconds=6)
"""More than the relay takes to gather demand, or to close hosts."""


class World:
    """`jobset_appears`, `settle`, `ends` and the fakes' buttons tell the story; `pools` and `records` are its end."""

    def __init__(self, fuse: Fuse | None = None) -> None:
        self.fuse = fuse or Fuse()
        self.clock = FakeClock(NOW)
        self.store = FakeStore()
        self.backend = FakeBackend(self.clock)
        self.publisher = FakePublisher()
        self.cluster = FakeCluster(self.clock)
        self.relay_lists_nothing = False
        self.crashes = 0
        self._facts: deque[tuple[datetime, Fact]] = deque()
        """With the times at which they were published."""
        self._late: list[tuple[datetime, datetime, Fact]] = []
        """With the times at which they arrive and were published."""
        self._taken_requests = 0
        self._taken_questions = 0
        self._with_nodes: dict[PoolName, PoolKey] = {}
        self.deps = ReconcileDeps(
            store=cast("Any", Fused(self.store, self.fuse)),
            backend=cast("Any", Fused(self.backend, self.fuse)),
            publisher=cast("Any", Fused(self.publisher, self.fuse)),
            clock=self.clock,
        )
        self.store.put_settings(settings())
        self.store.put(RelayHeartbeat(cluster=CLUSTER, received_at=NOW, uninterrupted_since=NOW - 60 * MINUTE))

    # the story

    @property
    def workloads(self) -> dict[WorkloadUid, LiveWorkload]:
        return self.cluster.workloads

    def jobset_appears(self, name: str = "llama", slices: int = 1, **changes: Any) -> LiveWorkload:
        ref = a_jobset_ref(name=name, uid=WorkloadUid(f"uid-{name}-{len(self.workloads)}"))
        jobset = LiveWorkload(ref, slices, **changes)
        self.cluster.puts(jobset)
        return jobset

    def other_appears(self, kind: OwnerKind, slices: int = 1) -> LiveWorkload:
        """Let a Job by itself appear, or a LeaderWorkerSet of so many groups."""
        owner = an_owner("other", kind=kind, uid=WorkloadUid(f"uid-other-{len(self.workloads)}"))
        groups = slices if kind is OwnerKind.LEADER_WORKER_SET else None
        workload = LiveWorkload(
            a_jobset_ref(owner=owner, groups=groups), slices, request=a_request(replicated_job="", replicas=slices)
        )
        self.cluster.puts(workload)
        return workload

    def scales(self, workload: LiveWorkload, groups: int) -> None:
        """Change the number of a LeaderWorkerSet's groups; the last ones go."""
        for index in range(groups, workload.slices):
            self.cluster.removes_pod(workload, index)
        generation = workload.ref.generation + 1
        workload.slices, workload.ref = groups, replace(workload.ref, generation=generation, groups=groups)
        self.cluster.changes(workload)
        self.relay_publishes()

    def guest_appears(self, name: str = "guest") -> LiveWorkload:
        """Let a JobSet appear whose leader is bound only where a test binds it."""
        return self.jobset_appears(name, absent=True)

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

    def ends_unreported(self, jobset: LiveWorkload) -> None:
        """Let a JobSet end while no relay watches."""
        was_dead, self.relay_is_dead = self.relay_is_dead, True
        self.ends(jobset, WorkloadState.DELETED)
        self.relay_is_dead = was_dead

    def relay_restarts(self) -> None:
        """Let a relay start that knows nothing, and publish what it sees."""
        self.cluster.restart_relay()
        self.relay_publishes()

    def loses_its_records(self) -> None:
        """Remove every record of slices and workloads."""
        for place in self.store.places():
            if place.collection in {"slices", "workloads", "slots"}:
                self.store.remove_document(place)

    def binds(self, jobset: LiveWorkload, slice_: SliceId, attempt: int, index: int = 0) -> None:
        """Bind the leader of a Job to the hosts of an attempt."""
        self._nodes_join()
        self.cluster.binds(jobset, PoolKey(slice_, attempt), index)
        self.relay_publishes()

    def leaves(self, jobset: LiveWorkload, index: int = 0) -> None:
        """Let the leader of a Job leave its hosts; a new one waits in its place."""
        self.cluster.removes_pod(jobset, index)
        self.relay_publishes()

    @property
    def relay_is_dead(self) -> bool:
        return not self.cluster.watched

    @relay_is_dead.setter
    def relay_is_dead(self, dead: bool) -> None:
        back = self.relay_is_dead and not dead
        self.cluster.watched = not dead
        if back:
            self.cluster.restart_relay()

    def publish(self, fact: Fact) -> None:
        """Send a fact."""
        self._facts.append((self.clock.now(), fact))

    def loses_request(self) -> bool:
        """Return whether the next reconcile request never arrives."""
        return False

    def shuffle_messages(self, chance: random.Random) -> None:
        """Duplicate the facts under way and shuffle them; some older reconcile requests come again, too."""
        facts = [*self._facts, *self._facts]
        chance.shuffle(facts)
        self._facts = deque(facts)
        self.publisher.requests.extend(chance.sample(self.publisher.requests, min(3, len(self.publisher.requests))))

    def settle(self, *, minutes: int = 20, until: Callable[[], bool] = lambda: False) -> None:
        """Let minutes pass, in each of which the cluster, GKE and the functions do what they can."""
        for _ in range(minutes):
            self.steps()
            if until():
                return
            self.operations_end()
            self.clock.advance(MINUTE - 2 * STEP)
            self.sweeps()

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
        self._facts.extend((sent, fact) for at, sent, fact in self._late if at <= self.clock.now())
        self._late = [each for each in self._late if each[0] > self.clock.now()]
        for _ in range(10_000):
            if self._facts:
                published_at, fact = self._facts.popleft()
                if not self._survive(partial(self._receive, fact, published_at)):
                    self._facts.append((published_at, fact))
            elif self._taken_requests < len(self.publisher.requests):
                cluster, slice_ = self.publisher.requests[self._taken_requests]
                self._taken_requests += 1
                if self.loses_request():
                    continue
                if not self._survive(partial(self._reconcile, cluster, slice_)):
                    self.publisher.requests.append((cluster, slice_))
            elif self.publisher.echoes:
                cluster, asked_at = self.publisher.echoes.pop(0)
                echo_reconciled(asked_at, cluster, self.deps)
            else:
                return
        raise AssertionError("messages never end")

    # the functions; whoever measures what they use calls them as Pub/Sub does

    def _receive(self, fact: Fact, published_at: datetime) -> None:
        receive(fact, CLUSTER, self.deps, published_at)

    def _reconcile(self, cluster: ClusterId, slice_: SliceId) -> object:
        return reconcile(cluster, slice_, self.deps)

    def _sweep(self) -> object:
        return sweep(self.deps)

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
        self.cluster.creates_pods()
        self.cluster.schedules_pods()
        self._relay_answers()
        self.relay_publishes()

    def relay_publishes(self) -> None:
        for fact in self.cluster.facts():
            forged = isinstance(fact, Heartbeat) and self.relay_lists_nothing
            self.publish(_listing_nothing(fact) if forged and isinstance(fact, Heartbeat) else fact)

    def _nodes_join(self) -> None:
        for pool in self.backend.pools.values():
            if pool.hosts_joined and pool.order is not None and pool.order.spec is not None:
                self._with_nodes[pool.name] = PoolKey(pool.order.slice_id, pool.order.attempt)
                self.cluster.has_nodes(pool.order)

    def _nodes_go(self) -> None:
        for name in list(self._with_nodes):
            pool = self.backend.pools.get(name)
            if pool is None or not pool.hosts_joined:
                self.cluster.loses_nodes(self._with_nodes.pop(name))

    def _relay_answers(self) -> None:
        if self.relay_is_dead:
            return
        self.cluster.patches_nodes()
        for _, question in self.publisher.questions[self._taken_questions :]:
            if isinstance(question, RepeatQuestion | HostsQuestion | HostsListQuestion):
                self.cluster.asked(question)
                continue
            if isinstance(question, WorkloadListQuestion):
                self._relay_lists(question.asked_at)
                continue
            if isinstance(question, EchoQuestion):
                self.publish(Echo(asked_at=question.asked_at, at=self.clock.now()))
                continue
            jobset = self.workloads.get(question.owner.uid)
            ref = jobset.ref if jobset else a_jobset_ref(owner=question.owner, generation=0)
            alive = jobset is not None and not jobset.state.ended
            state = jobset.state if jobset is not None and alive else WorkloadState.MISSING
            self.publish(Answer(workload=ref, state=state))
        self._taken_questions = len(self.publisher.questions)

    def _relay_lists(self, asked_at: datetime) -> None:
        forged = list_of({}, asked_at)
        parts = forged if self.relay_lists_nothing else self.cluster.queue.workload_list(asked_at, self.clock.now())
        for part in parts:
            self.publish(part)

    # GKE

    def operations_end(self) -> None:
        for pool in list(self.backend.pools.values()):
            if isinstance(pool.seen, Creating | Deleting) and pool.operation is not None:
                self.backend.finish(pool.name)

    # the end

    @property
    def pools(self) -> list[str]:
        return sorted(self.backend.pools)

    @property
    def records(self) -> dict[SliceId, SliceRecord]:
        return {record.id: record for record in self.store.slice_records(CLUSTER)}

    def record(self, jobset: LiveWorkload, index: int = 0) -> SliceRecord:
        job = a_job(owner=jobset.ref.owner, replicated_job=jobset.request.replicated_job, job_index=index)
        return self.records[slice_id(job)]


def _listing_nothing(beat: Heartbeat) -> Heartbeat:
    return replace(beat, count=0, digest=digest_of({}))

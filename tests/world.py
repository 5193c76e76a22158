"""The whole system in memory: the production flows on fakes, a small cluster, and a fuse that can blow anywhere.

Messages are delivered at least once, in any order the test asks for; one whose handler crashes is delivered again.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

from tests.builders import CLUSTER, MINUTE, NOW, a_job, a_jobset_ref, a_request, leaders_wait, settings
from tests.fakes.backend import FakeBackend, FakePool
from tests.fakes.clock import FakeClock
from tests.fakes.publisher import FakePublisher
from tests.fakes.store import FakeStore
from tpu_slices.domain.model.facts import (
    Answer,
    Fact,
    Heartbeat,
    HostsChanged,
    LeaderBound,
    Occupant,
    WaitingLeader,
    WorkloadChanged,
    WorkloadRef,
    WorkloadState,
)
from tpu_slices.domain.model.observations import Creating, Deleting, Running
from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.domain.model.slices import PoolName, SliceId, WorkloadUid, pool_name, slice_id
from tpu_slices.domain.reconciling.inventory import digest_of
from tpu_slices.flows.receive import receive
from tpu_slices.flows.reconcile import reconcile
from tpu_slices.flows.sweep import sweep
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.errors import Temporary

EFFECTS = {"commit", "reject", "request_reconcile", "announce", "announce_workloads", "ask", "create", "delete"}


class Crash(BaseException):
    """The process is gone, right after a side effect."""


@dataclass(slots=True)
class Fuse:
    """Counts side effects; blows once, after the one it is set to."""

    blows_after: int | None = None
    burnt: int = 0

    def burn(self) -> None:
        self.burnt += 1
        if self.burnt == self.blows_after:
            raise Crash


class Fused:
    """A port whose side effects burn the fuse once they have happened."""

    def __init__(self, inner: object, fuse: Fuse) -> None:
        self._inner = inner
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name not in EFFECTS:
            return method

        def and_burn(*args: Any, **kwargs: Any) -> Any:
            result = method(*args, **kwargs)
            self._fuse.burn()
            return result

        return and_burn


@dataclass(slots=True)
class LiveWorkload:
    """A JobSet in the cluster: its state, and which of its Jobs have a bound leader."""

    ref: WorkloadRef
    slices: int
    bound: set[int] = field(default_factory=set)
    state: WorkloadState = WorkloadState.ACTIVE


class World:
    """`jobset_appears`, `settle`, `ends` and the fakes' buttons tell the story; `pools` and `records` are its end."""

    def __init__(self, fuse: Fuse | None = None) -> None:
        self.fuse = fuse or Fuse()
        self.clock = FakeClock(NOW)
        self.store = FakeStore()
        self.backend = FakeBackend(self.clock)
        self.publisher = FakePublisher()
        self.workloads: dict[WorkloadUid, LiveWorkload] = {}
        self.relay_is_dead = False
        self.relay_lists_nothing = False
        self.crashes = 0
        self._facts: deque[Fact] = deque()
        self._taken_requests = 0
        self._taken_questions = 0
        self._sequence = 0
        self._on_pool: dict[PoolName, tuple[WorkloadUid, int]] = {}
        self._counted: dict[str, tuple[int, int]] = {}
        self.deps = ReconcileDeps(
            store=cast("Any", Fused(self.store, self.fuse)),
            backend=cast("Any", Fused(self.backend, self.fuse)),
            publisher=cast("Any", Fused(self.publisher, self.fuse)),
            clock=self.clock,
        )
        self.store.put_settings(settings())

    # the story

    def jobset_appears(self, name: str = "llama", slices: int = 1) -> LiveWorkload:
        ref = a_jobset_ref(name=name, uid=WorkloadUid(f"uid-{name}-{len(self.workloads)}"))
        self.workloads[ref.owner.uid] = LiveWorkload(ref, slices)
        return self.workloads[ref.owner.uid]

    def ends(self, jobset: LiveWorkload, state: WorkloadState = WorkloadState.COMPLETED) -> None:
        jobset.state = state
        self.publish(WorkloadChanged(workload=jobset.ref, state=state))

    def suspends(self, jobset: LiveWorkload) -> None:
        jobset.ref = replace(jobset.ref, generation=jobset.ref.generation + 1)
        jobset.bound.clear()
        self.ends(jobset, WorkloadState.SUSPENDED)

    def resumes(self, jobset: LiveWorkload) -> None:
        jobset.ref = replace(jobset.ref, generation=jobset.ref.generation + 1)
        jobset.state = WorkloadState.ACTIVE

    def ends_unreported(self, jobset: LiveWorkload) -> None:
        jobset.state = WorkloadState.DELETED

    def publish(self, fact: Fact) -> None:
        self._facts.append(fact)

    def shuffle_messages(self, chance: random.Random) -> None:
        """Duplicate the facts under way and shuffle them; some older reconcile requests come again, too."""
        facts = [*self._facts, *self._facts]
        chance.shuffle(facts)
        self._facts = deque(facts)
        self.publisher.requests.extend(chance.sample(self.publisher.requests, min(3, len(self.publisher.requests))))

    def settle(self, *, minutes: int = 20, until: Callable[[], bool] = lambda: False) -> None:
        """Let minutes pass, in each of which the cluster, GKE and the functions do what they can."""
        for _ in range(minutes):
            self.cluster_lives()
            self.deliver()
            if until():
                return
            self.operations_end()
            self.clock.advance(MINUTE)
            self._survive(lambda: sweep(self.deps))
            self.deliver()

    def deliver(self) -> None:
        """Deliver every message until none is left; one whose handler crashes is delivered again."""
        for _ in range(10_000):
            if self._facts:
                fact = self._facts.popleft()
                if not self._survive(partial(receive, fact, CLUSTER, self.deps)):
                    self._facts.append(fact)
            elif self._taken_requests < len(self.publisher.requests):
                cluster, slice_ = self.publisher.requests[self._taken_requests]
                self._taken_requests += 1
                if not self._survive(partial(reconcile, cluster, slice_, self.deps)):
                    self.publisher.requests.append((cluster, slice_))
            else:
                return
        raise AssertionError("messages never end")

    def _survive(self, step: Callable[[], object]) -> bool:
        try:
            step()
        except Crash:
            self.crashes += 1
            return False
        except Temporary:
            return True  # the sweep makes up for it: no message store is needed to show that
        return True

    # the cluster and its relay

    def cluster_lives(self) -> None:
        if not self.relay_is_dead:
            for jobset in self.workloads.values():
                self._relay_reports_demand(jobset)
            self._relay_counts_hosts()
            self._relay_sends_heartbeat()
            self._relay_answers()

    def _relay_reports_demand(self, jobset: LiveWorkload) -> None:
        if jobset.state is not WorkloadState.ACTIVE:
            return
        waiting = [index for index in range(jobset.slices) if index not in jobset.bound]
        if waiting:
            leaders = tuple(WaitingLeader(replicated_job="slice", job_index=index) for index in waiting)
            request = a_request(replicas=jobset.slices)
            self.publish(leaders_wait(workload=jobset.ref, requests=(request,), waiting=leaders))

    def _relay_counts_hosts(self) -> None:
        for pool in self._running():
            order = pool.order
            assert order is not None
            assert order.spec is not None
            hosts = order.spec.hosts
            if self._counted.get(pool.name) != (hosts, hosts):
                self._counted[pool.name] = (hosts, hosts)
                self._sequence += 1
                self.publish(
                    HostsChanged(
                        slice_id=order.slice_id,
                        attempt=order.attempt,
                        usable=hosts,
                        joined=hosts,
                        sequence=self._sequence,
                    )
                )
            self._schedule_a_leader(pool.name, order)

    def _schedule_a_leader(self, pool: PoolName, order: PoolOrder) -> None:
        """Bind a waiting leader of the pool's JobSet to it: its own Job's, if that one waits, else any."""
        owner = self.workloads.get(order.job.owner.uid)
        if owner is None or owner.state is not WorkloadState.ACTIVE:
            return
        holder = self._on_pool.get(pool)
        if holder is not None and (holder[0] != owner.ref.owner.uid or holder[1] in owner.bound):
            return
        waiting = [index for index in (order.job.job_index, *range(owner.slices)) if index not in owner.bound]
        if waiting:
            owner.bound.add(waiting[0])
            self.binds(owner, order.slice_id, order.attempt, waiting[0])

    def binds(self, jobset: LiveWorkload, slice_: SliceId, attempt: int, index: int = 0) -> None:
        """Bind the leader of a Job to the hosts of an attempt, and let the relay report it."""
        self._on_pool[pool_name(slice_, attempt)] = (jobset.ref.owner.uid, index)
        occupant = Occupant(
            owner=jobset.ref.owner,
            job=f"{jobset.ref.owner.name}-slice-{index}",
            pod_uid=f"pod-{jobset.ref.owner.uid}-{index}-{attempt}",
        )
        self.publish(LeaderBound(slice_id=slice_, attempt=attempt, occupant=occupant, bound=True))

    def _relay_sends_heartbeat(self) -> None:
        uids = self._live()
        self.publish(Heartbeat(count=len(uids), digest=digest_of(uids)))

    def _relay_answers(self) -> None:
        for _, question in self.publisher.questions[self._taken_questions :]:
            if question.owner is None:
                uids = self._live()
                self.publish(Heartbeat(count=len(uids), digest=digest_of(uids), uids=uids))
                continue
            jobset = self.workloads.get(question.owner.uid)
            ref = jobset.ref if jobset else a_jobset_ref(owner=question.owner, generation=0)
            alive = jobset is not None and not jobset.state.ended
            state = jobset.state if jobset is not None and alive else WorkloadState.MISSING
            self.publish(Answer(workload=ref, state=state))
        self._taken_questions = len(self.publisher.questions)

    def _live(self) -> tuple[WorkloadUid, ...]:
        if self.relay_lists_nothing:
            return ()
        return tuple(sorted(uid for uid, jobset in self.workloads.items() if not jobset.state.ended))

    # GKE

    def operations_end(self) -> None:
        for pool in list(self.backend.pools.values()):
            if isinstance(pool.seen, Creating | Deleting) and pool.operation is not None:
                self.backend.finish(pool.name)

    def _running(self) -> list[FakePool]:
        return [pool for pool in self.backend.pools.values() if isinstance(pool.seen, Running) and pool.order]

    # the end

    @property
    def pools(self) -> list[str]:
        return sorted(self.backend.pools)

    @property
    def records(self) -> dict[SliceId, SliceRecord]:
        return {record.id: record for record in self.store.slice_records(CLUSTER)}

    def record(self, jobset: LiveWorkload, index: int = 0) -> SliceRecord:
        job = a_job(name=jobset.ref.owner.name, uid=jobset.ref.owner.uid, job_index=index)
        return self.records[slice_id(job)]

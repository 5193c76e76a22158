"""The smallest world in which decisions are carried out: one slice, its pools, a relay, and pods that come and go."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from tests.builders import MINUTE, NOW, a_jobset, a_record, hosts_changed, settings
from tests.domain.cases import HOUR, OURS, OWN
from tpu_slices.domain.model.facts import Occupant, WorkloadState
from tpu_slices.domain.model.observations import (
    Absent,
    Broken,
    Busy,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    Observation,
    Outcome,
    PoolObservations,
    Refused,
    Running,
    Started,
)
from tpu_slices.domain.reconciling import occupancy
from tpu_slices.domain.reconciling.case import Known
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.decisions import (
    Action,
    CancelCreation,
    CloseHosts,
    CreatePool,
    DeletePool,
    OpenHosts,
)
from tpu_slices.domain.reconciling.demand import with_current_desire
from tpu_slices.domain.reconciling.outcomes import acted
from tpu_slices.domain.records.heartbeats import SILENT_AFTER, RelayHeard
from tpu_slices.domain.records.slices import SliceRecord


@dataclass(slots=True)
class Pool:
    seen: Observation = field(default_factory=Creating)
    closed: bool = False
    lost: int = 0
    """How many hosts are not Ready."""
    pods: list[Occupant] = field(default_factory=list)
    asked: int = 0
    """The number of the latest question to the relay, which it answers; 0: none."""
    asked_at: datetime | None = None

    @property
    def hosts(self) -> int:
        return 4 if isinstance(self.seen, Running | Busy | Broken) else 0


@dataclass(slots=True)
class Course:
    """`wait` lets time pass, in which everybody does what they can; what must never happen is asserted at each step."""

    now: datetime = NOW
    record: SliceRecord = field(default_factory=a_record)
    pools: dict[int, Pool] = field(default_factory=dict)
    state: WorkloadState = WorkloadState.ACTIVE
    uninterrupted_since: datetime | None = NOW - HOUR
    """None: the relay is silent."""
    heard_at: datetime = NOW
    ended: set[int] = field(default_factory=set)
    """Attempts that were given up, and are not on record any more."""
    sequence: int = 0

    # what happens by itself

    def wait(self, time: timedelta = MINUTE) -> None:
        self.now += time
        for attempt, pool in list(self.pools.items()):
            if pool.seen == Creating() or isinstance(pool.seen, Busy):
                pool.seen = OURS
            elif isinstance(pool.seen, Deleting):
                del self.pools[attempt]
        self.report()
        self.reconcile()
        self.arrive(OWN)

    def report(self) -> None:
        """Let the relay report hosts and demand, unless it is silent."""
        if self.uninterrupted_since is None:
            return
        self.heard_at = self.now
        for attempt, before in list(self.record.all_hosts):
            pool = self.pools.get(attempt, Pool(Absent()))
            self.sequence += 1
            fact = hosts_changed(
                attempt=attempt,
                usable=0 if pool.closed else max(pool.hosts - pool.lost, 0),
                joined=pool.hosts,
                closed=pool.hosts if pool.closed else 0,
                occupants=tuple(pool.pods) if pool.hosts else (),
                sequence=self.sequence,
                answers=pool.asked or None,
                asked_at=pool.asked_at,
                highest=pool.asked,
            )
            after = occupancy.counted(before, fact, self.now)
            report = occupancy.NewCount(self.record, attempt, before, after, self.now) if after else None
            if report is not None and report.is_news:
                self.record = occupancy.with_hosts(report)
        if self.state is WorkloadState.ACTIVE and not self.runs:
            self.record = replace(self.record, demand_confirmed_at=self.now)

    @property
    def runs(self) -> bool:
        return any(OWN.owner in [pod.owner for pod in pool.pods] for pool in self.pools.values())

    def reconcile(self) -> None:
        own = a_jobset(state=self.state, demand={self.record.id: self.record.demand_confirmed_at})
        relay = RelayHeard(last_at=self.heard_at, since=self.uninterrupted_since or NOW - HOUR)
        known = Known(workloads={own.owner.uid: own}, relay=relay, slots={number: number for number in range(99)})
        before = with_current_desire(self.record, own)
        seen = {attempt: pool.seen for attempt, pool in self.pools.items()}
        current = seen.get(before.attempt, Absent()) if before.current.create_requested_at else Absent()
        earlier = {each.number: seen.get(each.number, Absent()) for each in before.terminating}
        decision = decide(before, PoolObservations(current, earlier), self.now, settings(), known)
        self.record = decision.record
        self.remember(before, self.record)
        for action in decision.actions:
            self.record = acted(self.record, action, self.perform(action), self.now, settings())

    # what must never happen

    def remember(self, before: SliceRecord, after: SliceRecord) -> None:
        on_record = {after.attempt, *(each.number for each in after.terminating)}
        assert len(on_record) == len(after.terminating) + 1, "one attempt is on record twice"
        assert not on_record & self.ended, "a number was used twice"
        assert set(self.pools) <= on_record, "a pool is not on record"
        assert after.current.create_requested_at or after.attempt not in self.pools, "a pool counts as never requested"
        self.ended |= {each.number for each in before.terminating} - on_record

    def perform(self, action: Action) -> Outcome:
        pool = self.pools.get(action.attempt)
        match action:
            case CreatePool(attempt):
                assert attempt not in self.ended, "a number was used twice"
                if pool is not None:
                    return Refused(Failure(FailureKind.NAME_TAKEN, "exists"))
                self.pools[attempt] = Pool()
                return Started(f"operation-{attempt}")
            case CloseHosts(_, number) | OpenHosts(_, number) if pool is not None:
                assert number >= pool.asked, "the relay heeds no earlier question than the latest"
                pool.closed, pool.asked = isinstance(action, CloseHosts) and not pool.pods, number
                asked = dict(self.record.all_hosts)[action.attempt].asked
                pool.asked_at = asked.at if asked else None
            case DeletePool() if pool is not None:
                assert not pool.pods, "a pool was deleted under a live Job"
                assert self.now - self.heard_at <= SILENT_AFTER, "a pool was deleted while the relay was silent"
                pool.seen = Deleting()
            case CancelCreation():
                return Refused(Failure(FailureKind.BUSY, "not cancelled"))
            case _:
                pass
        return Started(None)

    # what tests let happen

    def arrive(self, occupant: Occupant) -> None:
        """Let a pod come to the first pool that takes it, unless it is somewhere already."""
        there = [pool for pool in self.pools.values() if occupant in pool.pods]
        free = [pool for pool in self.pools.values() if pool.hosts and not pool.closed]
        if not there and free and (occupant is not OWN or self.state is WorkloadState.ACTIVE):
            free[0].pods.append(occupant)

    def leave(self, occupant: Occupant) -> None:
        for pool in self.pools.values():
            pool.pods = [pod for pod in pool.pods if pod != occupant]

    def become(self, state: WorkloadState) -> None:
        if not self.state.ended:
            self.state = state
            if state is not WorkloadState.ACTIVE:
                self.leave(OWN)

    def fall_silent(self) -> None:
        self.uninterrupted_since = None

    def be_heard(self) -> None:
        self.uninterrupted_since = self.uninterrupted_since or self.now

    def break_pools(self) -> None:
        """Let GKE report an error for each pool; those under creation failed."""
        for pool in self.pools.values():
            if not isinstance(pool.seen, Deleting):
                pool.seen = Broken(Failure(FailureKind.STOCKOUT, "none left"))

    def lose_hosts(self, lost: int) -> None:
        for pool in self.pools.values():
            pool.lost = lost

    def delete_by_hand(self) -> None:
        """Let somebody delete the pools on which nobody is."""
        for pool in self.pools.values():
            if not pool.pods:
                pool.seen = Deleting()

"""The smallest world in which decisions are carried out: one slice, its pools, a relay, and pods that come and go."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tests.builders import MINUTE, NOW, a_jobset, a_record, had, hosts_changed, settings
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
    Observed,
    Outcome,
    Refused,
    Running,
    Started,
)
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.reconciling import occupancy
from tpu_slices.domain.reconciling.case import Known, Situation
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
from tpu_slices.domain.reconciling.taking import may_be_regained, regained
from tpu_slices.domain.records.heartbeats import SILENT_AFTER, RelayHeard
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord


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
    """Of the claim."""
    others: dict[int, SliceRecord] = field(default_factory=dict)
    """The slices that it has no more, by their numbers."""
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
        for record in self.records:
            pool = self.pools.get(record.attempt, Pool(Absent()))
            self.sequence += 1
            fact = hosts_changed(
                attempt=record.attempt,
                usable=0 if pool.closed else max(pool.hosts - pool.lost, 0),
                joined=pool.hosts,
                closed=pool.hosts if pool.closed else 0,
                occupants=tuple(pool.pods) if pool.hosts else (),
                sequence=self.sequence,
                answers=pool.asked or None,
                asked_at=pool.asked_at,
                highest=pool.asked,
            )
            after = occupancy.counted(record.current.hosts, fact, self.now)
            report = occupancy.NewCount(record, after, self.now) if after else None
            if report is not None and report.is_news:
                self.save(occupancy.with_hosts(report))
        if self.state is WorkloadState.ACTIVE and not self.runs:
            self.record = self.record.with_claim(demand_confirmed_at=self.now)

    @property
    def runs(self) -> bool:
        return any(OWN.owner in [pod.owner for pod in pool.pods] for pool in self.pools.values())

    @property
    def records(self) -> list[SliceRecord]:
        return [self.record, *self.others.values()]

    def save(self, record: SliceRecord) -> None:
        if record.unclaimed:
            self.others[record.attempt] = record
        else:
            self.record = record

    def reconcile(self) -> None:
        own = a_jobset(state=self.state, demand={self.record.maker: self.record.claim.demand_confirmed_at})
        self.record = with_current_desire(self.record, own)
        for record in self.records:
            if (
                record.unclaimed
                and may_be_regained(record)
                and (found := regained(self.record, self.case(record, own)))
            ):
                before = self.records
                self.record, meanwhile = found
                del self.others[record.attempt]
                self.others |= {} if meanwhile is None else {meanwhile.attempt: meanwhile}
                self.remember(before)
                return self.reconcile()
        for record in self.records:
            self.decide(record, own)
        return None

    def case(self, record: SliceRecord, own: WorkloadRecord) -> Situation:
        relay = RelayHeard(last_at=self.heard_at, since=self.uninterrupted_since or NOW - HOUR)
        known = Known(workloads={own.owner.uid: own}, relay=relay, slots={number: number for number in range(99)})
        pool = self.pools.get(record.attempt)
        seen = pool.seen if pool is not None and record.current.create_requested_at else Absent()
        return Situation(record, Observed(seen), self.now, settings(), known)

    def decide(self, record: SliceRecord, own: WorkloadRecord) -> None:
        case, before = self.case(record, own), self.records
        decision = decide(record, case.seen, self.now, case.settings, case.known)
        after = decision.record
        self.save(after)
        if decision.let_go is not None:
            self.save(decision.let_go)
        if after.unclaimed and after.phase is Phase.GONE:
            del self.others[after.attempt]
            earlier = tuple(each for each in self.record.claim.earlier if each != after.id)
            self.record = self.record.with_claim(earlier=earlier)
        self.remember(before)
        for action in decision.actions:
            after = acted(after, action, self.perform(action, after), self.now, settings())
            self.save(after)

    # what must never happen

    def remember(self, before: list[SliceRecord]) -> None:
        on_record = {each.attempt for each in self.records}
        assert len(on_record) == len(self.records), "one attempt is on record twice"
        assert not on_record & self.ended, "a number was used twice"
        assert set(self.pools) <= on_record, "a pool is not on record"
        requested = {each.attempt for each in self.records if each.current.create_requested_at}
        assert set(self.pools) <= requested, "a pool counts as never requested"
        assert set(had(self.record)) == self.others.keys(), "a claim does not know what it had"
        self.ended |= {each.attempt for each in before} - on_record

    def perform(self, action: Action, record: SliceRecord) -> Outcome:
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
                asked = record.current.hosts.asked
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

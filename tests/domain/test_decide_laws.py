"""What is true of `decide` for every record and every observation."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, a_record, a_spec, an_occupant, settings
from tpu_slices.domain.model.decisions import Action, CreatePool, DeletePool
from tpu_slices.domain.model.observations import (
    Absent,
    Broken,
    Busy,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    Observation,
    PoolObservations,
    Running,
    Started,
    Unowned,
    Unreadable,
)
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.records import Desire, Phase, SliceRecord, TerminatingAttempt
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.outcomes import acted

SETTLED = {Phase.READY, Phase.REFUSED, Phase.GONE}
moments = st.integers(-120, 5).map(lambda minutes: NOW + minutes * MINUTE)
maybe_moments = st.none() | moments
occupants = st.sampled_from([(), (an_occupant(),), (an_occupant("other"),)])
terminating = st.lists(
    st.builds(TerminatingAttempt, attempt=st.integers(1, 3), delete_requested_at=maybe_moments, occupants=occupants),
    max_size=2,
    unique_by=lambda earlier: earlier.attempt,
).map(tuple)
failures = st.builds(Failure, st.sampled_from(FailureKind), st.just("why"))
observations: st.SearchStrategy[Observation] = st.one_of(
    st.just(Absent()),
    st.builds(Creating, st.booleans()),
    st.sampled_from([Running(a_spec().fingerprint), Running("v1-other"), Running(None)]),
    st.just(Busy("repair")),
    st.builds(Broken, failures),
    st.just(Deleting()),
    st.just(Unowned("not ours")),
    st.just(Unreadable("503")),
)


@st.composite
def records(draw: st.DrawFn) -> SliceRecord:
    return a_record(
        desire=draw(st.sampled_from(Desire)),
        demand_confirmed_at=draw(maybe_moments),
        phase=draw(st.sampled_from(Phase)),
        reason=draw(st.sampled_from(Reason)),
        attempt=draw(st.integers(4, 6)),
        create_requested_at=draw(maybe_moments),
        creating=draw(st.booleans()),
        slot=draw(st.none() | st.integers(0, 4)),
        terminating=draw(terminating),
        failures=draw(st.integers(0, 40)),
        retry_at=draw(maybe_moments),
        hosts_usable=draw(st.integers(0, 4)),
        occupants=draw(occupants),
        rebuild_allowed=draw(st.booleans()),
        spec=draw(st.sampled_from([None, a_spec()])),
    )


@st.composite
def pool_observations(draw: st.DrawFn, record: SliceRecord) -> PoolObservations:
    return PoolObservations(draw(observations), {earlier.attempt: draw(observations) for earlier in record.terminating})


@given(st.data(), records())
def test_a_record_that_is_not_settled_is_reconciled_again(data: st.DataObject, record: SliceRecord) -> None:
    seen = data.draw(pool_observations(record))
    after = decide(replace(record, next_reconcile_at=NOW), seen, NOW, settings()).record
    assert after.next_reconcile_at is not None or (
        after.phase in SETTLED and not after.terminating and after.announced_count == after.transition_count
    )


@given(st.data(), records())
def test_a_slice_whose_pool_is_unreadable_is_neither_created_nor_deleted(
    data: st.DataObject, record: SliceRecord
) -> None:
    seen = replace(data.draw(pool_observations(record)), current=Unreadable("503"))
    decision = decide(record, seen, NOW, settings())
    assert not decision.creates
    assert DeletePool(record.attempt) not in decision.actions
    assert decision.record.phase is record.phase


@given(st.data(), records())
def test_no_occupied_and_no_unowned_pool_is_deleted(data: st.DataObject, record: SliceRecord) -> None:
    seen = data.draw(pool_observations(record))
    decision = decide(record, seen, NOW, settings())
    deleted = {action.attempt for action in decision.actions if isinstance(action, DeletePool)}
    occupied = {earlier.attempt for earlier in record.terminating if earlier.occupants}
    if record.other_workload_occupants:
        occupied.add(record.attempt)
    unowned = {attempt for attempt, pool in seen.terminating.items() if isinstance(pool, Unowned)}
    if isinstance(seen.current, Unowned):
        unowned.add(record.attempt)
    assert not deleted & (occupied | unowned)
    assert deleted <= {record.attempt, *(earlier.attempt for earlier in record.terminating)}


@given(st.data(), records())
def test_a_creation_needs_a_desire_fresh_demand_a_slot_and_an_unused_name(
    data: st.DataObject, record: SliceRecord
) -> None:
    seen = data.draw(pool_observations(record))
    decision = decide(record, seen, NOW, settings())
    creates = [action.attempt for action in decision.actions if isinstance(action, CreatePool)]
    assert len(creates) <= 1
    if creates:
        assert record.wanted
        assert record.slot is not None
        assert record.demand_confirmed_at is not None
        assert NOW - record.demand_confirmed_at <= settings().limits.demand_ttl
        assert creates == [decision.record.attempt]
        assert creates[0] not in {earlier.attempt for earlier in decision.record.terminating}


@given(st.data(), records())
def test_deciding_twice_gives_the_same_decision(data: st.DataObject, record: SliceRecord) -> None:
    seen = data.draw(pool_observations(record))
    assert decide(record, seen, NOW, settings()) == decide(record, seen, NOW, settings())


@dataclass
class World:
    """The smallest world that executes actions: pools by attempt, created and deleted at once."""

    pools: dict[int, Observation] = field(default_factory=dict)

    def observe(self, record: SliceRecord) -> PoolObservations:
        return PoolObservations(
            self.pools.get(record.attempt, Absent()),
            {earlier.attempt: self.pools.get(earlier.attempt, Absent()) for earlier in record.terminating},
        )

    def work_ends(self) -> None:
        for attempt, seen in self.pools.items():
            if isinstance(seen, Busy | Creating) and seen != Creating(operation_runs=False):
                self.pools[attempt] = Running(a_spec().fingerprint)

    def perform(self, action: Action) -> None:
        if isinstance(action, CreatePool):
            self.pools[action.attempt] = Running(a_spec().fingerprint)
        else:
            self.pools.pop(action.attempt, None)


@given(st.data(), records())
def test_repeated_decisions_reach_the_desire_and_stay_there(data: st.DataObject, record: SliceRecord) -> None:
    """Given that nobody occupies the hosts, demand is confirmed again and GKE does what is ordered."""
    record = replace(record, occupants=(), spec=a_spec(), failures=0)
    record = replace(record, terminating=tuple(replace(earlier, occupants=()) for earlier in record.terminating))
    seen = data.draw(observations.filter(lambda seen: not isinstance(seen, Unowned | Unreadable | Deleting)))
    if record.create_requested_at is None:
        seen = Absent()
    world = World(
        {record.attempt: seen, **{earlier.attempt: data.draw(st.just(Running())) for earlier in record.terminating}}
    )
    now = NOW
    for _ in range(30):
        now += timedelta(minutes=16)
        world.work_ends()
        record = reconciled(replace(record, demand_confirmed_at=now, slot=0, hosts_usable=4), world, now)
    present = {attempt for attempt, seen in world.pools.items() if not isinstance(seen, Absent)}
    if record.wanted and record.phase not in {Phase.REFUSED, Phase.BLOCKED}:
        assert record.phase is Phase.READY
        assert present == {record.attempt}
    else:
        assert present == set()
    assert reconciled(replace(record, demand_confirmed_at=now, slot=None), world, now).phase is record.phase


def reconciled(record: SliceRecord, world: World, now: datetime) -> SliceRecord:
    decision = decide(record, world.observe(record), now, settings())
    after = decision.record
    for action in decision.actions:
        world.perform(action)
        after = acted(after, action, Started("operation"), now, settings())
    return replace(after, announced_count=after.transition_count)

"""The relay's list of demand: what agrees is confirmed without a write, what does not is told again."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests.builders import CLUSTER, MINUTE, NOW, a_jobset, a_leader, a_record, leaders_wait, settings
from tests.builders import a_list as some_list
from tests.world import World
from tpu_slices.domain.model.clusters import Allowed, Policy
from tpu_slices.domain.model.facts import Fact, Family, Heartbeat, Listed, SlicesWanted
from tpu_slices.domain.model.questions import RepeatQuestion
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import ClaimId, WorkloadUid
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.flows import lists
from tpu_slices.flows.receive import receive
from tpu_slices_simulator.live import LiveWorkload

A_SLICE = ClaimId("tpu-a-0-aaaaaaaaaaaaa")
LATER = NOW + 5 * MINUTE


@pytest.fixture
def world() -> World:
    world = World()
    world.clock.advance(5 * MINUTE)
    return world


def waiting(uid: str, *slices: ClaimId, told_at: object = NOW) -> WorkloadRecord:
    return a_jobset(uid=WorkloadUid(uid), demand=dict.fromkeys(slices or (A_SLICE,), told_at))


def a_list(*records: WorkloadRecord, **changes: object) -> Listed:
    return some_list(Family.DEMAND, {each.owner.uid: each.demand_digest for each in records}, **changes)


def demand_of(world: World, uid: str) -> list[object]:
    return [*world.store.workloads(CLUSTER, [WorkloadUid(uid)])[WorkloadUid(uid)].value.demand.values()]


def repeated(world: World) -> list[tuple[str, ...]]:
    asked = [question for _, question in world.publisher.questions if isinstance(question, RepeatQuestion)]
    assert {question.family for question in asked} <= {Family.DEMAND}
    return [question.keys for question in asked]


def confirmed_at(world: World) -> object:
    heartbeat = world.store.heartbeat(CLUSTER)
    return heartbeat and heartbeat.value.demand_confirmed_at


def test_a_list_that_agrees_confirms_all_demand_and_writes_no_workload(world: World) -> None:
    records = [waiting("a"), waiting("b")]
    world.store.put(*records)
    before = len(world.store.commits)
    receive(a_list(*records), CLUSTER, world.deps, LATER)
    assert confirmed_at(world) == LATER
    assert len(world.store.commits) == before + 1
    assert world.publisher.questions == []


@pytest.mark.parametrize(("told", "at"), [("as it is on record", LATER), ("otherwise", None)])
def test_a_heartbeat_confirms_all_demand_if_it_is_told_as_it_is_on_record(
    world: World, told: str, at: datetime | None
) -> None:
    records = [waiting("a"), waiting("b")]
    world.store.put(*records)
    digest = sum(each.demand_digest for each in records) + (told == "otherwise")
    receive(Heartbeat(count=2, digests={Family.DEMAND: digest}), CLUSTER, world.deps, LATER)
    assert confirmed_at(world) == at


def test_demand_that_is_not_on_record_is_asked_for(world: World) -> None:
    known, lost = waiting("a"), waiting("b")
    world.store.put(known)
    receive(a_list(known, lost), CLUSTER, world.deps, LATER)
    assert [question for _, question in world.publisher.questions] == [
        RepeatQuestion(family=Family.DEMAND, keys=("b",))
    ]
    assert (demand_of(world, "a"), confirmed_at(world)) == ([NOW], LATER)


def test_demand_that_is_recorded_otherwise_is_forgotten_and_asked_for(world: World) -> None:
    world.store.put(waiting("a", A_SLICE, ClaimId("tpu-a-1-aaaaaaaaaaaaa")))
    receive(a_list(waiting("a")), CLUSTER, world.deps, LATER)
    assert demand_of(world, "a") == [None, None]
    assert [question for _, question in world.publisher.questions] == [
        RepeatQuestion(family=Family.DEMAND, keys=("a",))
    ]
    assert world.publisher.requests == []


def test_demand_that_the_list_lacks_is_forgotten_and_its_slices_are_reconciled(world: World) -> None:
    world.store.put(waiting("a"))
    receive(a_list(), CLUSTER, world.deps, LATER)
    assert demand_of(world, "a") == [None]
    assert world.publisher.requests == [(CLUSTER, A_SLICE)]
    assert world.publisher.questions == []


def test_demand_that_was_told_moments_ago_need_not_be_in_the_list(world: World) -> None:
    world.store.put(waiting("a", told_at=LATER - timedelta(seconds=29)), waiting("b", told_at=LATER - MINUTE))
    receive(a_list(), CLUSTER, world.deps, LATER)
    assert demand_of(world, "a") != [None]
    assert demand_of(world, "b") == [None]


def test_a_part_of_a_list_says_nothing_beyond_its_range_and_confirms_only_with_all_others(world: World) -> None:
    first, second = waiting("a"), waiting("b")
    world.store.put(first, second)
    receive(a_list(first, up_to="a", parts=2), CLUSTER, world.deps, LATER)
    assert demand_of(world, "b") == [NOW]
    assert confirmed_at(world) != LATER
    receive(a_list(second, after="a", part=1, parts=2), CLUSTER, world.deps, LATER)
    assert confirmed_at(world) == LATER


def test_a_list_that_differs_in_very_much_confirms_nothing_yet(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "MOST_FORGOTTEN", 1)
    world.store.put(waiting("a"), waiting("b"))
    receive(a_list(), CLUSTER, world.deps, LATER)
    assert [demand_of(world, "a"), demand_of(world, "b")] == [[None], [NOW]]
    assert confirmed_at(world) is None
    receive(a_list(), CLUSTER, world.deps, LATER)
    assert confirmed_at(world) == LATER


def test_only_demand_that_is_asked_for_again_is_forgotten_of_what_the_list_has_otherwise(world: World) -> None:
    both = (A_SLICE, ClaimId("tpu-a-1-aaaaaaaaaaaaa"))
    world.store.put(*(waiting(f"uid-{number:03}", *both) for number in range(600)))
    for part in range(2):
        receive(
            a_list(*(waiting(f"uid-{number:03}") for number in range(600)), part=part, parts=2), CLUSTER, world.deps
        )
    forgotten = {each.owner.uid for each in world.store.jobset_records(CLUSTER) if not any(each.demand.values())}
    assert forgotten == {key for keys in repeated(world) for key in keys}
    assert confirmed_at(world) is None


def test_demand_that_is_not_on_record_does_not_keep_the_rest_from_being_confirmed(world: World) -> None:
    known = waiting("a")
    world.store.put(known)
    receive(a_list(known, *(waiting(f"uid-{number:03}") for number in range(600))), CLUSTER, world.deps, LATER)
    assert confirmed_at(world) == LATER


@pytest.mark.parametrize("waits", [True, False])
def test_demand_that_comes_late_is_outdated_if_the_records_agreed_without_it_since(*, waits: bool) -> None:
    world = World()
    jobset = world.jobset_appears(absent=True)
    world.settle(minutes=60)
    assert world.pools == []
    jobset.absent = not waits
    fact = SlicesWanted(workload=jobset.ref, requests=tuple(jobset.requests), waiting=(a_leader(),))
    receive(fact, CLUSTER, world.deps, world.clock.now() - 59 * MINUTE)
    world.settle(minutes=10)
    assert bool(world.pools) is waits


@pytest.mark.parametrize(("unawaited_since", "requested"), [(NOW, True), (None, False)])
def test_a_leader_that_is_back_ends_the_time_in_which_none_waited(
    world: World, unawaited_since: datetime | None, *, requested: bool
) -> None:
    awaits = {"phase": Phase.PROVISIONING, "reason": Reason.AWAITING_FLEX_START, "create_requested_at": NOW}
    record = a_record(**awaits, unawaited_since=unawaited_since)
    world.store.put(record, a_jobset(demand={record.maker: NOW}))
    receive(leaders_wait(0), CLUSTER, world.deps, LATER)
    assert (world.publisher.requests == [(CLUSTER, record.maker)]) is requested


class Overheard(World):
    """`told` has the relay's facts."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Fact] = []

    def publish(self, fact: Fact) -> None:
        self.told.append(fact)
        super().publish(fact)


def queued(world: World) -> tuple[LiveWorkload, SliceRecord]:
    """Let six slices wait for five slots; return the JobSet and the slice that is left over."""
    jobset = world.jobset_appears(slices=6)
    world.steps()
    (record,) = [each for each in world.records.values() if each.reason is Reason.OPERATION_LIMIT]
    return jobset, record


def test_a_slice_that_waits_for_hours_is_bought_although_its_demand_was_told_once() -> None:
    world = Overheard()
    jobset, left_over = queued(world)
    for _ in range(180):
        world.steps()
        world.clock.advance(MINUTE - timedelta(seconds=12))
        world.sweeps()
    assert world.records[left_over.name].reason is Reason.OPERATION_LIMIT
    world.settle(minutes=5, until=lambda: len(jobset.bound) == 6)
    assert len(jobset.bound) == 6
    assert sum(isinstance(fact, SlicesWanted) for fact in world.told) == 1


def test_a_queued_slice_whose_leader_went_leaves_the_queue() -> None:
    world = World()
    jobset, left_over = queued(world)
    jobset.absent = True
    world.cluster.removes_pod(jobset, left_over.job_index)
    for _ in range(7):
        world.steps()
        world.clock.advance(MINUTE - timedelta(seconds=12))
        world.sweeps()
    assert world.records[left_over.name].reason is Reason.DEMAND_STALE


def test_what_was_refused_is_told_again_once_the_settings_have_changed() -> None:
    world = World(of_cluster=settings(policy=Policy(everyone=Allowed(chips_per_slice=1))))
    jobset = world.jobset_appears()
    world.settle(minutes=3)
    assert world.record(jobset).phase is Phase.REFUSED
    world.store.put_settings(settings())
    world.settle(minutes=10, until=lambda: len(jobset.bound) == 1)
    assert len(jobset.bound) == 1

"""All slices of a run or none: what is bought, held and let go for a gang."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest

from relay.objects import PoolKey
from tests.builders import CLUSTER, MINUTE, a_request, settings
from tests.manifests import a_manifest
from tests.world import World
from tpu_slices.domain.model.clusters import Allowed, Policy
from tpu_slices.domain.model.gangs import GANG_HOLD_FOR
from tpu_slices.domain.model.observations import Failure, FailureKind, Outcome, Refused
from tpu_slices.domain.model.reasons import Phase, Reason, ReportReason
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.domain.records.gangs import Gang
from tpu_slices.flows.budget import tell_waiting
from tpu_slices.ports.backend import PoolOrder
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload

STOCKOUT = Failure(FailureKind.STOCKOUT, "[GCE_STOCKOUT] none left.")
SLICE = 16
"""Chips."""


def a_gang(world: World, name: str = "llama", slices: int = 4, namespace: str = "research") -> LiveWorkload:
    return world.jobset_appears(name, slices, a_request(gang="all"), namespace)


def gang_of(world: World, jobset: LiveWorkload) -> Gang:
    stored = world.store.workloads(CLUSTER, [jobset.ref.owner.uid])
    return stored[jobset.ref.owner.uid].value.gangs["all"]


def report(world: World, jobset: LiveWorkload) -> tuple[ReportReason, str]:
    made = world.store.workloads(CLUSTER, [jobset.ref.owner.uid])[jobset.ref.owner.uid].value.report
    assert made is not None
    return made.reason, made.message


def has_capacity_for(world: World, most: int) -> None:
    """Let the zone have so many slices from now on: any other creation is refused."""
    create = partial(type(world.backend)._create, world.backend)

    def refused(order: PoolOrder) -> Outcome:
        return create(order) if len(world.backend.pools) < most else Refused(STOCKOUT)

    world.backend._create = refused  # type: ignore[method-assign]


def at_most(chips: int) -> World:
    return World(of_cluster=settings(policy=Policy(everyone=Allowed(chips_per_namespace=chips))))


@pytest.fixture
def world() -> World:
    return World()


def test_a_gang_whose_slices_all_come_runs(world: World) -> None:
    gang = a_gang(world)
    world.settle(minutes=15, until=lambda: gang.served)
    world.settle(minutes=2)
    assert (gang.bound, len(world.pools), report(world, gang)[0]) == ({0, 1, 2, 3}, 4, ReportReason.GANG_STARTED)
    assert gang_of(world, gang).ran


def test_a_gang_that_does_not_fit_buys_nothing_until_it_does() -> None:
    world = at_most(5 * SLICE)
    other = world.jobset_appears("gemma", 2)
    world.settle(minutes=10, until=lambda: other.served)
    gang = a_gang(world)
    world.settle(minutes=10)
    assert len(world.pools) == 2
    assert {world.record(gang, index).reason for index in range(4)} == {Reason.AWAITING_GANG}
    assert "need 64 chips at once, and 48 of 80 are free" in report(world, gang)[1]
    world.ends(other)
    world.settle(minutes=15, until=lambda: gang.served)
    assert gang.served


def test_of_two_gangs_that_do_not_fit_together_the_second_buys_nothing() -> None:
    world = at_most(4 * SLICE)
    first, second = a_gang(world, "llama", 3), a_gang(world, "gemma", 3)
    world.settle(minutes=15, until=lambda: first.served)
    assert (first.served, len(world.backend.ordered(Verb.CREATE))) == (True, 3)
    assert {world.record(second, index).reason for index in range(3)} == {Reason.AWAITING_GANG}


def test_a_slice_by_itself_does_not_take_what_is_reserved_for_a_gang() -> None:
    world = at_most(4 * SLICE)
    gang = a_gang(world)
    has_capacity_for(world, 3)
    world.settle(minutes=5)
    single = world.jobset_appears("single", 1)
    world.settle(minutes=3)
    assert world.record(single).reason is Reason.CHIP_LIMIT_REACHED
    assert gang_of(world, gang).forms


def test_a_slice_by_itself_is_not_told_again_and_again_that_chips_are_free_which_are_reserved_for_a_gang() -> None:
    world = at_most(4 * SLICE)
    a_gang(world)
    has_capacity_for(world, 3)
    world.settle(minutes=5)
    world.jobset_appears("single", 1)
    world.settle(minutes=3)
    told = tell_waiting(world.settings, world.deps)
    assert told == 0


def test_a_gang_that_no_limit_lets_in_is_refused_with_the_numbers() -> None:
    world = at_most(3 * SLICE)
    gang = a_gang(world)
    world.settle(minutes=3)
    assert {(world.record(gang, index).phase, world.record(gang, index).reason) for index in range(4)} == {
        (Phase.REFUSED, Reason.GANG_TOO_LARGE)
    }
    reason, message = report(world, gang)
    assert reason is ReportReason.GANG_CANNOT_FIT
    assert "its 4 slices need 64 chips together, and at most 48 are allowed" in message
    assert world.pools == []


def test_a_gang_that_is_to_be_held_for_longer_than_is_allowed_is_refused_by_the_key(world: World) -> None:
    asked = a_request(gang="all", gang_hold_for=5 * 3_600)
    gang = world.jobset_appears("llama", 2, asked)
    world.settle(minutes=3)
    assert world.record(gang).phase is Phase.REFUSED
    message = world.record(gang).message
    assert f"{GANG_HOLD_FOR}: its slices would be held for 5 hours" in message
    assert "limits.gang_hold_at_most is 4 hours" in message
    assert world.pools == []


def test_what_the_workload_says_decides_for_how_long_its_slices_are_held(world: World) -> None:
    has_capacity_for(world, 1)
    gang = world.jobset_appears("llama", 2, a_request(gang="all", gang_hold_for=20 * 60))
    world.settle(minutes=20, until=lambda: gang_of(world, gang).held_since is not None)
    world.settle(minutes=30, until=lambda: gang_of(world, gang).reason is Reason.LET_GO_WITH_GANG)
    assert "of 2 slices stood for 20 min" in gang_of(world, gang).message


def held(world: World, slices: int = 4, capacity: int = 3) -> LiveWorkload:
    """Return a gang of which some slices stand, and no others come."""
    has_capacity_for(world, capacity)
    gang = a_gang(world, slices=slices)
    world.settle(minutes=20, until=lambda: gang_of(world, gang).held_since is not None)
    return gang


def test_slices_that_stand_are_held_while_another_is_out_of_stock_and_that_is_told(world: World) -> None:
    gang = held(world)
    world.settle(minutes=45)
    assert len(world.pools) == 3
    standing = [each for index in range(4) if (each := world.record(gang, index)).phase is Phase.READY]
    assert {each.reason for each in standing} == {Reason.READY}, "they are not idle"
    reason, message = report(world, gang)
    assert reason is ReportReason.GANG_HELD
    assert "3 of 4 slices ready" in message
    assert "Its pods start together, once all 4 slices stand." in message
    assert "48 chips are billed" in message
    assert "all are let go if the others have not come" in message


def test_slices_that_are_held_for_too_long_go_and_are_tried_again_after_pauses(world: World) -> None:
    gang = held(world)
    world.settle(minutes=75, until=lambda: not world.pools)
    assert (world.pools, gang.bound) == ([], set())
    first = gang_of(world, gang)
    assert (first.waits, first.tries, first.reason) == (True, 1, Reason.LET_GO_WITH_GANG)
    assert {world.record(gang, index).reason for index in range(4)} == {Reason.LET_GO_WITH_GANG}
    assert "3 of 4 slices stood for" in report(world, gang)[1]
    world.settle(minutes=100, until=lambda: gang_of(world, gang).tries == 2)
    second = gang_of(world, gang)
    assert second.back_at is not None
    assert second.back_at - world.clock.now() > timedelta(minutes=7)


def test_a_gang_that_was_let_go_gets_all_slices_once_they_can_be_had(world: World) -> None:
    gang = held(world)
    world.settle(minutes=75, until=lambda: gang_of(world, gang).waits)
    assert gang_of(world, gang).tries == 1
    has_capacity_for(world, 4)
    world.settle(minutes=30, until=lambda: gang.served)
    assert gang.served
    world.settle(minutes=2)
    assert gang_of(world, gang).tries == 0


def test_of_two_gangs_that_hold_what_the_other_lacks_one_starts_and_the_other_holds_nothing(world: World) -> None:
    has_capacity_for(world, 4)
    first, second = a_gang(world, "llama", 3), a_gang(world, "gemma", 3)
    world.settle(minutes=12)
    assert len(pools := world.pools) == 4
    world.settle(minutes=30, until=lambda: gang_of(world, first).ran or gang_of(world, second).ran)
    started, waits = (first, second) if gang_of(world, first).ran else (second, first)
    assert {world.record(started, index).pool for index in range(3)} < set(pools), "it was handed what the other had"
    world.settle(minutes=5, until=lambda: started.served)
    assert started.served
    assert not gang_of(world, waits).ran


def test_a_gang_that_lost_a_slice_after_its_start_holds_the_others_for_a_new_one(world: World) -> None:
    gang = a_gang(world)
    world.settle(minutes=15, until=lambda: gang.served)
    pools = [world.record(gang, index).pool for index in range(4)]
    for index in range(4):
        world.cluster.evicts_leader(gang, index)
    world.cluster.creates_pods()
    lost = world.record(gang)
    world.backend.pools.pop(pools[0])
    world.cluster.loses_nodes(PoolKey(lost.maker, lost.attempt))
    world.settle(minutes=25)
    assert set(pools[1:]) <= set(world.pools)
    assert gang_of(world, gang).ran
    world.settle(minutes=15, until=lambda: gang.served)
    assert gang.served


def test_a_suspended_gang_reserves_nothing_and_begins_anew_when_it_is_resumed() -> None:
    world = at_most(4 * SLICE)
    has_capacity_for(world, 0)
    gang = a_gang(world)
    world.settle(minutes=3)
    world.suspends(gang)
    world.settle(minutes=3)
    budget = world.store.budget(CLUSTER)
    assert budget is not None
    assert budget.value.gangs == {}
    world.resumes(gang)
    world.settle(minutes=1)
    assert gang_of(world, gang).since > world.clock.now() - 3 * MINUTE


def test_gangs_of_another_namespace_are_not_named(world: World) -> None:
    has_capacity_for(world, 1)
    first = a_gang(world, "secret", 2, namespace="others")
    world.settle(minutes=8)
    second = a_gang(world, "llama", 2)
    world.settle(minutes=3)
    assert gang_of(world, first).forms
    assert gang_of(world, second).waits
    assert "secret" not in report(world, second)[1]
    assert "a workload of another namespace, which is before it in line, lacks" in report(world, second)[1]


def test_no_pod_of_a_gang_runs_before_all_of_its_slices_stand(world: World) -> None:
    gang = held(world)
    world.settle(minutes=30)
    assert gang.bound == set()
    has_capacity_for(world, 4)
    world.settle(minutes=20, until=lambda: gang.served)
    assert gang.served


def test_a_gang_restarts_on_slices_that_stand_while_the_functions_are_down(world: World) -> None:
    gang = a_gang(world)
    world.settle(minutes=15, until=lambda: gang.served)
    for index in range(4):
        world.cluster.evicts_leader(gang, index)
    for _ in range(3):
        world.cluster_lives()
    assert gang.served


def test_a_relay_that_starts_opens_a_gang_that_stands(world: World) -> None:
    gang = held(world)
    world.relay_is_dead = True
    has_capacity_for(world, 4)
    world.settle(minutes=4)
    assert gang.bound == set()
    world.relay_is_dead = False
    world.settle(minutes=25, until=lambda: gang.served)
    assert gang.served


def test_a_group_by_itself_and_a_job_may_be_gangs_too(world: World) -> None:
    for kind in (OwnerKind.JOB, OwnerKind.LEADER_WORKER_SET):
        workload = world.other_appears(kind, manifest=a_manifest(kind, 2, a_request(gang="all")))
        world.settle(minutes=15, until=lambda: workload.served)  # noqa: B023 - it is called at once
        assert workload.served

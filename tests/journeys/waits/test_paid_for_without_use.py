"""A slice that is paid for without use is counted for an alert, and one that waits for capacity is not."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.builders import MINUTE
from tests.domain.planning.test_node_groups import self_managed
from tests.journeys.serving import BROKEN, STOCKOUT, reason, serving
from tests.world import World
from tpu_slices.domain.model.observations import Absent, Creating, Failure, FailureKind
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.flows.budget import counted
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.fakes.troubles import Trouble
from tpu_slices_simulator.live import LiveWorkload

FORBIDDEN = Failure(FailureKind.CONFIGURATION, 'Required "container.nodePools.delete" permission.')
TOLD_AFTER = 75
"""Minutes: an hour of the alert's condition, and the quarter of an hour for which it has to hold."""


def paid(world: World) -> timedelta:
    return counted(world.settings, world.deps).paid_for


def releasing(world: World) -> timedelta:
    return counted(world.settings, world.deps).releasing_for


def paid_meanwhile(world: World, minutes: int) -> list[timedelta]:
    """Return what is counted in each of the next minutes."""
    found = []
    for _ in range(minutes):
        world.settle(minutes=1)
        found.append(paid(world))
    return found


def creations_fail(world: World, minutes: int, failure: Failure) -> list[timedelta]:
    """Let each creation end so after 35 minutes, in the next minutes; return what is counted in each."""
    found, ages = [], dict.fromkeys(world.pools, 0)
    for _ in range(minutes):
        world.steps()
        for pool in list(world.backend.pools.values()):
            ages[pool.name] = ages.get(pool.name, 0) + 1
            if isinstance(pool.seen, Creating) and ages[pool.name] >= 35:
                world.backend.fail(pool.name, failure)
            elif not isinstance(pool.seen, Creating | Absent) and pool.operation is not None:
                world.backend.finish(pool.name)
        world.clock.advance(MINUTE)
        world.sweeps()
        found.append(paid(world))
    return found


def test_hosts_that_never_become_usable_are_counted_from_the_second_purchase_on_without_a_gap() -> None:
    world = World()
    world.cluster.unusable_hosts = 1
    jobset = world.jobset_appears()
    assert max(paid_meanwhile(world, 60)) < 40 * MINUTE
    world.settle(minutes=TOLD_AFTER - 60 + 15)
    assert min(paid_meanwhile(world, 240)) > TOLD_AFTER * MINUTE
    assert counted(world.settings, world.deps).paid_slice == world.record(jobset).id
    world.cluster.unusable_hosts = 0
    world.settle(minutes=120, until=lambda: jobset.bound == {0})
    world.settle(minutes=20)
    assert paid(world) == 0 * MINUTE
    assert counted(world.settings, world.deps).paid_slice is None


def test_capacity_that_is_out_of_stock_for_half_a_day_is_never_counted_for_long() -> None:
    world = World()
    jobset = world.jobset_appears()
    assert max(creations_fail(world, 12 * 60, STOCKOUT)) < 45 * MINUTE
    assert world.record(jobset).claim.setbacks[Reason.STOCKOUT] > 5


def test_creations_that_fail_for_a_cause_that_nobody_knows_are_counted() -> None:
    world = World()
    world.jobset_appears()
    assert min(creations_fail(world, 4 * 60, BROKEN)[90:]) > TOLD_AFTER * MINUTE


def test_a_creation_that_never_ends_is_counted() -> None:
    world = World()
    world.jobset_appears()
    for _ in range(90):
        world.steps()
        world.clock.advance(MINUTE)
        world.sweeps()
    assert paid(world) > TOLD_AFTER * MINUTE


def failed_once(world: World) -> LiveWorkload:
    """Let a JobSet run on its second pool, while GKE does not delete the first one, whose creation failed."""
    world.backend.refuses_deletions = FORBIDDEN
    jobset = world.jobset_appears()
    world.steps()
    world.backend.fail(world.record(jobset).pool, STOCKOUT)
    world.settle(minutes=30, until=lambda: jobset.bound == {0})
    return jobset


def test_a_failed_slice_that_gke_does_not_delete_is_counted_as_releasing_while_its_job_runs_on_another() -> None:
    world = World()
    jobset = failed_once(world)
    world.settle(minutes=90)
    assert (world.record(jobset).phase, len(world.pools)) == (Phase.READY, 2)
    assert paid(world) == 0 * MINUTE
    assert releasing(world) > TOLD_AFTER * MINUTE
    world.backend.refuses_deletions = None
    world.settle(minutes=10)
    assert (len(world.pools), paid(world), releasing(world)) == (1, 0 * MINUTE, 0 * MINUTE)


def test_an_earlier_pool_that_somebody_uses_is_not_counted() -> None:
    world, llama = serving()
    guest = world.guest_appears()
    first = world.record(llama).maker
    world.leaves(llama)
    world.binds(guest, first, 1)
    world.settle(minutes=180)
    assert (world.record(llama).attempt, len(world.pools)) == (2, 2)
    assert (paid(world), releasing(world)) == (0 * MINUTE, 0 * MINUTE)


def test_a_slice_that_is_released_and_cannot_be_read_is_counted() -> None:
    world, llama = serving()
    world.backend.trouble(Trouble.FORBIDDEN, Verb.LOOK)
    world.ends(llama)
    world.settle(minutes=120)
    assert world.record(llama).reason is Reason.POOL_UNREADABLE
    assert len(world.pools) == 1
    assert paid(world) > TOLD_AFTER * MINUTE


def test_a_used_slice_that_lost_a_host_is_counted_until_the_host_is_back() -> None:
    world, llama = serving()
    world.a_host_breaks()
    world.settle(minutes=90)
    assert reason(world, llama) is Reason.HOSTS_LOST
    assert paid(world) > TOLD_AFTER * MINUTE


def test_a_ready_group_that_lost_a_host_for_good_is_counted() -> None:
    world = World(of_cluster=self_managed())
    group = world.group_appears()
    world.settle(minutes=5, until=lambda: world.reasons(group).get("Ready") == "Ready")
    world.cluster.loses_node(list(world.cluster.nodes)[-1])
    world.settle(minutes=90)
    assert world.reasons(group)["Ready"] == "!NodeLost"
    assert paid(world) > TOLD_AFTER * MINUTE


def test_hosts_that_come_back_are_not_counted_and_those_that_did_not_are_from_then_on() -> None:
    """`hosts.late` tells of the former."""
    world, llama = serving()
    name = next(iter(world.cluster.nodes))
    world.host_is_maintained(name)
    world.settle(minutes=180)
    assert (reason(world, llama), paid(world)) == (Reason.UNDER_MAINTENANCE, 0 * MINUTE)
    world.host_is_back(name, ready=False)
    world.settle(minutes=10)
    assert reason(world, llama) is Reason.HOSTS_JOINING
    assert 5 * MINUTE < paid(world) < 20 * MINUTE


@pytest.mark.parametrize("failure", [STOCKOUT, BROKEN])
def test_nobody_is_told_of_a_jobset_that_is_served_at_its_second_attempt(failure: Failure) -> None:
    world = World()
    jobset = world.jobset_appears()
    world.steps()
    world.backend.fail(world.record(jobset).pool, failure)
    found = paid_meanwhile(world, 30)
    assert (jobset.bound, found[-1]) == ({0}, 0 * MINUTE)
    assert max(found) < 30 * MINUTE

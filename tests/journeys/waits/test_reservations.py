"""JobSets on a reservation that is not there yet, or cannot provide hosts now: few calls, and soon after it can."""

from __future__ import annotations

import pytest

from tests.builders import MINUTE, a_request, settings
from tests.world import World
from tpu_slices.domain.model.clusters import Allowed, Policy
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.domain.model.reasons import Reason
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload

MISSING = Failure(FailureKind.RESERVATION_AWAITED, "Specified reservations [hall-7] do not exist.")
USED_UP = Failure(FailureKind.RESERVATION, "Specified reservation 'hall-7' does not have available resources.")


def appear(world: World, count: int) -> list[LiveWorkload]:
    world.store.put_settings(settings(policy=Policy(everyone=Allowed(reservations=("*",)))))
    named = ("cloud.google.com/reservation-name", "hall-7")
    request = a_request(replicas=1, node_selector=(*a_request().node_selector, named))
    return [world.jobset_appears(f"job-{number}", request=request) for number in range(count)]


def calls(world: World) -> int:
    return sum(call.verb is Verb.CREATE for call in world.backend.calls)


@pytest.mark.parametrize("why", [MISSING, USED_UP], ids=["missing", "used up"])
@pytest.mark.parametrize(("count", "most"), [(1, 60), (20, 110)])
def test_a_reservation_is_asked_every_few_minutes_however_many_jobsets_wait_for_it(
    why: Failure, count: int, most: int
) -> None:
    world = World()
    world.backend.refuses_creations = why
    appear(world, count)
    world.settle(minutes=240)
    assert 240 / 6 <= calls(world) <= most
    waits = {record.reason for record in world.records.values()}
    assert waits <= {FAILED[why.kind], Reason.AWAITING_TURN}


@pytest.mark.parametrize("count", [1, 20])
@pytest.mark.parametrize("begins_after", [7, 64, 181])
def test_a_reservation_that_begins_is_used_within_minutes(count: int, begins_after: int) -> None:
    world = World()
    world.backend.refuses_creations = MISSING
    jobsets = appear(world, count)
    world.settle(minutes=begins_after)
    assert not world.pools
    world.backend.refuses_creations = None
    began = world.clock.now()
    world.settle(minutes=8, until=lambda: bool(world.pools))
    assert world.clock.now() - began <= 7 * MINUTE
    world.settle(minutes=60, until=lambda: all(jobset.bound == {0} for jobset in jobsets))
    assert all(jobset.bound == {0} for jobset in jobsets)


FAILED = {
    FailureKind.RESERVATION_AWAITED: Reason.RESERVATION_AWAITED,
    FailureKind.RESERVATION: Reason.RESERVATION_UNAVAILABLE,
}

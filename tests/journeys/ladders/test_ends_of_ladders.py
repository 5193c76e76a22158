"""Where ladders begin and end: static slices before the first rung, what is told once, and nothing after the last."""

from __future__ import annotations

from datetime import timedelta

from tests.builders import MINUTE, NOW
from tests.journeys.ladders.stories import LIST, PLACES, SPOT, B, appears, asked, had, laddered, rung
from tests.world import World
from tpu_slices.domain.model.capacity import Place
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import CapacityKind
from tpu_slices_simulator.fakes.reservations import FakeReservation

IN_LIST = f"on-demand in {B}"
QUOTA = Failure(FailureKind.QUOTA, "Quota 'TPUS_PER_TPU_FAMILY' exceeded. Limit: 16.0 in region us-central2.")
FORBIDDEN = Failure(FailureKind.CONFIGURATION, "Required 'compute.instances.create' permission.")


def test_a_quota_that_is_used_up_is_told_by_one_event_for_all_slices_of_a_workload() -> None:
    world = World(of_cluster=laddered(rung("spot"), rung("list")))
    world.backend.refuses(B, SPOT, QUOTA)
    jobset = appears(world, "llama", 4)
    world.settle(minutes=30)
    assert jobset.bound == {0, 1, 2, 3}
    told = [each.slice_id for each in world.publisher.updates if each.transition.reason is Reason.QUOTA_EXCEEDED]
    assert len(told) == 1


def test_a_job_that_loses_its_hosts_with_its_reservation_is_asked_for_at_the_next_rung_within_minutes() -> None:
    booked = Place(capacity=CapacityKind.RESERVATION, reservation="hall-7", zones=(B,))
    places = {**PLACES, "booked": booked}
    world = World(of_cluster=laddered(rung("booked", 30), rung("list"), places=places))
    world.reservations.has(FakeReservation(name="hall-7", hosts=16, ends_at=NOW + 60 * MINUTE))
    jobset = appears(world, "llama")
    world.settle(minutes=61)
    assert had(world) == {f"reservation hall-7 in {B}": 1}
    for pool in [*world.backend.pools]:
        world.backend.vanish(pool)
    world.leaves(jobset)
    lost = world.clock.now()
    world.settle(minutes=30, until=lambda: asked(world)[IN_LIST] == 1)
    assert world.clock.now() - lost <= timedelta(minutes=3)
    world.settle(minutes=10)
    assert had(world) == {IN_LIST: 1}
    assert jobset.bound == {0}


def test_who_is_not_taken_at_any_rung_is_blocked_with_the_text_of_the_last() -> None:
    world = World(of_cluster=laddered(rung("spot"), rung("list")))
    for kind in (SPOT, LIST):
        world.backend.refuses(B, kind, FORBIDDEN)
    jobset = appears(world, "llama")
    world.settle(minutes=20)
    record = world.record(jobset)
    assert (record.phase, record.reason) == (Phase.BLOCKED, Reason.INVALID_CONFIGURATION)
    assert FORBIDDEN.message.rstrip(".") in record.message
    assert asked(world) == {f"spot in {B}": 1, IN_LIST: 1}


def test_a_job_that_finds_a_static_slice_is_asked_for_at_no_rung_any_more() -> None:
    world = World(of_cluster=laddered(rung("spot"), rung("list")))
    for kind in (SPOT, LIST):
        world.backend.runs_out(B, kind)
    jobset = appears(world, "llama")
    world.settle(minutes=30)
    (leader,) = (pod for pod in world.cluster.pods.values() if pod.jobset is jobset)
    world.cluster.binds_outside(leader, "static-host")
    world.settle(minutes=2)
    before = asked(world)
    for kind in (SPOT, LIST):
        world.backend.has_stock(B, kind)
    world.settle(minutes=120)
    assert asked(world) == before
    assert had(world) == {}

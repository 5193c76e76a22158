"""Who waits for chips among many others: other sizes, other namespaces, lost and forgotten things."""

from __future__ import annotations

import pytest

from tests.builders import CLUSTER, MINUTE, a_jobset_ref, a_request, settings
from tests.journeys.waits.test_chips import SLICE, limited, releases, running, waiting
from tests.manifests import a_manifest
from tests.world import World
from tpu_slices.domain.model.clusters import Allowed, Policy
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices_simulator.live import LiveWorkload


def of_two_sizes(world: World, namespace: str, each: int = 1) -> LiveWorkload:
    """Let a JobSet appear with slices of 32 chips, and behind them others of 16."""
    manifest = a_manifest(slices=each, request=a_request(topology="4x8", replicated_job="a"))
    small = a_manifest(slices=each, request=a_request(topology="4x4", replicated_job="b"))
    manifest["spec"]["replicatedJobs"] += small["spec"]["replicatedJobs"]
    jobset = LiveWorkload(a_jobset_ref(name="mixed", namespace=namespace, uid=WorkloadUid("uid-mixed")), manifest)
    world.cluster.puts(jobset)
    return jobset


@pytest.mark.parametrize("each", [1, 30])
def test_a_jobset_of_two_sizes_takes_what_its_smaller_slices_need_and_hides_no_other_namespace(each: int) -> None:
    world = World(of_cluster=limited(in_cluster=3 * SLICE))
    first, *_ = [running(world, name) for name in ("x", "y", "z")]
    mixed = of_two_sizes(world, "aaa", each)
    honest = waiting(world, "honest", "zzz")
    world.settle(minutes=5)
    releases(world, first)
    world.settle(minutes=10)
    one, other = (mixed, honest) if mixed.bound else (honest, mixed)
    assert one.bound, "16 chips are free, and nobody has them"
    world.ends(one)
    world.settle(minutes=20)
    assert other.bound


def test_the_namespace_in_which_chips_are_released_is_told_however_many_others_wait() -> None:
    world = World(of_cluster=limited(in_namespace=SLICE))
    for number in range(50):
        running(world, f"r{number:02}", namespace=f"ns{number:02}")
        world.jobset_appears(f"w{number:02}", namespace=f"ns{number:02}")
    first = running(world, "first", "zz")
    honest = waiting(world, "honest", "zz")
    world.settle(minutes=3)
    releases(world, first)
    assert world.record(honest).reason is Reason.CREATION_STARTED


def test_a_slice_that_a_report_left_out_is_told_of_chips_once_its_leader_is_known_to_wait() -> None:
    world = World(of_cluster=limited(in_namespace=2 * SLICE))
    first = running(world)
    jobset = world.jobset_appears("two", slices=2)
    world.settle(minutes=10)
    world.relay_is_earlier = True  # nothing confirms demand
    world.settle(minutes=40)
    world.relay_is_earlier = False
    world.settle(minutes=40)
    releases(world, first)
    world.settle(minutes=20)
    assert jobset.bound == {0, 1}


def test_chips_that_were_released_once_are_told_of_once_while_who_was_told_waits_for_a_slot() -> None:
    world = World(of_cluster=limited(in_namespace=2 * SLICE))
    jobsets = [running(world, name) for name in ("first", "second")]
    many = waiting(world, "many", slices=40)
    world.ends(jobsets[0])
    world.ends(jobsets[1])
    for _ in range(12):
        world.settle(minutes=1)
        reasons = [world.record(many, index).reason for index in range(40)]
        assert reasons.count(Reason.OPERATION_LIMIT) + reasons.count(Reason.CREATION_STARTED) <= 2
    assert len(many.bound) == 2


def test_a_slice_is_planned_anew_under_new_settings_once_nothing_of_it_stands() -> None:
    world = World()
    jobset = world.jobset_appears("one")
    world.steps()
    world.clock.advance(MINUTE)
    world.sweeps()
    zones = ("us-central2-a",)
    after = settings(zone=zones[0], version="settings-2", policy=Policy(everyone=Allowed(zones=zones)))
    world.store.put_settings(after)
    world.settings = after
    for _ in range(2):
        world.sweeps()
        world.steps()
    world.backend.fail(world.record(jobset).pool, Failure(FailureKind.STOCKOUT, "none"))
    world.settle(minutes=10)
    world.suspends(jobset)
    world.steps()
    world.clock.advance(3 * MINUTE)
    world.resumes(jobset)
    world.settle(minutes=60)
    assert jobset.bound == {0}


def test_a_claim_whose_record_was_found_again_is_planned_by_what_its_leader_asks_for() -> None:
    world = World()
    jobset = world.jobset_appears("one")
    world.settle(minutes=10, until=lambda: jobset.bound == {0})
    for place in world.store.places():
        if place.collection == "slices":
            world.store.remove_document(place)
    world.settle(minutes=40)
    world.all_hosts_break()
    world.settle(minutes=1)
    world.leaves(jobset)
    world.settle(minutes=120)
    assert jobset.bound == {0}
    assert world.store.slices(CLUSTER, [world.record(jobset).id])

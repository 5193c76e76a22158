"""Who is on the hosts: a slice is kept for whoever runs on it, and nothing in use is deleted."""

from __future__ import annotations

import pytest

from tests.builders import CLUSTER
from tests.journeys.serving import BROKEN, crossed, deletions, own_slice, reason, serving
from tests.world import World
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.flows import edits
from tpu_slices_simulator.fakes.backend import Verb

# others on the hosts


@pytest.mark.parametrize("how", ["leaves", "completes", "is suspended"])
def test_a_guest_beside_the_own_leader_changes_nothing_when_it_goes(how: str) -> None:
    world, llama = serving()
    guest = world.guest_appears()
    world.binds(guest, world.record(llama).maker, 1)
    world.settle(minutes=3)
    assert reason(world, llama) is Reason.READY
    if how == "leaves":
        world.leaves(guest)
    elif how == "completes":
        world.ends(guest)
    else:
        world.suspends(guest)
    world.settle(minutes=60)
    assert reason(world, llama) is Reason.READY
    assert deletions(world) == []


def test_crossed_jobsets_have_the_slices_that_they_use() -> None:
    world, llama, gemma = crossed()
    for jobset in (llama, gemma):
        record = world.record(jobset)
        assert (record.phase, record.reason) == (Phase.READY, Reason.READY)
        assert record.occupied
    assert (world.record(llama).maker, world.record(gemma).maker) == (own_slice(gemma), own_slice(llama))
    assert world.store.chips_bought(CLUSTER) == 32
    _, update = world.publisher.reports[-1]
    assert update.report.message == "1 of 1 slices ready, 4 of 4 pods run."


def test_a_crossed_jobset_that_restarts_finds_its_hosts_again() -> None:
    world, llama, gemma = crossed()
    world.leaves(llama)
    world.settle(minutes=3)
    assert len(world.pools) == 2
    assert len(world.backend.ordered(Verb.CREATE)) == 2, "no second slice is bought for a restart"
    llama.bound.add(0)
    world.binds(llama, own_slice(gemma), attempt=1)
    world.settle(minutes=60)
    assert (reason(world, llama), deletions(world)) == (Reason.READY, [])


def test_a_crossed_jobset_whose_place_is_lost_gets_a_slice_of_its_own() -> None:
    world, llama, _ = crossed()
    world.leaves(llama)
    world.settle(minutes=40, until=lambda: llama.bound == {0})
    assert llama.bound == {0}
    assert world.pools[-1].endswith(("-1", "-2"))


def test_the_slice_is_given_back_when_the_jobset_that_used_it_ends() -> None:
    world, llama = serving()
    world.leaves(llama)
    guest = world.guest_appears()
    world.binds(guest, world.record(llama).maker, 1)
    world.deliver()
    world.ends(guest)
    world.settle(minutes=5, until=lambda: llama.bound == {0})
    world.settle(minutes=2)
    assert (world.record(llama).attempt, reason(world, llama)) == (1, Reason.READY)
    assert len(world.backend.ordered(Verb.CREATE)) == 1


def test_hosts_that_a_live_job_left_a_moment_ago_are_kept_for_its_restart() -> None:
    world, llama, gemma = crossed()
    pool = world.record(gemma).pool
    world.ends(llama)
    world.settle(minutes=2)
    gemma.absent = True
    world.leaves(gemma)
    world.settle(minutes=8)
    assert (world.pools, reason(world, gemma)) == ([pool], Reason.IDLE)
    world.ends(gemma)
    world.settle(minutes=3)
    assert world.pools == []


def test_a_leader_that_takes_hosts_while_their_release_is_decided_keeps_them() -> None:
    world, llama = serving()
    pool = world.record(llama).pool
    world.ends(llama)
    world.deliver()
    guest = world.guest_appears()
    world.binds(guest, world.record(llama).maker, 1)
    world.settle(minutes=60)
    assert (world.pools, deletions(world)) == ([pool], [])
    assert (reason(world, llama), reason(world, guest)) == (Reason.RELEASED, Reason.READY)


# silence


def test_a_pool_that_gke_calls_broken_is_kept_while_the_relay_is_silent() -> None:
    world, llama = serving()
    world.leaves(llama)
    world.deliver()
    world.relay_is_dead = True
    world.settle(minutes=50)
    world.backend.wreck(world.record(llama).pool, BROKEN)
    world.settle(minutes=60)
    assert deletions(world) == []
    assert len(world.backend.ordered(Verb.CREATE)) == 1, "silence buys nothing either"


def test_a_forgotten_creation_is_not_deleted_while_the_relay_is_silent() -> None:
    world = World()
    jobset = world.jobset_appears()
    world.cluster_lives()
    world.deliver()
    world.relay_is_dead = True
    world.backend.forget_operation(world.record(jobset).pool)
    world.settle(minutes=120)
    assert deletions(world) == []


def test_a_silent_relay_keeps_what_would_be_released_and_says_so() -> None:
    world, llama = serving()
    world.ends(llama)
    world.relay_is_dead = True
    world.settle(minutes=60)
    assert (reason(world, llama), deletions(world)) == (Reason.RELAY_SILENT, [])
    world.relay_is_dead = False
    world.settle(minutes=30)
    assert world.pools == []


def test_after_a_silence_a_slice_is_released_as_soon_as_the_records_agree_with_what_the_relay_sees() -> None:
    world, llama = serving()
    world.ends(llama)
    world.relay_is_dead = True
    world.settle(minutes=30)
    world.relay_is_dead = False
    world.settle(minutes=1)
    assert deletions(world) == []
    world.settle(minutes=4)
    assert (reason(world, llama), world.pools) == (Reason.RELEASED, [])


def test_a_person_can_force_a_release_while_the_relay_is_dead_and_the_record_says_so() -> None:
    world, llama = serving()
    world.relay_is_dead = True
    world.settle(minutes=30)
    edits.edit(
        CLUSTER, world.record(llama).name, lambda record: edits.force_release(record, world.clock.now()), world.deps
    )
    world.settle(minutes=10)
    assert world.pools == []
    assert "Release forced" in world.record(llama).note

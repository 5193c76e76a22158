"""A slice that its Job needs no more serves the next Job that waits for such: nothing is deleted, nothing created."""

from __future__ import annotations

import pytest

from tests.builders import CLUSTER, a_request, settings
from tests.journeys.hosts.test_keys_of_hosts import closed, key, keys
from tests.journeys.serving import own_slice, serving
from tests.world import World
from tpu_slices.domain.model.clusters import Policy
from tpu_slices.domain.model.facts import Pinning, WorkloadState
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.planning.host_labels import NODE_POOL
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload


def orders(world: World) -> list[Verb]:
    return [call.verb for call in world.backend.calls if call.verb in {Verb.CREATE, Verb.DELETE}]


def serves(world: World, jobset: LiveWorkload) -> None:
    world.settle(minutes=15, until=lambda: jobset.bound == {0})


@pytest.mark.parametrize("ends", [WorkloadState.COMPLETED, WorkloadState.DELETED, WorkloadState.SUSPENDED])
def test_the_next_job_gets_what_the_last_one_gave_back(ends: WorkloadState) -> None:
    world, llama = serving("llama")
    world.ends(llama, ends)
    gemma = world.jobset_appears("gemma")
    serves(world, gemma)
    assert gemma.bound == {0}
    assert (orders(world), len(world.pools)) == ([Verb.CREATE], 1)
    world.settle(minutes=5)
    assert (keys(world), closed(world)) == ({key(gemma)}, [])
    record = world.record(gemma)
    assert (record.reason, record.maker) == (Reason.READY, own_slice(llama))
    assert (
        record.transitions[0].message == "Got the slice that JobSet llama gave back at 12:03 UTC: nothing was created."
    )
    assert [each.phase for each in world.record(llama).transitions[-2:]] == [Phase.RELEASING, Phase.GONE]


def test_it_goes_once_nobody_waits_for_it_any_more() -> None:
    world, llama = serving("llama")
    world.ends(llama)
    gemma = world.jobset_appears("gemma")
    serves(world, gemma)
    world.ends(gemma)
    world.settle(minutes=15)
    assert (orders(world), world.pools) == ([Verb.CREATE, Verb.DELETE], [])
    assert {each.phase for each in world.records.values()} == {Phase.GONE}


def test_one_that_waits_for_chips_gets_the_slice_and_no_other_is_bought() -> None:
    world, llama = serving("llama", World(of_cluster=settings(policy=Policy(chips_per_cluster=16))))
    gemma = world.jobset_appears("gemma")
    world.settle(minutes=5)
    assert world.record(gemma).reason is Reason.CHIP_LIMIT_REACHED
    world.ends(llama)
    serves(world, gemma)
    assert (gemma.bound, orders(world)) == ({0}, [Verb.CREATE])


@pytest.mark.parametrize("other", ["shape", "namespace"])
def test_a_job_that_waits_for_another_kind_gets_a_slice_of_its_own(other: str) -> None:
    world, llama = serving("llama")
    world.ends(llama)
    if other == "shape":
        gemma = world.jobset_appears("gemma", request=a_request(topology="2x4"))
    else:
        gemma = world.jobset_appears("gemma", namespace="vision")
    world.settle(minutes=20)
    assert gemma.bound == {0}
    assert sorted(orders(world)) == [Verb.CREATE, Verb.CREATE, Verb.DELETE]


def test_the_next_job_gets_it_with_its_key_though_it_is_not_known_that_pods_are_pinned() -> None:
    """The policy counts at once; the relay tells of it with its next heartbeat."""
    world, llama = serving("llama")
    world.cluster.pinning = Pinning.NOTHING
    world.settle(minutes=2)
    world.ends(llama)
    gemma = world.jobset_appears("gemma", request=a_request(exclusive_topology=NODE_POOL))
    world.settle(minutes=5)
    assert (world.record(gemma).maker, keys(world)) == (own_slice(llama), {key(gemma)})
    world.cluster.is_pinned_by(Pinning.POLICY)
    world.steps()
    assert (gemma.bound, orders(world)) == ({0}, [Verb.CREATE])


def test_what_is_being_made_for_a_job_that_ends_is_the_next_ones() -> None:
    world = World()
    llama = world.jobset_appears("llama")
    world.steps()
    world.steps()
    assert world.record(llama).phase is Phase.PROVISIONING
    world.ends(llama)
    gemma = world.jobset_appears("gemma")
    world.steps()
    assert world.record(gemma).maker == own_slice(llama)
    world.settle(minutes=20)
    assert (gemma.bound, orders(world), keys(world), closed(world)) == ({0}, [Verb.CREATE], {key(gemma)}, [])


def test_a_slice_that_an_operator_releases_is_given_to_nobody() -> None:
    world, llama = serving("llama")
    world.store.edit_slice(CLUSTER, world.record(llama).id, release_requested=True)
    world.ends(llama)
    gemma = world.jobset_appears("gemma")
    world.settle(minutes=20)
    assert gemma.bound == {0}
    assert sorted(orders(world)) == [Verb.CREATE, Verb.CREATE, Verb.DELETE]


def test_eight_jobs_in_turn_run_on_one_slice() -> None:
    world, last = serving("job-0")
    for number in range(1, 8):
        following = world.jobset_appears(f"job-{number}")
        world.ends(last)
        serves(world, following)
        assert following.bound == {0}
        last = following
    assert orders(world).count(Verb.CREATE) <= 2, "the first that waits may be served by a slice of its own"

"""Leaders of two JobSets that come to each other's hosts: nobody buys a second slice for who runs already."""

from __future__ import annotations

from dataclasses import replace

from tests.builders import a_job
from tests.world import LiveWorkload, World
from tpu_slices.domain.model.records import Phase
from tpu_slices.domain.model.slices import slice_id


def own_slice(jobset: LiveWorkload) -> str:
    return slice_id(a_job(name=jobset.ref.owner.name, uid=jobset.ref.owner.uid))


def crossed(world: World) -> tuple[LiveWorkload, LiveWorkload]:
    """Let two JobSets get their slices, and their leaders come to each other's."""
    llama, gemma = world.jobset_appears("llama"), world.jobset_appears("gemma")
    world.cluster_lives()
    world.deliver()
    world.operations_end()
    for jobset, other in ((llama, gemma), (gemma, llama)):
        jobset.bound.add(0)
        world.binds(jobset, slice_id(a_job(name=other.ref.owner.name, uid=other.ref.owner.uid)), attempt=1)
    return llama, gemma


def test_two_that_crossed_keep_two_pools_until_both_have_ended() -> None:
    world = World()
    llama, gemma = crossed(world)
    world.settle(minutes=40)
    assert len(world.pools) == 2
    assert {record.phase for record in world.records.values()} <= {Phase.QUEUED}
    world.ends(llama)
    world.settle(minutes=20)
    assert len(world.pools) == 1
    world.ends(gemma)
    world.settle(minutes=20)
    assert world.pools == []


def test_who_still_waits_while_another_is_on_its_hosts_gets_a_slice_of_its_own() -> None:
    world = World()
    llama = world.jobset_appears("llama")
    world.cluster_lives()
    world.deliver()
    world.operations_end()
    guest = world.jobset_appears("guest")
    guest.bound.add(0)
    world.binds(guest, slice_id(a_job(name="llama", uid=llama.ref.owner.uid)), attempt=1)
    world.settle(minutes=20, until=lambda: llama.bound == {0})
    assert llama.bound == {0}
    assert len(world.pools) == 2
    assert replace(world.record(llama)).attempt == 2

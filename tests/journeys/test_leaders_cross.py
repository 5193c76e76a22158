"""Leaders of two JobSets that are scheduled to each other's hosts: a Job that runs gets no second slice."""

from __future__ import annotations

from dataclasses import replace

from tests.builders import a_job
from tests.world import World
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import slice_id
from tpu_slices_simulator.cluster import LiveWorkload


def crossed(world: World) -> tuple[LiveWorkload, LiveWorkload]:
    """Let two JobSets get their slices, and bind each leader to the other's hosts."""
    llama, gemma = world.jobset_appears("llama"), world.jobset_appears("gemma")
    world.cluster_lives()
    world.deliver()
    world.operations_end()
    for jobset, other in ((llama, gemma), (gemma, llama)):
        jobset.bound.add(0)
        world.binds(jobset, slice_id(a_job(name=other.ref.owner.name, uid=other.ref.owner.uid)), attempt=1)
    return llama, gemma


def test_two_crossed_jobsets_keep_one_pool_each_until_they_end() -> None:
    world = World()
    llama, gemma = crossed(world)
    world.settle(minutes=40)
    assert len(world.pools) == 2
    assert {(record.phase, record.reason) for record in world.records.values()} == {(Phase.READY, "RunsElsewhere")}
    world.ends(llama)
    world.settle(minutes=50)
    assert len(world.pools) == 1, "gemma's own pool stood unused"
    world.ends(gemma)
    world.settle(minutes=20)
    assert world.pools == []


def test_a_jobset_that_waits_while_another_occupies_its_slice_gets_another() -> None:
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

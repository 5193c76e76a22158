"""Worlds in which JobSets run on slices, and what the journeys ask of them."""

from __future__ import annotations

from tests.builders import a_job
from tests.world import World
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import ClaimId, claim_id
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload

BROKEN = Failure(FailureKind.UNKNOWN, "an unexpected error")
STOCKOUT = Failure(FailureKind.STOCKOUT, "[GCE_STOCKOUT] none left")


def serving(name: str = "llama", world: World | None = None) -> tuple[World, LiveWorkload]:
    """Return a world in which a JobSet runs on its slice."""
    world = world or World()
    jobset = world.jobset_appears(name)
    world.settle(minutes=10, until=lambda: jobset.bound == {0})
    world.settle(minutes=2)
    assert world.record(jobset).phase is Phase.READY
    return world, jobset


def crossed() -> tuple[World, LiveWorkload, LiveWorkload]:
    """Return a world in which two JobSets run on each other's slices."""
    world = World()
    llama, gemma = world.jobset_appears("llama"), world.jobset_appears("gemma")
    world.cluster_lives()
    world.deliver()
    world.operations_end()
    for jobset, other in ((llama, gemma), (gemma, llama)):
        jobset.bound.add(0)
        world.binds(jobset, own_slice(other), attempt=1)
    world.settle(minutes=5)
    return world, llama, gemma


def own_slice(jobset: LiveWorkload) -> ClaimId:
    return claim_id(a_job(name=jobset.ref.owner.name, uid=jobset.ref.owner.uid))


def deletions(world: World) -> list[str]:
    return [str(pool) for pool in world.backend.ordered(Verb.DELETE)]


def reason(world: World, jobset: LiveWorkload) -> Reason:
    return world.record(jobset).reason

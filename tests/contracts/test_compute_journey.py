"""A slice on the local Compute Engine, from nothing to READY and back: the audit log alone leads from step to step."""

from __future__ import annotations

from tests.adapters.compute_stories import TPU7X
from tests.contracts.compute_steps import GROUPS, PARTS, POLICIES, TEMPLATES
from tests.on_compute import OnCompute
from tpu_slices.domain.model.reasons import Phase, Reason


def test_ended_operations_lead_a_slice_from_step_to_step() -> None:
    world = OnCompute()
    jobset = world.jobset_appears(request=TPU7X)
    world.steps()
    pool, seen = world.record(jobset).pool, []
    for _ in PARTS:
        world.step_ends(pool)
        seen.append(world.record(jobset).reason)
    assert seen == [Reason.CREATING, Reason.CREATING, Reason.HOSTS_JOINING]
    world.steps()
    assert world.tokens(pool) == 2
    world.hosts_join(jobset)
    world.settle(minutes=5)
    assert world.record(jobset).phase is Phase.READY
    assert world.tokens(pool) == 0
    world.ends(jobset)
    world.steps()
    world.steps()
    for _ in PARTS:
        world.step_ends(pool)
    assert (world.record(jobset).phase, world.place.stands(pool)) == (Phase.GONE, set())
    made = [f"{each}.insert" for each in (POLICIES, TEMPLATES, GROUPS)]
    assert world.place.requests() == [*made, *(f"{each}.delete" for each in (GROUPS, TEMPLATES, POLICIES))]

"""A leader that waits as a sibling took its slice needs the one that the sibling left, whatever is on record of it."""

from __future__ import annotations

import pytest

from tests.builders import (
    CLUSTER,
    NOW,
    a_job,
    a_jobset,
    a_record,
    an_occupant,
    leaders_wait,
    some_hosts,
)
from tests.world import World
from tpu_slices.domain.model.slices import claim_id
from tpu_slices.flows.receive import receive

TAKEN, LEFT = a_job(job_index=0), a_job(job_index=1)


@pytest.mark.parametrize("named", [True, False], ids=["its workload names it", "it was found without a record"])
def test_the_slice_that_the_sibling_left_is_in_demand(*, named: bool) -> None:
    world = World()
    on_it = some_hosts(occupants=(an_occupant(job_index=1),))
    world.store.put(
        a_record(job=TAKEN, hosts=on_it, create_requested_at=NOW),
        a_record(job=LEFT, spec=None, create_requested_at=NOW),
        a_jobset(demand=dict.fromkeys(claim_id(job) for job in ((TAKEN, LEFT) if named else (TAKEN,)))),
    )
    receive(leaders_wait(0), CLUSTER, world.deps, NOW)
    demand = world.store.workloads(CLUSTER, [TAKEN.owner.uid])[TAKEN.owner.uid].value.demand
    assert demand == {claim_id(TAKEN): None, claim_id(LEFT): NOW}
    assert world.store.having(CLUSTER, [claim_id(LEFT)])[claim_id(LEFT)].value.spec is not None

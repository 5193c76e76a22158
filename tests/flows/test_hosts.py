"""Reports of hosts, in any order: in the end the books say where a Job runs."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import CLUSTER, NOW, a_job, a_record, an_occupant, hosts_changed
from tests.world import World
from tpu_slices.domain.model.facts import HostsChanged
from tpu_slices.domain.model.slices import SliceId, WorkloadUid, slice_id
from tpu_slices.flows.receive import receive

JOBS = [a_job(name=name, uid=WorkloadUid(f"uid-{name}")) for name in ("gemma", "llama", "phi")]
POOLS = [slice_id(job) for job in JOBS]
GEMMA, *_ = POOLS
moves = st.lists(st.sampled_from([None, *POOLS]), min_size=1, max_size=6)


def reports(course: list[SliceId | None]) -> list[HostsChanged]:
    """Return what is counted while a Job's leader moves from pool to pool, each time as another pod."""
    return [
        counted(pool, course[:move], sequence=move)
        for move, (left, came) in enumerate(pairwise([None, *course]), start=1)
        for pool in POOLS
        if pool in {left, came}
    ]


def counted(pool: SliceId, course: list[SliceId | None], sequence: int) -> HostsChanged:
    """Return the count of a pool after these moves."""
    leader = an_occupant("gemma", pod_uid=f"pod-{len(course)}")
    return hosts_changed(slice_id=pool, occupants=(leader,) if course[-1] == pool else (), sequence=sequence)


@given(moves, st.randoms(use_true_random=False))
def test_reports_of_several_pools_in_any_order_end_with_the_place_where_the_job_runs(
    course: list[SliceId | None], chance: Random
) -> None:
    world = World()
    for job in JOBS:
        world.store.put(a_record(job=job, create_requested_at=NOW))
    shuffled = reports(course) * 2
    chance.shuffle(shuffled)
    repeated = [counted(pool, course, sequence=len(course) + 1) for pool in POOLS]
    for fact in [*shuffled, *repeated]:
        receive(fact, CLUSTER, world.deps)
    record = world.records[GEMMA]
    place = record.runs_on.slice_id if record.runs_on and record.runs_on.left_at is None else None
    assert place == (None if course[-1] == GEMMA else course[-1])
    assert world.store.chips_bought(CLUSTER) == 48, "each pool is counted once, whoever runs on it"

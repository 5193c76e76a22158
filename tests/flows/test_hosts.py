"""Reports of hosts, in any order: in the end the books say where a Job runs."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import (
    CLUSTER,
    MINUTE,
    NOW,
    a_job,
    a_jobset,
    a_record,
    an_occupant,
    asked_to_close,
    hosts_changed,
    some_hosts,
    unclaimed,
)
from tests.domain.cases import was_seen
from tests.world import World
from tpu_slices.domain.model.facts import HostsChanged, WorkloadState
from tpu_slices.domain.model.observations import Creating
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import ClaimId, WorkloadUid, claim_id, slice_id
from tpu_slices.domain.reconciling.taking import may_be_regained
from tpu_slices.domain.records.slices import Desire, SliceRecord
from tpu_slices.flows.looking import Told
from tpu_slices.flows.receive import receive
from tpu_slices.flows.reconcile import reconcile

HOUR = 60 * MINUTE
JOBS = [a_job(name=name, uid=WorkloadUid(f"uid-{name}")) for name in ("gemma", "llama", "phi")]
POOLS = [claim_id(job) for job in JOBS]
GEMMA, *_ = POOLS
moves = st.lists(st.sampled_from([None, *POOLS]), min_size=1, max_size=6)


def reports(course: list[ClaimId | None]) -> list[HostsChanged]:
    """Return what is counted while a Job's leader moves from pool to pool, each time as another pod."""
    return [
        counted(pool, course[:move], sequence=move)
        for move, (left, came) in enumerate(pairwise([None, *course]), start=1)
        for pool in POOLS
        if pool in {left, came}
    ]


def counted(pool: ClaimId, course: list[ClaimId | None], sequence: int) -> HostsChanged:
    """Return the count of a pool after these moves."""
    leader = an_occupant("gemma", pod_uid=f"pod-{len(course)}")
    return hosts_changed(slice_id=pool, occupants=(leader,) if course[-1] == pool else (), sequence=sequence)


@given(moves, st.randoms(use_true_random=False))
def test_reports_of_several_pools_in_any_order_end_with_the_place_where_the_job_runs(
    course: list[ClaimId | None], chance: Random
) -> None:
    world = World()
    for job in JOBS:
        hosts = some_hosts(vacant_since=None)
        world.store.put(a_record(job=job, create_requested_at=NOW, reason=Reason.READY, phase=Phase.READY, hosts=hosts))
        world.store.put(a_jobset(owner=job.owner))
    shuffled = reports(course) * 2
    chance.shuffle(shuffled)
    repeated = [counted(pool, course, sequence=len(course) + 1) for pool in POOLS]
    for fact in [*shuffled, *repeated]:
        receive(fact, CLUSTER, world.deps)
    last = world.records.get(slice_id(course[-1], 1)) if course[-1] else None
    goes_back = last is not None and last.occupied and may_be_regained(last)
    assert course[-1] in {None, world.records[GEMMA].maker} or goes_back
    having = [world.records[claim] for claim in POOLS]
    assert len({record.id for record in having}) == len(POOLS), "each claim has a slice of its own"
    assert {record.id for record in having} <= {record.id for record in world.records.values()}
    assert world.store.chips_bought(CLUSTER) == 48, "each pool is counted once, whoever runs on it"


ANSWER = hosts_changed(usable=0, closed=4, sequence=9, answers=1, highest=1)
"""That nobody is there."""
ASKED = a_record(
    desire=Desire.ABSENT,
    create_requested_at=NOW - HOUR,
    hosts=some_hosts(occupants=(an_occupant(),), asked=asked_to_close()),
    phase=Phase.RELEASING,
)
LET_GO = unclaimed(ASKED)


def closing(*records: SliceRecord, state: WorkloadState = WorkloadState.ACTIVE) -> World:
    """Return a world whose relay was asked about hosts of a workload in this state."""
    world = World()
    world.store.put(*records, a_jobset(state=state))
    return world


def test_an_answer_that_lets_a_deletion_go_on_is_recorded_with_the_decision_to_delete() -> None:
    world = closing(ASKED, state=WorkloadState.COMPLETED)
    receive(ANSWER, CLUSTER, world.deps)
    assert world.store.commits == []
    assert world.publisher.take_requests() == []
    assert world.publisher.answers == [(CLUSTER, ASKED.id, ANSWER)]

    reconcile(CLUSTER, ASKED.name, world.deps, Told(answer=ANSWER))
    [[change, *_]] = world.store.commits
    assert isinstance(change.after, SliceRecord)
    assert change.after.phase is Phase.GONE, "there is no such pool"


def test_an_answer_about_a_slice_that_no_claim_has_is_recorded_with_the_decision_whatever_its_workload_does() -> None:
    claim = a_record(attempt=2, earlier=(1,))
    world = closing(claim, LET_GO)
    receive(ANSWER, CLUSTER, world.deps)
    assert world.store.commits == []
    assert world.publisher.answers == [(CLUSTER, LET_GO.id, ANSWER)]

    reconcile(CLUSTER, LET_GO.name, world.deps, Told(answer=ANSWER))
    assert {*world.records} == {claim.name}, "there is no such pool"


def test_an_answer_is_recorded_at_once_while_the_slice_may_be_needed_again() -> None:
    world = closing(ASKED, state=WorkloadState.SUSPENDED)
    receive(ANSWER, CLUSTER, world.deps)
    hosts = world.records[ASKED.name].current.hosts
    assert (hosts.occupants, hosts.answered) == ((), 1)
    assert world.publisher.answers == []
    assert world.publisher.take_requests() == [(CLUSTER, ASKED.maker)]


def test_a_report_about_a_slice_that_no_claim_has_is_recorded_with_that_slice() -> None:
    claim, left = (
        a_record(attempt=2, create_requested_at=NOW, hosts=some_hosts(), earlier=(1,)),
        hosts_changed(sequence=9),
    )
    world = closing(claim, LET_GO)
    receive(left, CLUSTER, world.deps)
    assert world.records[LET_GO.name].current.hosts.occupants == ()
    assert world.records[claim.name] == claim
    assert world.publisher.take_requests() == [(CLUSTER, LET_GO.id)]


def test_a_report_about_a_slice_of_which_there_is_no_record_changes_nothing() -> None:
    world = closing(a_record(attempt=2, create_requested_at=NOW, hosts=some_hosts()))
    receive(hosts_changed(attempt=1, usable=0, sequence=9), CLUSTER, world.deps)
    assert (world.store.commits, world.publisher.take_requests()) == ([], [])


def test_hosts_that_join_while_their_pool_is_created_are_counted_and_nothing_is_looked_at_until_all_have() -> None:
    world = World()
    created = {"reason": Reason.CREATING, "phase": Phase.PROVISIONING, "operation": "operation-1"}
    own = a_record(create_requested_at=NOW, seen=was_seen(Creating()), **created)
    world.store.put(own, a_jobset())
    receive(hosts_changed(usable=1, joined=3), CLUSTER, world.deps)
    assert world.records[own.name].current.hosts.joined == 3
    assert world.publisher.take_requests() == []
    receive(hosts_changed(sequence=2), CLUSTER, world.deps)
    assert world.publisher.take_requests() == [(CLUSTER, own.maker)]

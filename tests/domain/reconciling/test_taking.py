"""Which claim gets a slice on whose hosts Jobs are, what becomes of those that had it, and whose demand is settled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import (
    MINUTE,
    NOW,
    a_job,
    a_jobset,
    a_record,
    a_spec,
    an_occupant,
    had,
    hosts_changed,
    some_hosts,
    unclaimed,
    with_fields,
)
from tests.domain.cases import HOUR, requested, was_seen, with_hosts
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.facts import Occupant, WorkloadState
from tpu_slices.domain.model.observations import Broken, Deleting, Failure, FailureKind
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import OwnerKind, WorkloadUid, claim_id
from tpu_slices.domain.reconciling.occupancy import NewCount, counted, settled_demand
from tpu_slices.domain.reconciling.taking import Taken, claimant, taken
from tpu_slices.domain.records.hosts import NO_HOSTS, Departure
from tpu_slices.domain.records.slices import Desire, SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord

LIMITS = Limits()
GRACE = LIMITS.restart_grace
LLAMA, GEMMA, PHI = (an_occupant(name) for name in ("llama", "gemma", "phi"))
OF_LLAMA = a_record().maker
GEMMAS_JOB = a_job(name="gemma", uid=WorkloadUid("uid-gemma"))
OF_GEMMA, OF_PHI = claim_id(GEMMAS_JOB), claim_id(a_job(name="phi", uid=WorkloadUid("uid-phi")))
READY: dict[str, Any] = {"phase": Phase.READY, "reason": Reason.READY}
SLICE = requested(**READY, ordered=a_spec(), hosts=some_hosts())
"""That of llama's claim."""


def gemmas(**changes: Any) -> SliceRecord:
    """Return the slice of gemma's claim, which stands with nobody on it."""
    beside = {"spec": a_spec(key="uid-gemma.j0"), "hosts": some_hosts(vacant_since=NOW)}
    fields = {"job": GEMMAS_JOB, "create_requested_at": NOW - HOUR, **READY, **beside}
    return a_record(**{**fields, **changes})


def a_workload(name: str = "gemma", **changes: Any) -> WorkloadRecord:
    return a_jobset(uid=WorkloadUid(f"uid-{name}"), **changes)


def a_count(*occupants: Occupant, host: SliceRecord = SLICE, sequence: int = 5) -> NewCount:
    """Return a count of who is on the hosts of a slice."""
    after = counted(host.current.hosts, hosts_changed(occupants=occupants, sequence=sequence), NOW)
    assert after is not None
    return NewCount(host, after, NOW)


def gets(count: NewCount, own: SliceRecord | None, workload: WorkloadRecord | None) -> bool:
    """Return whether gemma's claim gets the slice."""
    having = {} if own is None else {OF_GEMMA: own}
    known = {} if workload is None else {workload.owner.uid: workload}
    return claimant(count, count.guests, having, known, LIMITS) == (OF_GEMMA, GEMMA)


@pytest.mark.parametrize(
    ("count", "own", "workload", "expected"),
    [
        pytest.param(a_count(GEMMA), gemmas(), a_workload(), True, id="its Job is there"),
        pytest.param(a_count(GEMMA), None, a_workload(), True, id="it has no record"),
        pytest.param(a_count(GEMMA), gemmas(), None, False, id="its workload has no record"),
        pytest.param(a_count(), gemmas(), a_workload(), False, id="nobody is there"),
        pytest.param(a_count(LLAMA, GEMMA), gemmas(), a_workload(), False, id="whose slice it is is there, too"),
        pytest.param(a_count(GEMMA), gemmas(), a_workload(state=WorkloadState.COMPLETED), False, id="it ended"),
        pytest.param(a_count(GEMMA), gemmas(), a_workload(state=WorkloadState.SUSPENDED), False, id="suspended"),
        pytest.param(
            a_count(GEMMA), gemmas(), a_workload(state=WorkloadState.SUSPENDED, generation=0), True, id="resumed since"
        ),
        pytest.param(a_count(GEMMA), gemmas(), a_workload(groups=0), False, id="scaled away"),
        pytest.param(a_count(GEMMA), gemmas(hold=True), a_workload(), False, id="what it has is held"),
        pytest.param(a_count(GEMMA), gemmas(release_requested=True), a_workload(), False, id="it is released"),
        pytest.param(
            a_count(GEMMA),
            gemmas(hosts=some_hosts(occupants=(GEMMA,), sequence=6)),
            a_workload(),
            False,
            id="it was seen on its own slice later",
        ),
        pytest.param(
            a_count(GEMMA),
            gemmas(hosts=some_hosts(occupants=(GEMMA,), sequence=5)),
            a_workload(),
            True,
            id="it was seen on its own slice by the same report",
        ),
        pytest.param(
            a_count(GEMMA), gemmas(hosts=some_hosts(sequence=6)), a_workload(), True, id="its own slice is vacant later"
        ),
        pytest.param(
            a_count(GEMMA, host=with_fields(SLICE, hold=True)), gemmas(), a_workload(), False, id="the slice is held"
        ),
        pytest.param(
            a_count(GEMMA, host=with_fields(SLICE, release_requested=True)),
            gemmas(),
            a_workload(),
            False,
            id="an operator released the slice",
        ),
        pytest.param(
            a_count(GEMMA, host=with_fields(SLICE, delete_requested_at=NOW)),
            gemmas(),
            a_workload(),
            False,
            id="the slice is being deleted",
        ),
        pytest.param(
            a_count(GEMMA, host=with_fields(SLICE, delete_requested_at=NOW - LIMITS.orders_arrive_within)),
            gemmas(),
            a_workload(),
            True,
            id="the request to delete the slice took no effect",
        ),
        pytest.param(
            a_count(GEMMA, host=with_fields(SLICE, seen=was_seen(Deleting()))),
            gemmas(),
            a_workload(),
            False,
            id="somebody deletes the slice",
        ),
        pytest.param(
            a_count(GEMMA, host=with_fields(SLICE, seen=was_seen(Broken(Failure(FailureKind.UNKNOWN, "x"))))),
            gemmas(),
            a_workload(),
            True,
            id="the slice is broken",
        ),
        pytest.param(a_count(GEMMA, host=unclaimed(SLICE)), gemmas(), a_workload(), True, id="no claim has it"),
        pytest.param(
            a_count(GEMMA, host=replace(SLICE, owner=replace(SLICE.owner, kind=OwnerKind.TPU_NODE_GROUP))),
            gemmas(),
            a_workload(),
            False,
            id="it is that of a TPUNodeGroup",
        ),
    ],
)
def test_a_claim_gets_the_slice_that_its_job_is_on(
    count: NewCount, own: SliceRecord | None, workload: WorkloadRecord | None, *, expected: bool
) -> None:
    assert gets(count, own, workload) is expected


def test_of_several_jobs_the_first_that_may_gets_it() -> None:
    count = a_count(PHI, GEMMA)
    assert gets(count, gemmas(), a_workload())
    both = {each.owner.uid: each for each in (a_workload(), a_workload("phi"))}
    assert claimant(count, count.guests, {}, both, LIMITS) == (OF_PHI, PHI)


def take(own: SliceRecord, count: NewCount | None = None, last: SliceRecord | None = None) -> Taken:
    return taken(count or a_count(GEMMA), GEMMA, own, last)


@pytest.mark.parametrize(
    "own",
    [
        pytest.param(gemmas(hosts=some_hosts(occupants=(LLAMA,))), id="it stands"),
        pytest.param(gemmas(hosts=some_hosts(occupants=(GEMMA, LLAMA))), id="its own Job was seen there before"),
    ],
)
def test_two_claims_change_slices_if_the_job_of_each_is_on_that_of_the_other(own: SliceRecord) -> None:
    got = take(own)
    assert got.had is not None
    assert got.other is None
    assert (got.has.id, got.has.claimed_by, got.has.owner) == (SLICE.id, OF_GEMMA, own.owner)
    assert (got.had.id, got.had.claimed_by, got.had.owner) == (own.id, OF_LLAMA, SLICE.owner)
    assert (got.has.maker, got.had.maker) == (OF_LLAMA, OF_GEMMA)
    assert (got.has.current.hosts.occupants, GEMMA in got.had.current.hosts.occupants) == ((GEMMA,), False)
    assert (had(got.has), had(got.had)) == ((), ())
    assert {got.has.next_reconcile_at, got.had.next_reconcile_at} == {NOW}


SHARED = a_spec(key="uid-of-a-replica-set")
"""What a pod of a ReplicaSet needs: the hosts of all of these carry one key."""
OF_ONE_SET = replace(SLICE, spec=SHARED).with_current(ordered=SHARED)


def alike(**changes: Any) -> SliceRecord:
    """Return the slice of another pod's claim of the same ReplicaSet."""
    return gemmas(**{"spec": SHARED, "ordered": SHARED, **changes})


@pytest.mark.parametrize(
    "own",
    [
        pytest.param(alike(), id="it stands"),
        pytest.param(alike(hosts=some_hosts(usable=0, joined=1, keys=())), id="its hosts join"),
        pytest.param(alike(phase=Phase.PROVISIONING, reason=Reason.CREATING, hosts=NO_HOSTS), id="it is being created"),
    ],
)
def test_two_claims_of_one_key_change_slices_wherever_the_job_of_one_is(own: SliceRecord) -> None:
    got = take(own, a_count(GEMMA, host=OF_ONE_SET))
    assert got.had is not None
    assert got.other is None
    assert (got.has.id, got.has.claimed_by) == (SLICE.id, OF_GEMMA)
    assert (got.had.id, got.had.claimed_by, got.had.wanted) == (own.id, OF_LLAMA, True)
    assert (had(got.has), had(got.had)) == ((), ())


@pytest.mark.parametrize(
    "own",
    [
        pytest.param(alike(spec=a_spec(key="uid-2.j0")), id="of another key"),
        pytest.param(alike(ordered=a_spec(fingerprint="v1-other")), id="made for another request"),
        pytest.param(alike(ordered=a_spec(key="k", zone="us-central2-a")), id="in another zone"),
        pytest.param(alike(phase=Phase.WAITING, reason=Reason.STOCKOUT), id="it failed"),
        pytest.param(alike(phase=Phase.PROVISIONING, reason=Reason.POOL_BROKEN), id="it is broken"),
        pytest.param(alike(hosts=some_hosts(occupants=(PHI,))), id="others are on it"),
        pytest.param(alike(desire=Desire.ABSENT), id="it is not needed"),
    ],
)
def test_a_slice_that_does_not_serve_as_well_is_no_exchange(own: SliceRecord) -> None:
    got = take(own, a_count(GEMMA, host=OF_ONE_SET))
    assert got.had is not None
    assert (got.had.claimed_by, got.had.goes) == (None, True)


def test_claims_that_change_slices_again_have_what_was_made_for_them() -> None:
    once = take(gemmas(hosts=some_hosts(occupants=(LLAMA,))))
    assert once.had is not None
    again = with_fields(once.has, hosts=some_hosts(occupants=(LLAMA,)))
    back = taken(a_count(GEMMA, host=once.had, sequence=9), GEMMA, again, None)
    assert back.had is not None
    assert (back.has.first_job, back.had.first_job) == (None, None)
    assert (back.has.id, back.had.id) == (once.had.id, once.has.id)


@pytest.mark.parametrize(
    ("own", "stands"),
    [
        pytest.param(gemmas(create_requested_at=None, phase=Phase.QUEUED), False, id="nothing was bought for it"),
        pytest.param(gemmas(phase=Phase.GONE), False, id="it is gone"),
        pytest.param(gemmas(spec=a_spec(fingerprint="v1-other")), True, id="of another request"),
        pytest.param(gemmas(spec=a_spec(node_labels=(("team", "x"),))), True, id="of other labels"),
        pytest.param(gemmas(ordered=a_spec(fingerprint="v1-other")), True, id="made for another request"),
        pytest.param(gemmas(), True, id="nobody is on it"),
        pytest.param(gemmas(hosts=some_hosts(occupants=(PHI,))), True, id="others are on it"),
        pytest.param(gemmas(reason=Reason.POOL_BROKEN, phase=Phase.PROVISIONING), True, id="it is broken"),
        pytest.param(gemmas(desire=Desire.ABSENT), True, id="it is not needed"),
        pytest.param(gemmas(hosts=some_hosts(vacant_since=NOW - GRACE)), True, id="nobody came to it for long"),
        pytest.param(gemmas(phase=Phase.WAITING, reason=Reason.STOCKOUT), True, id="it failed"),
    ],
)
def test_else_the_claim_whose_slice_was_taken_has_the_next_and_what_the_other_had_goes(
    own: SliceRecord, *, stands: bool
) -> None:
    got = take(own)
    assert (got.has.id, got.has.claimed_by) == (SLICE.id, OF_GEMMA)
    assert got.other is not None
    assert (got.other.claimed_by, got.other.attempt, got.other.current.create_requested_at) == (OF_LLAMA, 2, None)
    assert (got.had is not None) is stands
    assert got.has.claim.earlier == ((own.id,) if stands else ())
    if got.had is not None:
        assert (got.had.claimed_by, got.had.goes, got.had.fits) == (None, True, True)


def test_a_claim_that_needs_none_any_more_is_left_without() -> None:
    got = take(gemmas(), a_count(GEMMA, host=with_fields(SLICE, desire=Desire.ABSENT)))
    assert got.other is not None
    assert (got.other.current.create_requested_at, got.other.wanted) == (None, False)
    assert (got.has.goes, got.has.wanted) == (False, True)


def test_a_slice_of_another_request_is_rebuilt_once_nobody_uses_it() -> None:
    assert not take(gemmas()).has.claim.rebuild_allowed
    assert take(gemmas(spec=a_spec(fingerprint="v1-other"))).has.claim.rebuild_allowed


def test_a_slice_that_was_to_go_stays_and_its_claim_before_waits_for_its_end_no_more() -> None:
    going = unclaimed(SLICE, let_go="it failed", fits=True)
    last = a_record(attempt=3, earlier=(1, 2))
    got = take(gemmas(), a_count(GEMMA, host=going), last)
    assert (got.has.id, got.has.goes, got.has.let_go) == (going.id, False, "")
    assert got.other is not None
    assert (got.other.id, had(got.other)) == (last.id, (2,))
    assert take(gemmas(), a_count(GEMMA, host=going), None).other is None


@pytest.mark.parametrize("own", [gemmas(phase=Phase.GONE, expire_at=NOW), gemmas(phase=Phase.WAITING)], ids=repr)
def test_a_record_with_a_slice_that_stands_is_not_gone_and_does_not_expire(own: SliceRecord) -> None:
    got = take(own)
    assert (got.has.phase, got.has.reason, got.has.expire_at) == (Phase.READY, Reason.READY, None)
    going = take(own, a_count(GEMMA, host=unclaimed(SLICE, phase=Phase.RELEASING)))
    assert (going.has.phase, going.has.chips_bought) == (Phase.PROVISIONING, 16)


def test_what_the_claim_knows_moves_with_it_and_what_is_of_the_slice_does_not() -> None:
    own = gemmas(note="mind", failures=2, pinned_settings=None)
    adopted = with_fields(SLICE, attempt=0, legacy_pool="old", note="not this")
    got = take(own, a_count(GEMMA, host=adopted))
    assert (got.has.note, got.has.claim.failures, got.has.legacy_pool) == ("mind", 2, "old")
    assert take(own, a_count(GEMMA, host=replace(SLICE, legacy_pool="old"))).has.legacy_pool is None


things = st.sampled_from(
    [gemmas(), gemmas(create_requested_at=None), gemmas(spec=a_spec(fingerprint="v1-other")), gemmas(attempt=4)]
)
hosts_of = st.sampled_from(
    [SLICE, unclaimed(SLICE), with_fields(SLICE, attempt=3), with_fields(SLICE, desire=Desire.ABSENT)]
)


@given(things, hosts_of)
def test_no_slice_is_lost_and_none_has_two_claims(own: SliceRecord, host: SliceRecord) -> None:
    last = a_record(attempt=9, earlier=(1,)) if host.unclaimed else None
    got = take(own, a_count(GEMMA, host=host), last)
    after = [each for each in (got.has, got.had, got.other) if each is not None]
    assert len({each.id for each in after}) == len(after)
    claims = [each.claimed_by for each in after if each.claimed_by is not None]
    assert len(set(claims)) == len(claims)
    assert {OF_GEMMA} | ({OF_LLAMA} if not host.unclaimed or last else set()) == set(claims)
    stood = {each.id for each in (own, host) if each.current.create_requested_at is not None}
    assert stood <= {each.id for each in after}
    assert all(each.id in got.has.claim.earlier for each in after if each.unclaimed)


# whose demand is settled


def test_who_comes_waits_no_more_and_whose_slice_it_is_may() -> None:
    for host in (SLICE, unclaimed(SLICE)):
        assert set(settled_demand(a_count(GEMMA, host=host), {})) == {(GEMMA.owner.uid, OF_GEMMA)}


def test_its_own_job_waits_no_more_whether_a_claim_has_the_slice_or_not() -> None:
    for host in (SLICE, unclaimed(SLICE)):
        assert set(settled_demand(a_count(LLAMA, host=host), {})) == {(LLAMA.owner.uid, OF_LLAMA)}


def test_an_outdated_arrival_settles_nothing() -> None:
    later = gemmas(hosts=some_hosts(occupants=(GEMMA,), sequence=6))
    assert set(settled_demand(a_count(GEMMA), {OF_GEMMA: later})) == set()


def test_who_was_there_before_does_not_come() -> None:
    assert set(settled_demand(a_count(GEMMA, host=with_hosts(SLICE, occupants=(GEMMA,))), {})) == set()


def test_who_left_is_no_guest() -> None:
    left = with_hosts(SLICE, departures=(Departure(user=PHI, at=NOW - MINUTE),))
    assert a_count(LLAMA, GEMMA, host=left).guests == {OF_GEMMA: GEMMA}

"""From the records of JobSets to the desire of their slices, and whose slice a waiting leader needs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import (
    CLUSTER,
    NOW,
    a_job,
    a_jobset,
    a_record,
    a_request,
    a_spec,
    an_occupant,
    leaders_wait,
    some_hosts,
    unclaimed,
)
from tests.domain.cases import GUEST, SIBLING
from tpu_slices.domain.model.facts import Occupant, WorkloadState
from tpu_slices.domain.model.slices import claim_id
from tpu_slices.domain.reconciling.demand import demands, with_current_desire
from tpu_slices.domain.records.slices import Desire, SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord

ENDS = [state for state in WorkloadState if state.ended]


@pytest.mark.parametrize(
    ("own", "desire"),
    [
        pytest.param(a_jobset(), Desire.PRESENT, id="active"),
        pytest.param(None, Desire.PRESENT, id="unknown: nothing is deleted"),
        pytest.param(a_jobset(state=WorkloadState.SUSPENDED), Desire.ABSENT, id="suspended"),
        *(pytest.param(a_jobset(state=end), Desire.ABSENT, id=end) for end in ENDS),
    ],
)
def test_a_slices_desire_follows_from_its_jobsets_state(own: WorkloadRecord | None, desire: Desire) -> None:
    assert with_current_desire(a_record(), own).desire is desire


def test_a_requested_release_overrides_the_jobsets_demand() -> None:
    released = with_current_desire(a_record(release_requested=True), a_jobset())
    assert (released.desire, released.desire_message) == (Desire.ABSENT, "an operator requested its release")


@pytest.mark.parametrize("own", [None, *(a_jobset(state=state) for state in WorkloadState)])
@pytest.mark.parametrize("released", [True, False])
def test_nobody_waits_for_a_slice_that_no_claim_has(own: WorkloadRecord | None, released: bool) -> None:
    """It goes for its own reason, whatever becomes of the JobSet that it was made for."""
    record = unclaimed(a_record(), demand_confirmed_at=None, release_requested=released)
    assert with_current_desire(record, own, NOW) == record


def test_a_slices_demand_is_what_its_jobset_has_for_it() -> None:
    record = a_record(demand_confirmed_at=None)
    assert with_current_desire(record, a_jobset(demand={record.maker: NOW})).claim.demand_confirmed_at == NOW
    assert with_current_desire(a_record(), a_jobset(demand={})).claim.demand_confirmed_at is None
    assert with_current_desire(a_record(), None).claim.demand_confirmed_at == NOW


def needed(index: int, *slices: SliceRecord) -> int:
    """Return the index of the Job whose slice a waiting leader needs."""
    (found,) = demands(leaders_wait(index), CLUSTER, {each.maker: each for each in slices})
    return found.job.job_index


def a_slice(index: int, *occupants: Occupant, **changes: object) -> SliceRecord:
    job = a_job(job_index=index)
    return replace(a_record(job=job, hosts=some_hosts(occupants=occupants)), **changes)  # type: ignore[arg-type]


def leader(index: int) -> Occupant:
    return an_occupant(job_index=index, pod_uid=f"pod-llama-{index}")


@pytest.mark.parametrize(
    ("slices", "index"),
    [
        pytest.param([], 0, id="none known: its own"),
        pytest.param([a_slice(0)], 0, id="its own is vacant"),
        pytest.param([a_slice(0, leader(0))], 0, id="it is on its own"),
        pytest.param([a_slice(0, GUEST)], 0, id="another JobSet is on its own"),
        pytest.param([a_slice(0, SIBLING), a_slice(1)], 1, id="a sibling is on its own: the sibling's"),
        pytest.param([a_slice(0, GUEST, SIBLING), a_slice(1)], 1, id="a sibling and others are on its own"),
        pytest.param([a_slice(0, leader(0), SIBLING), a_slice(1)], 0, id="a sibling is on its own beside it"),
        pytest.param([a_slice(0, leader(1)), a_slice(1, leader(2)), a_slice(2)], 2, id="a sibling's sibling"),
        pytest.param([a_slice(0, leader(1)), a_slice(1, leader(0))], 1, id="each on the other's"),
        pytest.param([a_slice(0, leader(9)), a_slice(9)], 0, id="a sibling that the JobSet does not have"),
        pytest.param(
            [a_slice(0, SIBLING), a_slice(1, spec=a_spec(fingerprint="v1-other"))],
            1,
            id="a sibling left a slice of another request, which is made anew",
        ),
    ],
)
def test_a_displaced_leader_needs_the_slice_that_was_left_behind(slices: list[SliceRecord], index: int) -> None:
    assert needed(0, *slices) == index


def test_a_leader_displaced_by_another_replicated_job_does_not_need_an_unknown_slice() -> None:
    other = an_occupant(replicated_job="other", pod_uid="pod-llama-other-0")
    fact = leaders_wait(0, requests=(a_request(), a_request(replicated_job="other")))
    own = a_slice(0, other)
    (found,) = demands(fact, CLUSTER, {own.maker: own})
    assert claim_id(found.job) == own.maker

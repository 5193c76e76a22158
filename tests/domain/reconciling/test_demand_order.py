"""What a fact about a JobSet changes on its record and its slices, by generations, states and times."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import (
    CLUSTER,
    MINUTE,
    NOW,
    a_job,
    a_jobset,
    a_jobset_ref,
    a_record,
    a_request,
    leaders_wait,
    settings,
    with_fields,
)
from tpu_slices.domain.model.facts import WorkloadChanged, WorkloadState
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import claim_id
from tpu_slices.domain.reconciling.demand import (
    Demand,
    asked_by,
    changed,
    in_progress,
    is_overtaken,
    is_recorded,
    wanted,
    with_current_desire,
)
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.domain.records.slices import Desire, SliceRecord
from tpu_slices.domain.records.workloads import RELEASE_LASTS, WorkloadRecord

DELETED, MISSING = WorkloadState.DELETED, WorkloadState.MISSING
ACTIVE, SUSPENDED, COMPLETED = WorkloadState.ACTIVE, WorkloadState.SUSPENDED, WorkloadState.COMPLETED
SINCE, LATER, SECOND = NOW - MINUTE, NOW + MINUTE, MINUTE / 60


def after(known: WorkloadState, generation: int, to: WorkloadState, **changes: Any) -> WorkloadRecord | None:
    """Return the record of generation 5, in a state since SINCE, after a fact of another generation came at LATER."""
    record = a_jobset(state=known, generation=5, groups=2, state_since=SINCE)
    ref = a_jobset_ref(generation=generation, groups=3, **changes)
    return changed(WorkloadChanged(workload=ref, state=to), record, LATER, CLUSTER)


@pytest.mark.parametrize(
    ("known", "generation", "to", "since"),
    [
        (ACTIVE, 5, ACTIVE, SINCE),
        (ACTIVE, 6, ACTIVE, LATER),
        (ACTIVE, 5, SUSPENDED, LATER),
        (ACTIVE, 6, SUSPENDED, LATER),
        (SUSPENDED, 5, SUSPENDED, SINCE),
        (SUSPENDED, 6, ACTIVE, LATER),
        (SUSPENDED, 5, COMPLETED, LATER),
        (SUSPENDED, 4, COMPLETED, LATER),
        (SUSPENDED, 5, ACTIVE, None),
        (ACTIVE, 4, ACTIVE, None),
        (ACTIVE, 4, SUSPENDED, None),
        (COMPLETED, 6, ACTIVE, None),
    ],
)
def test_a_state_is_as_old_as_the_fact_that_brought_it_and_late_facts_change_nothing(
    known: WorkloadState, generation: int, to: WorkloadState, since: object
) -> None:
    record = after(known, generation, to)
    assert (record and record.state_since) == since


@pytest.mark.parametrize(
    ("changes", "recorded"),
    [
        ({}, True),
        ({"generation": 4}, False),
        ({"generation": 6}, False),
        ({"resource_version": "1000"}, False),
        ({"resource_version": "1002"}, False),
    ],
    ids=str,
)
@pytest.mark.parametrize("state", WorkloadState)
def test_a_record_rests_on_a_fact_of_its_state_generation_and_version_alone(
    state: WorkloadState, changes: dict[str, Any], *, recorded: bool
) -> None:
    record = a_jobset(state=ACTIVE, generation=5, resource_version="1001")
    ref = a_jobset_ref(**{"generation": 5, "resource_version": "1001", **changes})
    assert is_recorded(WorkloadChanged(workload=ref, state=state), record) is (recorded and state is ACTIVE)


@pytest.mark.parametrize("state", WorkloadState)
@pytest.mark.parametrize("desire", Desire)
def test_a_slice_that_nobody_looks_at_is_overtaken_where_its_jobset_needs_another_state_of_it(
    state: WorkloadState, desire: Desire
) -> None:
    overtaken = (desire is Desire.PRESENT) is not (state is ACTIVE)
    record = a_record(desire=desire, next_reconcile_at=None)
    assert is_overtaken(record, a_jobset(state=state)) is overtaken
    assert not is_overtaken(replace(record, next_reconcile_at=NOW), a_jobset(state=state))


@pytest.mark.parametrize(
    ("to", "had_slices", "wait"),
    [
        (COMPLETED, True, RELEASE_LASTS),
        (COMPLETED, False, timedelta()),
        (SUSPENDED, True, timedelta()),
        (SUSPENDED, False, timedelta()),
    ],
)
def test_a_jobset_is_reported_at_once_but_once_its_slices_had_the_time_to_go_if_it_ended(
    to: WorkloadState, wait: timedelta, *, had_slices: bool
) -> None:
    record = a_jobset(demand={claim_id(a_job()): NOW} if had_slices else {})
    changed_to = changed(WorkloadChanged(workload=a_jobset_ref(generation=9), state=to), record, LATER, CLUSTER)
    assert changed_to is not None
    assert changed_to.next_report_at == LATER + wait


@pytest.mark.parametrize(("generation", "groups"), [(4, 2), (5, 3), (6, 3)])
def test_the_number_of_groups_is_that_of_the_latest_generation(generation: int, groups: int) -> None:
    record = after(ACTIVE, generation, COMPLETED)
    assert record is not None
    assert (record.groups, record.generation) == (groups, max(5, generation))


@pytest.mark.parametrize(
    ("changes", "progresses"),
    [
        ({"phase": Phase.WAITING, "reason": Reason.STOCKOUT}, True),
        ({"phase": Phase.PROVISIONING, "reason": Reason.CREATING}, True),
        ({"phase": Phase.PROVISIONING, "reason": Reason.CREATION_STARTED}, True),
        ({"phase": Phase.QUEUED, "reason": Reason.OPERATION_LIMIT}, True),
        ({"phase": Phase.QUEUED, "reason": Reason.REQUESTED}, False),
        ({"phase": Phase.READY, "reason": Reason.READY}, False),
        ({"phase": Phase.BLOCKED, "reason": Reason.CHIP_LIMIT_REACHED}, False),
        ({"phase": Phase.WAITING, "reason": Reason.STOCKOUT, "next_reconcile_at": None}, False),
        ({"phase": Phase.WAITING, "reason": Reason.STOCKOUT, "desire": Desire.ABSENT}, False),
    ],
)
def test_demand_that_is_confirmed_again_is_no_news_to_a_slice_that_is_in_progress(
    changes: dict[str, Any], *, progresses: bool
) -> None:
    assert in_progress(replace(a_record(next_reconcile_at=NOW), **changes), LATER) is progresses


@pytest.mark.parametrize(("seconds", "progresses"), [(-1, False), (0, True), (29, True), (30, False)])
def test_a_slice_that_was_requested_just_now_is_not_requested_again_at_once(seconds: int, *, progresses: bool) -> None:
    """The message may be lost: then the demand that is confirmed later requests it, or the sweep."""
    assert in_progress(a_record(), NOW + seconds * SECOND) is progresses


def test_a_slice_that_is_needed_again_is_awaited_since_its_leader_waited_or_its_jobset_came_back() -> None:
    gone = with_current_desire(a_record(), a_jobset(state=SUSPENDED))
    assert gone.claim.awaited_since is None
    demand = {gone.maker: NOW}
    assert with_current_desire(gone, a_jobset(demand=demand, state_since=SINCE)).claim.awaited_since == NOW
    assert with_current_desire(gone, a_jobset(demand=demand, state_since=LATER)).claim.awaited_since == LATER
    assert with_current_desire(gone, a_jobset(demand={}, state_since=SINCE)).claim.awaited_since == SINCE


def test_a_slice_that_is_needed_stays_awaited_since_when_it_was() -> None:
    record = a_record(awaited_since=SINCE)
    assert with_current_desire(record, a_jobset(state_since=LATER)).claim.awaited_since == SINCE


@pytest.mark.parametrize(
    ("groups", "state", "said"),
    [
        (None, ACTIVE, "the JobSet is active"),
        (1, ACTIVE, "the JobSet is active"),
        (0, ACTIVE, "the JobSet is active, scaled to 0"),
        (0, COMPLETED, "the JobSet completed"),
        (1, COMPLETED, "the JobSet completed"),
    ],
)
def test_a_slice_that_was_scaled_away_says_so(groups: int | None, state: WorkloadState, said: str) -> None:
    record = with_current_desire(a_record(awaited_since=SINCE), a_jobset(state=state, groups=groups))
    assert record.desire_message == said
    assert (record.claim.awaited_since is not None) is (said == "the JobSet is active")


@pytest.mark.parametrize(("index", "desire"), [(0, Desire.PRESENT), (1, Desire.ABSENT)])
def test_of_jobs_that_share_a_slice_the_first_one_needs_it(index: int, desire: Desire) -> None:
    record = with_current_desire(a_record(job=a_job(job_index=index)), a_jobset(sharing=("slice",)))
    assert record.desire is desire
    assert ("its Jobs share the first one's slice" in record.desire_message) == (desire is Desire.ABSENT)


def test_whose_jobs_share_a_slice_is_what_demand_told_last() -> None:
    shared: dict[str, Any] = {"replicas": 4, "parallelism": 1, "completions": 1}
    known = asked(a_record(), a_jobset(), **shared).workload
    assert known.sharing == ("slice",)
    assert asked(a_record(), known, **shared, topology="2x2").workload.sharing == ()


# what a slice is to be


def asked(record: SliceRecord, known: WorkloadRecord | None, generation: int = 1, **request: Any) -> Demand:
    fact = leaders_wait(0, workload=a_jobset_ref(generation=generation), requests=(a_request(**request),))
    demand = wanted(asked_by(fact, known, settings()), {record.maker: record}, LATER)
    assert demand is not None
    return demand


@pytest.mark.parametrize(("made", "asks"), [("4x4", "4x8"), ("4x8", "4x4")])
def test_another_request_is_noticed_whatever_it_was_before(made: str, asks: str) -> None:
    first = asked(a_record(), a_jobset(), topology=made).slices.get(a_record().maker, a_record())
    standing = with_fields(first, create_requested_at=NOW)
    assert asked(standing, a_jobset(), topology=made).slices == {}
    after_ = asked(standing, a_jobset(), topology=asks).slices[standing.maker]
    assert str(after_.spec and after_.spec.topology) == asks


def test_a_refusal_is_recorded_once_and_another_one_in_its_place() -> None:
    def refused(record: SliceRecord, by: Any) -> dict[Any, SliceRecord]:
        fact = leaders_wait(0, requests=(a_request(topology="3x5"),))
        demand = wanted(asked_by(fact, a_jobset(), by), {record.maker: record}, NOW)
        assert demand is not None
        return dict(demand.slices)

    record = a_record(create_requested_at=NOW)
    first = refused(record, settings())[record.name]
    assert isinstance(first.claim.refusal, Refusal)
    assert refused(first, settings()) == {}
    earlier = first.with_claim(refusal=replace(first.claim.refusal, message="an earlier message"))
    assert refused(earlier, settings())[record.name].claim.refusal == first.claim.refusal
    served = asked(first, a_jobset()).slices[record.maker]
    assert served.claim.refusal is None


@pytest.mark.parametrize(
    ("confirmed", "since", "rebuilds"),
    [(SINCE, NOW, True), (NOW, NOW, False), (LATER, NOW, False), (None, NOW, False)],
)
def test_a_slice_may_be_rebuilt_if_its_jobset_was_away_since_its_leader_waited(
    confirmed: Any, since: Any, *, rebuilds: bool
) -> None:
    record = a_record(create_requested_at=NOW)
    known = a_jobset(demand={} if confirmed is None else {record.maker: confirmed}, state_since=since)
    assert asked(record, known, topology="4x8").slices[record.maker].claim.rebuild_allowed is rebuilds


def test_a_slice_of_a_jobset_that_is_not_on_record_is_not_rebuilt() -> None:
    record = a_record(create_requested_at=NOW)
    assert asked(record, None, topology="4x8").slices[record.maker].claim.rebuild_allowed is False


# whose slice a leader needs


@pytest.mark.parametrize(
    ("recorded", "told", "state"),
    [
        ("100", "101", DELETED),
        ("99", "100", DELETED),
        ("", "1", DELETED),
        ("100", "100", MISSING),
        ("100", "99", MISSING),
        ("1000", "999", MISSING),
        ("100", "", MISSING),
        ("100", "later", MISSING),
        ("unknown", "101", MISSING),
    ],
)
def test_a_deletion_is_proven_by_a_version_beyond_what_is_on_record(
    recorded: str, told: str, state: WorkloadState
) -> None:
    known = a_jobset(resource_version=recorded)
    fact = WorkloadChanged(workload=a_jobset_ref(resource_version=told), state=DELETED)
    record = changed(fact, known, LATER, CLUSTER)
    assert record is not None
    assert record.state is state
    assert is_recorded(fact, record), "so that its requests are sent again if it is delivered again"


@pytest.mark.parametrize("state", [COMPLETED, WorkloadState.FAILED, SUSPENDED, MISSING])
def test_other_states_are_taken_whatever_their_version(state: WorkloadState) -> None:
    fact = WorkloadChanged(workload=a_jobset_ref(resource_version="7"), state=state)
    record = changed(fact, a_jobset(resource_version="100"), LATER, CLUSTER)
    assert record is not None
    assert record.state is state

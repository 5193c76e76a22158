"""From facts to demand: an end is final, outdated facts are ignored, and a pod requests no more than its JobSet."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import (
    CLUSTER,
    MINUTE,
    NOW,
    a_job,
    a_jobset,
    a_jobset_ref,
    a_record,
    a_request,
    a_spec,
    leaders_wait,
    settings,
    with_fields,
)
from tests.domain.cases import REJECTION
from tpu_slices.domain.model.facts import Answer, SlicesWanted, WorkloadChanged, WorkloadState
from tpu_slices.domain.model.slices import claim_id
from tpu_slices.domain.reconciling.demand import TOMBSTONE_TTL, asked_by, changed, legitimate, wanted
from tpu_slices.domain.records.workloads import WorkloadRecord

ENDS = [state for state in WorkloadState if state.ended]
LATER = NOW + 5 * MINUTE


def at_generation(generation: int) -> SlicesWanted:
    return leaders_wait(0, workload=a_jobset_ref(generation=generation))


def apply_demand(fact: SlicesWanted, known: WorkloadRecord | None = None) -> WorkloadRecord | None:
    demand = wanted(asked_by(fact, known, settings()), {}, LATER)
    return demand.workload if demand else None


def test_leaders_of_an_unknown_jobset_create_its_record_and_demand() -> None:
    demand = wanted(asked_by(leaders_wait(0, 2), None, settings()), {}, NOW)
    assert demand is not None
    assert set(demand.workload.demand) == set(demand.slices) == {claim_id(a_job()), claim_id(a_job(job_index=2))}
    assert (demand.workload.state, demand.workload.next_report_at) == (WorkloadState.ACTIVE, NOW)
    specs = {index: demand.slices[claim_id(a_job(job_index=index))].spec for index in (0, 2)}
    assert specs == {index: a_spec(key=f"uid-llama.j{index}") for index in (0, 2)}


SUSPENDED = a_jobset(generation=2, state=WorkloadState.SUSPENDED)


@pytest.mark.parametrize(
    ("as_of", "known_as_of", "outdated"),
    [
        pytest.param(LATER, NOW, False, id="it has got quota since"),
        pytest.param(NOW, LATER, True, id="it has lost its quota since"),
        pytest.param(LATER, None, True, id="a relay before that told no times"),
        pytest.param(None, NOW, True, id="it is of no queue any more"),
    ],
)
def test_of_one_in_a_kueue_queue_time_orders_the_facts_of_one_generation(
    as_of: datetime | None, known_as_of: datetime | None, outdated: bool
) -> None:
    ref = replace(a_jobset_ref(generation=2), as_of=as_of)
    known = replace(SUSPENDED, as_of=known_as_of)
    resumed = apply_demand(leaders_wait(0, workload=ref), known)
    assert (resumed is None) == outdated
    assert resumed is None or (resumed.state, resumed.as_of) == (WorkloadState.ACTIVE, LATER)


def test_it_is_suspended_again_at_the_same_generation_unless_it_has_got_quota_since() -> None:
    known = replace(a_jobset(generation=2), as_of=LATER)
    later, earlier = (replace(a_jobset_ref(generation=2), as_of=at) for at in (LATER + MINUTE, NOW))
    told = changed(WorkloadChanged(workload=later, state=WorkloadState.SUSPENDED), known, LATER, CLUSTER)
    assert told is not None
    assert (told.state, told.as_of) == (WorkloadState.SUSPENDED, LATER + MINUTE)
    assert changed(WorkloadChanged(workload=earlier, state=WorkloadState.SUSPENDED), known, LATER, CLUSTER) is None


@pytest.mark.parametrize(
    ("known", "outdated"),
    [
        pytest.param(a_jobset(generation=2), False, id="active at this generation: confirmed"),
        pytest.param(a_jobset(generation=1), False, id="active at an earlier generation: confirmed"),
        pytest.param(a_jobset(generation=3), True, id="active at a later generation: outdated"),
        pytest.param(a_jobset(generation=2, state=WorkloadState.SUSPENDED), True, id="suspended at this one: outdated"),
        pytest.param(
            a_jobset(generation=1, state=WorkloadState.SUSPENDED), False, id="suspended at an earlier one: resumed"
        ),
        *(pytest.param(a_jobset(generation=1, state=end), True, id=f"{end}: final") for end in ENDS),
    ],
)
def test_demand_counts_unless_it_is_outdated(known: WorkloadRecord, outdated: bool) -> None:
    record = apply_demand(at_generation(2), known)
    assert (record is None) is outdated
    if record is not None:
        assert (record.state, record.generation, record.demand[claim_id(a_job())]) == (WorkloadState.ACTIVE, 2, LATER)


def test_a_resumed_jobset_with_another_request_changes_the_specs_of_its_slices() -> None:
    suspended = a_jobset(generation=1, state=WorkloadState.SUSPENDED)
    record = a_record(create_requested_at=NOW)
    fact = replace(at_generation(2), requests=(a_request(topology="4x8"),))
    demand = wanted(asked_by(fact, suspended, settings()), {record.maker: record}, LATER)
    assert demand is not None
    after = demand.slices[record.maker]
    assert after.spec is not None
    assert (str(after.spec.topology), after.claim.rebuild_allowed) == ("4x8", True)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param([(2, WorkloadState.SUSPENDED)], id="suspended, then in demand"),
        pytest.param([(2, WorkloadState.SUSPENDED), (3, WorkloadState.ACTIVE)], id="resumed before the demand arrives"),
        pytest.param([(3, WorkloadState.ACTIVE)], id="the suspension was too short to be seen"),
        pytest.param([], id="only the demand arrived"),
    ],
)
def test_however_a_resume_is_reported_another_request_changes_the_spec(
    changes: list[tuple[int, WorkloadState]],
) -> None:
    record = a_record(create_requested_at=NOW)
    known: WorkloadRecord | None = a_jobset(generation=1)
    for generation, state in changes:
        change = WorkloadChanged(workload=a_jobset_ref(generation=generation), state=state)
        known = changed(change, known, NOW + MINUTE, CLUSTER)
    fact = replace(at_generation(3), requests=(a_request(topology="4x8"),))
    demand = wanted(asked_by(fact, known, settings()), {record.maker: record}, LATER)
    assert demand is not None
    assert demand.slices[record.maker].claim.rebuild_allowed


def test_leaders_reported_one_after_the_other_all_change_the_specs_of_their_slices() -> None:
    records = [a_record(job=a_job(job_index=index), create_requested_at=NOW) for index in (0, 1)]
    known = a_jobset(generation=2, state=WorkloadState.SUSPENDED, demand=dict.fromkeys([r.maker for r in records], NOW))
    known = replace(known, state_since=NOW + MINUTE)
    for index, record in enumerate(records):
        fact = leaders_wait(index, workload=a_jobset_ref(generation=3), requests=(a_request(topology="4x8"),))
        demand = wanted(asked_by(fact, known, settings()), {record.maker: record}, LATER)
        assert demand is not None
        assert demand.slices[record.maker].claim.rebuild_allowed
        known = demand.workload


def test_another_request_at_the_same_generation_does_not_change_the_spec() -> None:
    record = a_record(create_requested_at=NOW)
    fact = replace(at_generation(1), requests=(a_request(topology="4x8"),))
    demand = wanted(asked_by(fact, a_jobset(generation=1), settings()), {record.maker: record}, LATER)
    assert demand is not None
    assert not demand.slices[record.maker].claim.rebuild_allowed


def test_new_settings_do_not_change_the_spec_of_a_slice_that_may_have_a_pool() -> None:
    record = a_record(create_requested_at=NOW)
    moved = settings(zone="us-central2-a")
    with_pool = wanted(asked_by(leaders_wait(0), a_jobset(), moved), {record.maker: record}, LATER)
    unmade = with_fields(record, create_requested_at=None)
    without = wanted(asked_by(leaders_wait(0), a_jobset(), moved), {record.maker: unmade}, LATER)
    assert with_pool is not None
    assert without is not None
    assert with_pool.slices == {}
    assert without.slices[record.maker].spec == a_spec(zone="us-central2-a")


def test_a_rejection_is_kept_until_the_request_changes() -> None:
    record = a_record(rejection=REJECTION)
    same = wanted(asked_by(leaders_wait(0), a_jobset(), settings()), {record.maker: record}, LATER)
    fact = replace(at_generation(3), requests=(a_request(topology="4x8"),))
    other = wanted(asked_by(fact, a_jobset(), settings()), {record.maker: record}, LATER)
    assert same is not None
    assert other is not None
    assert same.slices == {}
    assert other.slices[record.maker].claim.rejection is None


def test_a_forged_pod_can_only_request_what_its_jobset_requests() -> None:
    fact = leaders_wait(0, 3, 4, -1, requests=(a_request(replicas=4),))
    assert [leader.job_index for leader in legitimate(fact)] == [0, 3]
    other = replace(fact, requests=(a_request(replicated_job="other"),))
    assert legitimate(other) == ()


@pytest.mark.parametrize("state", ENDS)
def test_the_end_of_an_unknown_jobset_leaves_a_tombstone(state: WorkloadState) -> None:
    record = changed(WorkloadChanged(workload=a_jobset_ref(), state=state), None, NOW, CLUSTER)
    assert record is not None
    assert (record.state, record.demand, record.expire_at) == (state, {}, NOW + TOMBSTONE_TTL)
    assert apply_demand(at_generation(9), record) is None


@pytest.mark.parametrize("state", [WorkloadState.ACTIVE, WorkloadState.SUSPENDED])
def test_a_jobset_has_a_record_before_it_has_demand(state: WorkloadState) -> None:
    record = changed(WorkloadChanged(workload=a_jobset_ref(), state=state, queue="team-a"), None, NOW, CLUSTER)
    assert record is not None
    assert (record.state, record.demand, record.queue) == (state, {}, "team-a")
    assert (record.next_report_at, record.expire_at) == (NOW, None)


def test_an_answer_leaves_the_queue_as_it_was() -> None:
    answer = Answer(workload=a_jobset_ref(), state=WorkloadState.ACTIVE)
    record = changed(answer, a_jobset(queue="team-a"), LATER, CLUSTER)
    assert record is not None
    assert record.queue == "team-a"


def test_demand_that_arrives_after_a_later_suspension_does_not_count() -> None:
    suspension = WorkloadChanged(workload=a_jobset_ref(generation=2), state=WorkloadState.SUSPENDED)
    suspended = changed(suspension, None, NOW, CLUSTER)
    assert suspended is not None
    assert (suspended.state, suspended.demand, suspended.expire_at) == (WorkloadState.SUSPENDED, {}, None)
    assert apply_demand(at_generation(1), suspended) is None
    assert apply_demand(at_generation(3), suspended) is not None


fact_lists = st.lists(
    st.one_of(
        st.integers(1, 4).map(at_generation),
        st.builds(
            lambda generation, state: WorkloadChanged(workload=a_jobset_ref(generation=generation), state=state),
            st.integers(1, 4),
            st.sampled_from(WorkloadState),
        ),
    ),
    max_size=12,
)


def apply_all(facts: list[SlicesWanted | WorkloadChanged]) -> WorkloadRecord | None:
    known: WorkloadRecord | None = None
    for fact in facts:
        if isinstance(fact, SlicesWanted):
            known = apply_demand(fact, known) or known
        else:
            known = changed(fact, known, LATER, CLUSTER) or known
    return known


@given(fact_lists)
def test_an_ended_jobset_stays_ended_whatever_facts_follow(facts: list[SlicesWanted | WorkloadChanged]) -> None:
    end = WorkloadChanged(workload=a_jobset_ref(generation=2), state=WorkloadState.COMPLETED)
    known = apply_all([end, *facts])
    assert known is not None
    assert known.state is WorkloadState.COMPLETED


@given(st.permutations([1, 2, 3, 4]), st.booleans())
def test_suspend_and_resume_are_ordered_by_generation_not_by_arrival(order: list[int], doubled: bool) -> None:
    """Demand at 1, suspended at 2, resumed at 3, suspended at 4: it is suspended at the end, in any order."""
    story: dict[int, SlicesWanted | WorkloadChanged] = {
        1: at_generation(1),
        2: WorkloadChanged(workload=a_jobset_ref(generation=2), state=WorkloadState.SUSPENDED),
        3: at_generation(3),
        4: WorkloadChanged(workload=a_jobset_ref(generation=4), state=WorkloadState.SUSPENDED),
    }
    facts = [at_generation(1), *(story[generation] for generation in order)]
    known = apply_all(facts * 2 if doubled else facts)
    assert known is not None
    assert (known.state, known.generation) == (WorkloadState.SUSPENDED, 4)


def test_a_tombstone_outlives_every_message_in_pubsub() -> None:
    assert timedelta(days=31) < TOMBSTONE_TTL

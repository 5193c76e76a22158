"""What facts about TPUNodeGroups change on record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import CLUSTER, MINUTE, NOW
from tests.domain.planning.test_node_groups import JOB, OWNER, planned, self_managed
from tests.domain.reporting.test_node_groups import a_group, a_group_record
from tests.node_groups import Json, changed, two_hosts
from tpu_slices.domain.model.facts import Answer, SliceDeclared, WorkloadChanged, WorkloadRef, WorkloadState
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import claim_id
from tpu_slices.domain.reconciling.demand import Demand, declared, with_current_desire
from tpu_slices.domain.records.slices import Desire, SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.wire.node_groups import group_of

ID = claim_id(JOB)


def ref(generation: int = 1) -> WorkloadRef:
    return WorkloadRef(owner=OWNER, generation=generation, resource_version="7")


def stands(manifest: Json | None = None, generation: int = 1) -> SliceDeclared:
    return SliceDeclared(workload=ref(generation), group=group_of(manifest or two_hosts()))


def is_over(state: WorkloadState = WorkloadState.DELETED, generation: int = 2) -> WorkloadChanged:
    return WorkloadChanged(workload=replace(ref(generation), resource_version="1000"), state=state)


def told(fact: Any, known: WorkloadRecord | None = None, record: SliceRecord | None = None) -> Demand:
    change = declared(fact, known, record, NOW, self_managed())
    assert change is not None
    return change


def on_record(**changes: Any) -> WorkloadRecord:
    return a_group(**{"owner": OWNER, "demand": {ID: None}, **changes})


def test_a_group_that_stands_is_recorded_with_its_slice() -> None:
    change = told(stands())
    assert (change.workload.state, change.workload.demand) == (WorkloadState.ACTIVE, {ID: None})
    assert change.slices[ID].spec == planned(two_hosts())
    assert (change.slices[ID].claim.awaited_since, change.slices[ID].next_reconcile_at) == (NOW, NOW)


def test_the_same_again_changes_nothing_of_the_slice() -> None:
    first = told(stands())
    assert told(stands(), first.workload, first.slices[ID]).slices == {}


def test_what_is_refused_is_recorded_with_the_reasons() -> None:
    record = told(stands(changed(two_hosts(), nodeCount=3))).slices[ID]
    assert record.spec is None
    assert record.claim.refusal is not None
    assert "spec.nodeCount" in record.claim.refusal.message


def test_another_request_replaces_one_that_was_refused() -> None:
    refused = told(stands(changed(two_hosts(), nodeCount=3)))
    record = told(stands(), refused.workload, refused.slices[ID]).slices[ID]
    assert (record.claim.refusal, record.spec) == (None, planned(two_hosts()))


def test_another_request_never_rebuilds_what_was_bought() -> None:
    bought = a_group_record(create_requested_at=NOW)
    other = changed(two_hosts(), instanceConfig__reservation="other")
    record = told(stands(other, generation=2), on_record(), bought).slices[ID]
    assert record.spec == planned(other)
    assert not record.claim.rebuild_allowed


def test_what_cannot_be_parsed_is_refused_for_that() -> None:
    fact = WorkloadChanged(workload=ref(), state=WorkloadState.ACTIVE, template_error="spec.topology: not a string")
    change = told(fact)
    assert change.workload.template_error == "spec.topology: not a string"
    refusal = change.slices[ID].claim.refusal
    assert refusal is not None
    assert (refusal.reason, refusal.message) == (Reason.DOES_NOT_FIT, "spec.topology: not a string.")


def test_what_can_be_parsed_again_has_no_error_any_more() -> None:
    assert (
        told(stands(generation=2), on_record(template_error="spec.topology: not a string")).workload.template_error
        == ""
    )


def test_the_end_of_a_group_that_was_never_heard_of_has_a_slice_that_can_be_gone() -> None:
    change = told(is_over())
    assert (change.workload.state, change.workload.demand) == (WorkloadState.DELETED, {ID: None})
    assert (change.slices[ID].spec, change.slices[ID].claim.awaited_since) == (None, None)


@pytest.mark.parametrize("state", [WorkloadState.DELETED, WorkloadState.MISSING])
def test_an_end_is_final_and_may_be_told_again(state: WorkloadState) -> None:
    ended = told(is_over(state), on_record(), a_group_record()).workload
    assert ended.state is state
    assert told(is_over(state), ended, a_group_record()).workload == ended
    assert declared(stands(generation=3), ended, a_group_record(), NOW, self_managed()) is None


def test_an_end_that_is_told_again_after_the_slices_record_is_gone_brings_one_back() -> None:
    ended = told(is_over(), on_record(), a_group_record()).workload
    assert told(is_over(), ended).slices.keys() == {ID}


def test_an_answer_says_what_state_a_group_is_in() -> None:
    missing = Answer(workload=replace(ref(0), resource_version=""), state=WorkloadState.MISSING)
    assert told(missing, on_record(), a_group_record()).workload.state is WorkloadState.MISSING


def test_an_earlier_generation_is_outdated() -> None:
    assert declared(stands(generation=1), on_record(generation=2), a_group_record(), NOW, self_managed()) is None


def test_its_demand_is_confirmed_while_the_relay_is_heard() -> None:
    record = with_current_desire(a_group_record(), on_record(), NOW - MINUTE)
    assert (record.desire, record.claim.demand_confirmed_at) == (Desire.PRESENT, NOW - MINUTE)
    assert with_current_desire(a_group_record(), on_record(), None).claim.demand_confirmed_at is None


def test_it_is_part_of_no_list_of_demand() -> None:
    assert (on_record().demand_digest, set(on_record().in_demand)) == (0, {ID})
    assert set(on_record(state=WorkloadState.DELETED).in_demand) == set()
    assert on_record().cluster == CLUSTER

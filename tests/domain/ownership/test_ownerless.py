"""Pools whose JobSets have ended, as the inventory check counts them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.builders import MINUTE, NOW, a_job, a_jobset, a_record
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.observations import PoolSeen
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.domain.reconciling.inventory import OWNERLESS_AFTER, InventoryFindings, Records, check_inventory
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord

LONG_AGO = NOW - OWNERLESS_AFTER - MINUTE


def ready(phase: Phase = Phase.READY) -> SliceRecord:
    return a_record(phase=phase, reason=Reason.READY, create_requested_at=NOW, next_reconcile_at=None)


def found(
    pools: Sequence[SliceRecord], records: Sequence[SliceRecord] = (), workload: WorkloadRecord | None = None
) -> InventoryFindings:
    """Return what is found with the pools of these slices, of which some are on record."""
    seen = [PoolSeen(name=it.pool, slice_id=it.maker, attempt=it.attempt, job=it.job) for it in pools]
    workloads = {} if workload is None else {workload.owner.uid: workload}
    return check_inventory(Records(workloads=workloads, slices={it.id: it for it in records}), seen, NOW)


@pytest.mark.parametrize("state", [state for state in WorkloadState if state is not WorkloadState.ACTIVE])
def test_a_pool_is_ownerless_some_time_after_its_jobset_ended(state: WorkloadState) -> None:
    for since, ownerless in ((NOW - OWNERLESS_AFTER, 0), (LONG_AGO, 1)):
        assert found([ready()], [ready()], a_jobset(state=state, state_since=since)).ownerless == ownerless


@pytest.mark.parametrize("phase", Phase)
def test_a_pool_that_is_being_deleted_or_was_told_of_is_not_ownerless(phase: Phase) -> None:
    record, ended = ready(phase), a_jobset(state=WorkloadState.COMPLETED, state_since=LONG_AGO)
    expected = 0 if phase in {Phase.RELEASING, Phase.BLOCKED} else 1
    assert found([record], [record], ended).ownerless == expected


def test_orphans_are_counted_with_those_that_are_left_out_and_are_not_ownerless_yet() -> None:
    lost = [a_record(job=a_job(uid=WorkloadUid("uid-other"), job_index=index)) for index in range(13)]
    findings = found(lost)
    assert (findings.orphans, findings.ownerless) == (13, 0)

"""Pools under our names that do not say what they were made for, as the inventory check finds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.builders import NOW, a_jobset, a_record, had, unclaimed
from tpu_slices.domain.model.observations import PoolSeen
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import pool_name, slice_id
from tpu_slices.domain.reconciling.inventory import InventoryFindings, Records, check_inventory
from tpu_slices.domain.records.slices import SliceRecord

SERVING: dict[str, Any] = {
    "phase": Phase.READY,
    "reason": Reason.READY,
    "create_requested_at": NOW,
    "ours_since": NOW,
    "next_reconcile_at": None,
}
SLICE = a_record().maker


def nameless(attempt: int = 1) -> PoolSeen:
    return PoolSeen(name=pool_name(SLICE, attempt), slice_id=SLICE, attempt=attempt, job=None)


def found(record: SliceRecord | None, *pools: PoolSeen, **changes: Any) -> InventoryFindings:
    return check(() if record is None else (record,), *pools, **changes)


def check(records: Sequence[SliceRecord], *pools: PoolSeen, **changes: Any) -> InventoryFindings:
    jobset, slices = a_jobset(), {record.id: record for record in records}
    return check_inventory(Records(workloads={jobset.owner.uid: jobset}, slices=slices, **changes), pools, NOW)


def test_one_that_a_settled_record_knows_is_reconciled_and_no_more() -> None:
    claim = a_record(**{**SERVING, "attempt": 2, "earlier": (1,), "next_reconcile_at": NOW})
    queued = {"phase": Phase.RELEASING, "reason": Reason.DELETION_QUEUED}
    for record, others in ((a_record(**SERVING), ()), (unclaimed(a_record(**{**SERVING, **queued})), (claim,))):
        findings = check([record, *others], *(nameless(each.attempt) for each in (record, *others)))
        assert findings == InventoryFindings(mended=((record, record.looked_at_again(NOW)),))


def test_one_that_is_looked_at_anyway_is_left_to_that() -> None:
    record = a_record(**{**SERVING, "next_reconcile_at": NOW})
    assert found(record, nameless()) == InventoryFindings()


def test_one_that_no_claim_has_is_known_by_its_own_record() -> None:
    claim = a_record(**{**SERVING, "attempt": 2, "earlier": (1,)})
    released = {**SERVING, "phase": Phase.RELEASING, "reason": Reason.CLOSING_HOSTS, "next_reconcile_at": NOW}
    for ours_since, told in ((NOW, ()), (None, (nameless(1).name,))):
        before = unclaimed(a_record(**{**released, "ours_since": ours_since}))
        findings = check([claim, before], nameless(1), nameless(2))
        assert (findings.unproven, findings.strays) == (told, ())
        assert before not in [record for record, _ in findings.mended]


@pytest.mark.parametrize(
    ("record", "attempt"),
    [
        pytest.param(None, 1, id="no record"),
        pytest.param(a_record(**{**SERVING, "ours_since": None}), 1, id="a record that never saw it ours"),
        pytest.param(a_record(**SERVING), 2, id="a record of another attempt"),
        pytest.param(
            a_record(attempt=2, tried=2, phase=Phase.GONE, reason=Reason.RELEASED, next_reconcile_at=None),
            1,
            id="a record that has seen it go",
        ),
    ],
)
def test_one_that_nothing_proves_to_be_ours_is_told_and_neither_adopted_nor_put_on_record(
    record: SliceRecord | None, attempt: int
) -> None:
    findings = found(record, nameless(attempt))
    assert findings.unproven == (nameless(attempt).name,)
    assert (findings.recovered, findings.strays, findings.orphans, findings.ownerless) == ((), (), 0, 0)
    assert all(had(after) == had(before) for before, after in findings.mended)


def test_nothing_is_told_of_one_whose_record_cannot_be_read() -> None:
    assert found(None, nameless(), unreadable=frozenset({slice_id(SLICE, 1)})).unproven == ()

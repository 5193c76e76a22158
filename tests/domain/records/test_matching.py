"""Which slices are found when something happens."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import CLUSTER, NOW, a_job, a_record
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.records.matching import hears, news_of, tells, told_of_all

OWN = news_of(CLUSTER, a_job().owner.uid)
REFUSED = {"phase": Phase.REFUSED, "reason": Reason.CHIP_LIMIT_REACHED, "next_reconcile_at": None}
IN_LINE = {"phase": Phase.QUEUED, "reason": Reason.OPERATION_LIMIT, "next_reconcile_at": None}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        pytest.param({"create_requested_at": NOW}, True, id="requested"),
        pytest.param({"phase": Phase.READY, "reason": Reason.READY, "create_requested_at": NOW}, True, id="stands"),
        pytest.param({"phase": Phase.GONE, "reason": Reason.RELEASED}, True, id="gone"),
        pytest.param({"phase": Phase.QUEUED, "reason": Reason.REQUESTED}, True, id="not looked at yet"),
        pytest.param({"phase": Phase.QUEUED, "reason": Reason.DEMAND_STALE}, True, id="no leader was known to wait"),
        pytest.param({**IN_LINE, "unawaited_since": NOW}, True, id="no leader has waited for it"),
        pytest.param(IN_LINE, False, id="in line"),
        pytest.param(REFUSED, False, id="refused"),
        pytest.param({"phase": Phase.WAITING, "reason": Reason.STOCKOUT, "retry_at": NOW}, False, id="tried again"),
    ],
)
def test_a_slice_hears_of_its_workload_unless_its_claim_only_waits(changes: dict[str, Any], *, found: bool) -> None:
    assert hears(a_record(**changes)) == (OWN if found else None)


def test_a_slice_that_no_claim_has_hears_and_tells_nothing() -> None:
    slice_ = a_record(create_requested_at=NOW).let_go_of("it failed", NOW)
    assert (hears(slice_), tells(slice_)) == (None, None)


def test_what_the_slices_of_a_workload_tell_sorts_between_its_bounds_and_that_of_others_does_not() -> None:
    before, behind = told_of_all(CLUSTER, a_job().owner.uid)
    other = f"{news_of(CLUSTER, a_job().owner.uid)}0 "
    for reason in Reason:
        assert before < f"{OWN} {reason}" < behind
        assert not before < f"{other}{reason}" < behind

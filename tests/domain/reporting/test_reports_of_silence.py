"""What is said of a JobSet while the relay of its cluster is late, or silent."""

from datetime import timedelta

import pytest

from tests.builders import MINUTE, NOW, a_jobset
from tests.domain.reporting.test_reports import a_slice, out_of_stock, ready
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Phase, Reason, ReportReason
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.reporting.reports import report
from tpu_slices.domain.reporting.waits import QueueState


def test_a_report_says_from_when_it_is_before_the_relay_counts_as_silent() -> None:
    late = QueueState(heard_at=NOW - 2 * MINUTE - timedelta(seconds=10))
    made = report(a_jobset(), [ready(0)], late, NOW)
    assert made.reason is ReportReason.READY
    assert made.message == (
        "1 of 1 slices ready, as last reported. The cluster's relay was last heard at 11:57 UTC: what is told here is "
        "as it was then."
    )


SILENT = QueueState(silent_since=NOW - 5 * MINUTE)
SILENCE = (
    "The cluster's relay has not been heard since 11:55 UTC: hosts are shown as they were then, and nothing new is "
    "created or deleted until it runs again. Operators: `kubectl -n tpu-slice-provisioner get pods`."
)


@pytest.mark.parametrize(
    ("slices", "reason", "opening"),
    [
        pytest.param([ready(0)], ReportReason.READY, "1 of 1 slices ready, as last reported. The", id="ready"),
        pytest.param([], ReportReason.NOT_REQUESTED, "It is not known", id="none in demand"),
        pytest.param([a_slice(0, Phase.QUEUED, Reason.REQUESTED)], ReportReason.WAITING, "0 of 1", id="queued"),
        pytest.param([out_of_stock(0)], ReportReason.WAITING, "0 of 1", id="waiting"),
        pytest.param([a_slice(0, Phase.REFUSED, Reason.NOT_ALLOWED)], ReportReason.BLOCKED, "0 of 1", id="refused"),
        pytest.param([a_slice(0, Phase.QUEUED, Reason.DEMAND_STALE)], ReportReason.WAITING, "0 of 1", id="was wanted"),
        pytest.param(
            [a_slice(0, Phase.QUEUED, Reason.DEMAND_STALE, demand_confirmed_at=NOW - 20 * MINUTE), ready(1)],
            ReportReason.READY,
            "1 of 1 slices ready, as last reported. The",
            id="no longer wanted when the relay fell silent",
        ),
    ],
)
def test_a_silent_relay_is_told_to_whoever_has_slices_or_may_wait_for_some(
    slices: list[SliceRecord], reason: ReportReason, opening: str
) -> None:
    made = report(a_jobset(), slices, SILENT, NOW)
    assert (made.reason, made.message[: len(opening)]) == (reason, opening)
    assert made.message.endswith(SILENCE)
    assert made.message.count(SILENCE) == 1


@pytest.mark.parametrize(("minutes", "reason"), [(10, ReportReason.BLOCKED), (11, ReportReason.NOT_REQUESTED)])
def test_a_refused_slice_that_no_leader_waits_for_any_more_is_left_out(minutes: int, reason: ReportReason) -> None:
    refused = a_slice(0, Phase.REFUSED, Reason.NOT_ALLOWED)
    jobset = a_jobset(demand={refused.maker: NOW - minutes * MINUTE})
    assert report(jobset, [refused], QueueState(), NOW).reason is reason
    assert report(jobset, [refused], SILENT, NOW).reason is ReportReason.BLOCKED


def test_a_refused_slice_keeps_its_remedy_beside_a_silent_relay() -> None:
    refused, waiting = a_slice(0, Phase.REFUSED, Reason.NOT_ALLOWED), out_of_stock(1)
    first, second = report(a_jobset(), [refused, waiting], SILENT, NOW).waits
    assert first.remedy.startswith("Request what is allowed")
    assert second.remedy == SILENCE


def test_a_jobset_that_is_released_is_not_told_of_a_silent_relay() -> None:
    suspended = a_jobset(state=WorkloadState.SUSPENDED)
    made = report(suspended, [a_slice(0, Phase.RELEASING, Reason.DELETION_STARTED)], SILENT, NOW)
    assert "relay" not in made.message

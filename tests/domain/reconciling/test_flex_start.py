"""What is decided about a slice of flex-start, whose pool is empty until GKE has the hosts, and again when they end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import MINUTE, NOW, heard, settings, some_hosts, with_fields
from tests.domain.cases import FLEX, HOUR, LEFT, OURS, OWN, SILENT, STOCKOUT
from tests.domain.cases import ready as a_ready_slice
from tests.domain.cases import requested as a_requested_slice
from tpu_slices.domain.model.observations import Broken, Busy, Creating, Observation, Observed
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.reconciling.case import Known
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.decisions import CloseHosts, OpenHosts
from tpu_slices.domain.records.heartbeats import RelayHeard
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.reporting.reason_texts import reason_text

DAYS_AGO: dict[str, Any] = {"create_requested_at": NOW - 72 * HOUR}
WAITS: dict[str, Any] = {"demand_confirmed_at": NOW}
LATE: dict[str, Any] = {"demand_confirmed_at": NOW - 16 * MINUTE}
OVER: dict[str, Any] = {**LATE, "unawaited_since": NOW - 10 * MINUTE}
NONE_LEFT = some_hosts(usable=0, joined=0)
SOME_LEFT = some_hosts(usable=3, joined=3)


def requested(**changes: Any) -> SliceRecord:
    return a_requested_slice(**{"spec": FLEX, **DAYS_AGO, **changes})


def ready(**changes: Any) -> SliceRecord:
    return a_ready_slice(**{"spec": FLEX, **DAYS_AGO, **changes})


def decided(record: SliceRecord, seen: Observation, known: Known | None = None) -> SliceRecord:
    return decide(record, Observed(seen), NOW, settings(), known or heard()).record


@pytest.mark.parametrize(
    ("record", "seen", "known", "reason"),
    [
        pytest.param(requested(), OURS, None, Reason.AWAITING_FLEX_START, id="empty for days"),
        pytest.param(requested(), OURS, SILENT, Reason.AWAITING_FLEX_START, id="empty, relay silent"),
        pytest.param(requested(), Busy("a resize."), None, Reason.AWAITING_FLEX_START, id="empty, and resized"),
        pytest.param(requested(**LATE), OURS, SILENT, Reason.AWAITING_FLEX_START, id="not needed, relay silent"),
        pytest.param(requested(**OVER), OURS, SILENT, Reason.AWAITING_FLEX_START, id="not for long, relay silent"),
        pytest.param(requested(**LATE), OURS, None, Reason.AWAITING_FLEX_START, id="empty, and no leader waits now"),
        pytest.param(requested(**OVER), OURS, None, Reason.CLOSING_HOSTS, id="empty, and no leader waits for long"),
        pytest.param(ready(**WAITS, hosts=NONE_LEFT), OURS, None, Reason.AWAITING_FLEX_START, id="taken back"),
        pytest.param(
            ready(**LATE, hosts=replace(NONE_LEFT, departures=LEFT)),
            OURS,
            None,
            Reason.AWAITING_FLEX_START,
            id="taken back, its Job may restart",
        ),
        pytest.param(ready(**OVER, hosts=NONE_LEFT), OURS, None, Reason.CLOSING_HOSTS, id="taken back, and over"),
        pytest.param(
            ready(hosts=replace(SOME_LEFT, occupants=(OWN,))), OURS, None, Reason.HOSTS_LOST, id="some taken back"
        ),
        pytest.param(requested(hosts=SOME_LEFT), OURS, None, Reason.HOSTS_JOINING, id="some joined"),
        pytest.param(
            requested(hosts=SOME_LEFT, hosts_awaited_since=NOW - 31 * MINUTE),
            OURS,
            None,
            Reason.HOSTS_NOT_USABLE,
            id="some joined, and no more for long",
        ),
        pytest.param(requested(hosts=some_hosts()), OURS, None, Reason.READY, id="filled"),
        pytest.param(requested(), Broken(STOCKOUT), None, Reason.STOCKOUT, id="broken"),
    ],
)
def test_a_pool_waits_as_long_as_it_is_empty_and_needed(
    record: SliceRecord, seen: Observation, known: Known | None, reason: Reason
) -> None:
    assert decided(record, seen, known).reason is reason


def test_an_empty_pool_that_nobody_waits_for_goes_and_stays_if_somebody_does_which_is_no_failure() -> None:
    after = decide(requested(**OVER), Observed(OURS), NOW, settings(), heard())
    assert (after.record.let_go, after.let_go) == ("nobody waits for it", None)
    assert (after.actions, after.record.claim.failures) == ((CloseHosts(1, 1),), 0)
    back = decide(with_fields(after.record, **WAITS), Observed(OURS), NOW + MINUTE, settings(), heard())
    assert (back.record.attempt, back.record.reason, back.record.let_go) == (1, Reason.AWAITING_FLEX_START, "")
    assert back.actions == (OpenHosts(1, 2, back.record.key),)


def test_an_empty_pool_is_kept_while_a_leader_may_be_replaced_and_is_looked_at_when_that_is_over() -> None:
    first = decided(requested(**LATE), OURS)
    assert (first.claim.unawaited_since, first.next_reconcile_at) == (NOW, NOW + 10 * MINUTE)
    early, due = (
        decide(first, Observed(OURS), NOW + minutes * MINUTE, settings(), heard_at(minutes)).record
        for minutes in (9, 10)
    )
    assert (early.goes, due.goes) == (False, True)
    again = decide(with_fields(early, **WAITS), Observed(OURS), NOW + 9 * MINUTE, settings(), heard_at(9)).record
    assert again.claim.unawaited_since is None


def heard_at(minutes: int) -> Known:
    return heard(relay=RelayHeard(last_at=NOW + minutes * MINUTE, since=NOW - 8 * HOUR))


def test_no_clock_runs_for_an_empty_pool() -> None:
    awaited = decided(requested(hosts_awaited_since=NOW - HOUR), OURS)
    assert (awaited.current.hosts_awaited_since, awaited.next_reconcile_at) == (None, NOW + 10 * MINUTE)


def test_the_message_keeps_since_when_it_waits() -> None:
    first = decided(requested(), OURS)
    again = decide(first, Observed(OURS), NOW + 5 * HOUR, settings(), Known()).record
    assert again.message == first.message
    assert first.message == (
        "Waiting for flex-start capacity since 2026-03-01 12:00 UTC: GKE adds all 4 hosts (16 chips) in us-central2-b "
        "when it has them, and takes them back after 7 days."
    )


def test_a_ready_slice_tells_before_when_its_hosts_end() -> None:
    first = decided(requested(hosts=some_hosts()), OURS)
    later = decide(first, Observed(OURS), NOW + HOUR, settings(), heard()).record
    assert (later.phase, later.message) == (Phase.READY, first.message)
    assert "7 days after their start, before 2026-03-08 12:00 UTC" in first.message


def test_its_creation_promises_no_hosts_and_no_stockout() -> None:
    assert "stockout" not in decided(requested(), Creating()).message
    creating = requested(reason=Reason.CREATING)
    assert "to which it then adds hosts by flex-start" in reason_text(creating, Reason.CREATING).message


def test_gke_is_not_said_to_repair_lost_hosts() -> None:
    text = reason_text(ready(hosts=SOME_LEFT), Reason.HOSTS_LOST)
    assert text.message == (
        "only 3 of 4 flex-start hosts are still ready; GKE takes them back after 7 days, and replaces none"
    )
    assert "repairs" not in text.remedy

"""Nothing is created that the settings do not allow at that moment, whatever they allowed before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import MINUTE, NOW, a_record, a_spec, heard, settings, some_hosts, with_fields
from tests.domain.cases import SILENT
from tpu_slices.domain.model.clusters import Allowed, Policy
from tpu_slices.domain.model.observations import Absent, Observation, Observed, Running
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.planning.policy import Held
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.decisions import CreatePool, Decision
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.domain.records.slices import Desire, SliceRecord

NO_LIMITS = Policy()
TOO_LARGE = Policy(everyone=Allowed(chips_per_slice=8))
SHARED = Policy(everyone=Allowed(chips_per_namespace=64))


def decided(
    record: SliceRecord, policy: Policy = NO_LIMITS, held: Held | None = None, seen: Observation | None = None
) -> Decision:
    return decide(record, Observed(seen or Absent()), NOW, settings(policy=policy), heard(held=held))


def test_a_creation_is_checked_against_the_current_settings() -> None:
    decision = decided(a_record(slot=0), TOO_LARGE)
    assert (decision.record.phase, decision.reason) == (Phase.REFUSED, Reason.NOT_ALLOWED)
    assert decision.message == "policy.chips_per_slice: this slice has 16 chips, and at most 8 are allowed."
    assert decision.actions == ()


def test_a_refusal_frees_the_slot() -> None:
    assert decided(a_record(slot=0), TOO_LARGE).record.current.slot is None


def test_a_refused_slice_is_created_once_it_is_allowed() -> None:
    refused = decided(a_record(), TOO_LARGE).record
    assert decided(with_fields(refused, slot=0)).actions == (CreatePool(1),)


def test_a_refusal_clears_the_backoff_of_an_earlier_failure() -> None:
    waiting = a_record(phase=Phase.WAITING, reason=Reason.STOCKOUT, retry_at=NOW + MINUTE)
    refused = decided(waiting, TOO_LARGE).record
    assert decided(with_fields(refused, slot=0)).actions == (CreatePool(1),)


def test_a_ready_slice_is_not_deleted_under_new_settings() -> None:
    serving = a_record(
        create_requested_at=NOW - 60 * MINUTE,
        phase=Phase.READY,
        reason=Reason.READY,
        hosts=some_hosts(vacant_since=NOW),
    )
    decision = decided(serving, TOO_LARGE, seen=Running(a_spec().fingerprint))
    assert (decision.record.phase, decision.actions) == (Phase.READY, ())


def test_a_slice_over_the_chip_limit_is_refused_and_not_looked_at_by_itself() -> None:
    decision = decided(a_record(slot=0), SHARED, Held(in_namespace=56, in_cluster=56))
    assert (decision.record.phase, decision.reason) == (Phase.REFUSED, Reason.CHIP_LIMIT_REACHED)
    assert "the namespace research holds 56 of 64" in decision.message
    assert decision.record.next_reconcile_at is None


def test_a_slice_over_the_chip_limit_that_no_leader_waits_for_says_so_unless_the_relay_is_silent() -> None:
    """Its Job may have found hosts that are nobody's slice."""
    record, held = a_record(demand_confirmed_at=NOW - 16 * MINUTE), Held(in_namespace=56, in_cluster=56)
    assert decided(record, SHARED, held).reason is Reason.DEMAND_STALE
    rules = settings(policy=SHARED)
    unheard = decide(record, Observed(Absent()), NOW, rules, replace(SILENT, held=held))
    assert unheard.reason is Reason.CHIP_LIMIT_REACHED


def test_a_slice_is_created_once_enough_chips_are_released() -> None:
    refused = decided(a_record(), SHARED, Held(in_namespace=56, in_cluster=56)).record
    decision = decided(with_fields(refused, slot=0), SHARED, Held(in_namespace=48, in_cluster=48))
    assert decision.actions == (CreatePool(1),)


def test_nothing_is_created_in_a_cluster_that_is_retired_and_the_slice_is_looked_at_again() -> None:
    retired = settings(retired="moved to another.")
    decision = decide(a_record(slot=0), Observed(Absent()), NOW, retired, heard())
    assert (decision.record.phase, decision.reason, decision.actions) == (Phase.REFUSED, Reason.CLUSTER_RETIRED, ())
    assert decision.record.next_reconcile_at == NOW + retired.limits.resync_after
    assert decided(with_fields(decision.record, slot=0)).actions == (CreatePool(1),)


def test_a_slice_that_serves_in_a_cluster_that_is_retired_serves_until_it_is_released() -> None:
    serving = a_record(
        create_requested_at=NOW - 60 * MINUTE, phase=Phase.READY, reason=Reason.READY, hosts=some_hosts()
    )
    seen = Observed(Running(a_spec().fingerprint))
    assert decide(serving, seen, NOW, settings(retired="moved."), heard()).record.phase is Phase.READY


@pytest.mark.parametrize("reason", [Reason.IMPOSSIBLE_SHAPE, Reason.DOES_NOT_FIT, Reason.NOT_ALLOWED])
def test_a_refusal_of_the_request_itself_stays(reason: Reason) -> None:
    refusal = Refusal(reason=reason, message="no.")
    decision = decided(a_record(spec=None, refusal=refusal), TOO_LARGE)
    assert (decision.reason, decision.record.claim.refusal) == (reason, refusal)


def test_a_slice_without_demand_is_gone_and_not_refused() -> None:
    decision = decided(a_record(release_requested=True, desire=Desire.ABSENT), TOO_LARGE)
    assert decision.record.phase is Phase.GONE


@pytest.mark.parametrize(
    ("changes", "chips"),
    [
        pytest.param({}, 0, id="not requested"),
        pytest.param({"create_requested_at": NOW}, 16, id="requested"),
        pytest.param({"create_requested_at": NOW, "phase": Phase.GONE}, 0, id="gone"),
        pytest.param({"create_requested_at": NOW, "spec": None}, 0, id="found without a record"),
    ],
)
def test_a_slice_holds_its_chips_from_the_create_request_until_it_is_gone(
    changes: dict[str, object], chips: int
) -> None:
    assert a_record(**changes).chips_bought == chips


SCATTERED = a_record(slot=0, spec=a_spec(scatters=True))
"""A claim whose pods could come to several slices."""


def test_a_slice_whose_pods_could_scatter_is_refused_until_they_are_made_anew() -> None:
    decision = decided(SCATTERED)
    assert (decision.record.phase, decision.reason, decision.actions) == (Phase.REFUSED, Reason.PODS_NOT_PINNED, ())
    assert decision.record.next_reconcile_at is None
    made_anew = with_fields(decision.record, slot=0, spec=a_spec())
    assert decided(made_anew).actions == (CreatePool(1),)


def test_a_slice_that_serves_when_its_pods_come_back_unpinned_serves_on() -> None:
    serving = a_record(
        create_requested_at=NOW - 60 * MINUTE,
        phase=Phase.READY,
        reason=Reason.READY,
        hosts=some_hosts(),
        spec=a_spec(scatters=True),
    )
    assert decided(serving, seen=Running(a_spec().fingerprint)).record.phase is Phase.READY

"""Nothing is bought that the settings do not allow at that moment, whatever they allowed before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import MINUTE, NOW, a_record, a_spec, settings
from tpu_slices.domain.model.clusters import Allowed, Policy
from tpu_slices.domain.model.decisions import CreatePool, Decision
from tpu_slices.domain.model.observations import Absent, Observation, PoolObservations, Running
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.records import Desire, Phase, Refusal, SliceRecord
from tpu_slices.domain.planning.policy import Held
from tpu_slices.domain.reconciling.decide import decide

NO_LIMITS = Policy()
TOO_LARGE = Policy(everyone=Allowed(chips_per_slice=8))
SHARED = Policy(everyone=Allowed(chips_per_namespace=64))


def decided(
    record: SliceRecord, policy: Policy = NO_LIMITS, held: Held | None = None, seen: Observation | None = None
) -> Decision:
    return decide(record, PoolObservations(seen or Absent(), {}), NOW, settings(policy=policy), held)


def test_a_create_is_checked_against_the_settings_as_they_are_now() -> None:
    decision = decided(a_record(slot=0), TOO_LARGE)
    assert (decision.record.phase, decision.reason) == (Phase.REFUSED, Reason.NOT_ALLOWED)
    assert decision.message == "policy.chips_per_slice: This slice would have 16 chips, 8 are allowed."
    assert decision.actions == ()


def test_a_refusal_gives_the_slot_back() -> None:
    assert decided(a_record(slot=0), TOO_LARGE).record.slot is None


def test_once_it_is_allowed_again_it_is_bought() -> None:
    refused = decided(a_record(), TOO_LARGE).record
    assert decided(replace(refused, slot=0)).actions == (CreatePool(1),)


def test_a_refusal_ends_the_patience_with_an_earlier_failure() -> None:
    waiting = a_record(phase=Phase.WAITING, reason=Reason.STOCKOUT, retry_at=NOW + MINUTE)
    refused = decided(waiting, TOO_LARGE).record
    assert decided(replace(refused, slot=0)).actions == (CreatePool(1),)


def test_a_slice_that_serves_is_not_taken_away_by_new_settings() -> None:
    serving = a_record(create_requested_at=NOW - 60 * MINUTE, phase=Phase.READY, reason=Reason.READY, hosts_usable=4)
    decision = decided(serving, TOO_LARGE, seen=Running(a_spec().fingerprint))
    assert (decision.record.phase, decision.actions) == (Phase.READY, ())


def test_chips_that_others_hold_keep_a_slice_waiting_and_it_is_looked_at_again() -> None:
    decision = decided(a_record(slot=0), SHARED, Held(in_namespace=56, in_cluster=56))
    assert (decision.record.phase, decision.reason) == (Phase.REFUSED, Reason.NO_CHIPS_LEFT)
    assert "the namespace research holds 56 of 64" in decision.message
    assert decision.record.next_reconcile_at == NOW + MINUTE


def test_when_they_give_them_back_it_is_bought() -> None:
    refused = decided(a_record(), SHARED, Held(in_namespace=56, in_cluster=56)).record
    decision = decided(replace(refused, slot=0), SHARED, Held(in_namespace=48, in_cluster=48))
    assert decision.actions == (CreatePool(1),)


@pytest.mark.parametrize("reason", [Reason.IMPOSSIBLE_SHAPE, Reason.DOES_NOT_FIT, Reason.NOT_ALLOWED])
def test_what_the_request_itself_was_refused_for_stays(reason: Reason) -> None:
    refusal = Refusal(reason=reason, message="no.")
    decision = decided(a_record(spec=None, refusal=refusal), TOO_LARGE)
    assert (decision.reason, decision.record.refusal) == (reason, refusal)


def test_nobody_is_told_what_a_slice_that_is_not_wanted_may_not_be() -> None:
    decision = decided(a_record(release_requested=True, desire=Desire.ABSENT), TOO_LARGE)
    assert decision.record.phase is Phase.GONE


@pytest.mark.parametrize(
    ("changes", "chips"),
    [
        pytest.param({}, 0, id="not ordered"),
        pytest.param({"create_requested_at": NOW}, 16, id="ordered"),
        pytest.param({"create_requested_at": NOW, "phase": Phase.GONE}, 0, id="gone"),
        pytest.param({"create_requested_at": NOW, "spec": None}, 0, id="found without a record"),
    ],
)
def test_a_slice_holds_its_chips_from_the_order_until_it_is_given_up(changes: dict[str, object], chips: int) -> None:
    assert a_record(**changes).chips_held == chips

"""What is decided about a slice whose pool is made in several steps, as on Compute Engine."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import MINUTE, NOW, had, heard, self_managed, some_hosts, with_fields
from tests.domain.cases import OURS, STOCKOUT, going, requested
from tpu_slices.domain.model.observations import (
    Begun,
    Broken,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    Observation,
    Observed,
    Refused,
    Running,
)
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.decisions import Action, CreatePool, DeleteRemains
from tpu_slices.domain.reconciling.outcomes import acted, left_by
from tpu_slices.domain.records.hosts import NO_HOSTS
from tpu_slices.domain.records.slices import SliceRecord

SECOND = timedelta(seconds=1)
BEGUN = Begun("its workload policy")
AWAITS = Running(OURS.fingerprint, awaiting="ZONE_RESOURCE_POOL_EXHAUSTED: not enough resources.")
SETTINGS = self_managed()
STEP: dict[str, Any] = {"slot": 3, "create_requested_at": NOW - 20 * SECOND}
LATE: dict[str, Any] = {"demand_confirmed_at": NOW - 16 * MINUTE}
LONG_AGO: dict[str, Any] = {"create_requested_at": NOW - 72 * 60 * MINUTE}


def steps(record: SliceRecord, seen: Observation, **known: Any) -> tuple[Reason, tuple[Action, ...], int | None]:
    decision = decide(record, Observed(seen), NOW, SETTINGS, heard(**known))
    return decision.record.reason, decision.actions, decision.record.current.slot


@pytest.mark.parametrize(
    ("record", "seen", "known", "expected"),
    [
        pytest.param(requested(**STEP), BEGUN, {}, (Reason.CREATING, (CreatePool(1),), 3), id="goes on in its slot"),
        pytest.param(requested(**STEP), Creating(), {}, (Reason.CREATING, (), 3), id="waits while a step runs"),
        pytest.param(requested(**LONG_AGO), BEGUN, {}, (Reason.OPERATION_LIMIT, (), None), id="left for long: no slot"),
        pytest.param(
            requested(**LONG_AGO, slot=None),
            BEGUN,
            {"slots": {1: 4}},
            (Reason.CREATING, (CreatePool(1),), 4),
            id="left for long: goes on in another slot",
        ),
        pytest.param(requested(**STEP, **LATE), BEGUN, {}, (Reason.DEMAND_STALE, (), None), id="demand is stale"),
    ],
)
def test_a_creation_that_has_begun_goes_on_while_it_may(
    record: SliceRecord,
    seen: Observation,
    known: dict[str, Any],
    expected: tuple[Reason, tuple[Action, ...], int | None],
) -> None:
    assert steps(record, seen, **known) == expected


def test_what_has_begun_is_deleted_without_asking_the_relay_once_no_order_can_come() -> None:
    record = going(create_requested_at=NOW - 10 * MINUTE, slot=2, hosts=NO_HOSTS)
    young, seen = with_fields(record, create_requested_at=NOW - 90 * SECOND), Observed(BEGUN)
    assert decide(young, seen, NOW, SETTINGS, heard()).actions == ()
    assert decide(young, seen, NOW, SETTINGS, heard()).record.reason is Reason.CREATION_IN_DOUBT
    decision = decide(record, seen, NOW, SETTINGS, heard(slots={1: 2}))
    assert decision.actions == (DeleteRemains(1),)
    assert decision.record.phase is Phase.RELEASING
    going_on = decide(decision.record, seen, NOW + SECOND, SETTINGS, heard())
    assert going_on.actions == (DeleteRemains(1),)  # the next step follows at once, in the same slot
    waits = decide(decision.record, Observed(Deleting()), NOW + SECOND, SETTINGS, heard())
    assert waits.actions == ()


def test_a_step_that_failed_lets_the_slice_go_with_what_stands_of_it() -> None:
    record = replace(requested(**STEP), reason=Reason.CREATING)
    decision = decide(record, Observed(Broken(STOCKOUT)), NOW, SETTINGS, heard())
    after, let_go = decision.record, decision.let_go
    assert (after.reason, after.attempt, had(after)) == (Reason.STOCKOUT, 2, (1,))
    assert let_go is not None
    assert (let_go.attempt, let_go.current.create_requested_at) == (1, record.current.create_requested_at)


@pytest.mark.parametrize(
    ("refused", "attempt", "earlier", "phase"),
    [
        pytest.param(Failure(FailureKind.QUOTA, "No."), 2, (1,), Phase.WAITING, id="given up"),
        pytest.param(Failure(FailureKind.RATE, "Slow."), 1, (), Phase.PROVISIONING, id="tried again in its slot"),
    ],
)
def test_a_later_step_that_is_refused_leaves_nothing_behind(
    refused: Failure, attempt: int, earlier: tuple[int, ...], phase: Phase
) -> None:
    """What stands of a slice that is given up goes, as one that no claim has."""
    record, outcome = requested(**STEP), Refused(refused, begun=True)
    after = acted(record, CreatePool(1), outcome, NOW, SETTINGS)
    assert (after.attempt, had(after), after.phase) == (attempt, earlier, phase)
    assert (after.current.create_requested_at is None) is bool(earlier)
    left = left_by(record, CreatePool(1), outcome, NOW)
    assert (left is not None) is bool(earlier)
    if left is not None:
        assert (left.unclaimed, left.goes, left.attempt, left.chips_bought) == (True, True, 1, 0)
        later = decide(left, Observed(BEGUN), NOW + 2 * MINUTE, SETTINGS, heard(slots={1: 2}))
        assert later.actions == (DeleteRemains(1),)


def test_hosts_that_compute_engine_has_not_yet_are_awaited_as_long_as_a_leader_waits() -> None:
    record = requested(**LONG_AGO)
    waits = decide(record, Observed(AWAITS), NOW, SETTINGS, heard()).record
    assert (waits.reason, waits.attempt) == (Reason.AWAITING_CAPACITY, 1)
    assert waits.message.endswith("It says: ZONE_RESOURCE_POOL_EXHAUSTED: not enough resources.")
    over = with_fields(record, **LATE, unawaited_since=NOW - 10 * MINUTE)
    stale = decide(over, Observed(AWAITS), NOW, SETTINGS, heard()).record
    assert (stale.attempt, stale.goes, stale.phase) == (1, True, Phase.RELEASING)
    joined = with_fields(record, hosts=some_hosts(usable=1, joined=1))
    assert decide(joined, Observed(AWAITS), NOW, SETTINGS, heard()).record.reason is Reason.HOSTS_JOINING


def test_what_is_told_of_a_self_managed_cluster_does_not_speak_of_gke() -> None:
    tried = [
        decide(requested(**STEP), Observed(seen), NOW, SETTINGS, heard()).record.message
        for seen in (BEGUN, Creating(), AWAITS, Running(OURS.fingerprint), Broken(STOCKOUT))
    ]
    assert [text for text in tried if "GKE" in text or "node pool" in text] == []

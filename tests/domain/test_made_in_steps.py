"""What is decided about a slice whose pool is made in several steps, as on Compute Engine."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import MINUTE, NOW, an_attempt, heard, self_managed, some_hosts, with_fields
from tests.domain.cases import OURS, STOCKOUT, requested
from tpu_slices.domain.model.observations import (
    Absent,
    Begun,
    Broken,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    Observation,
    PoolObservations,
    Refused,
    Running,
)
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.decisions import Action, CreatePool, DeleteRemains
from tpu_slices.domain.reconciling.outcomes import acted
from tpu_slices.domain.records.slices import Desire, SliceRecord

SECOND = timedelta(seconds=1)
BEGUN = Begun("its workload policy")
AWAITS = Running(OURS.fingerprint, awaiting="ZONE_RESOURCE_POOL_EXHAUSTED: not enough resources.")
SETTINGS = self_managed()
STEP: dict[str, Any] = {"slot": 3, "create_requested_at": NOW - 20 * SECOND}
LATE: dict[str, Any] = {"demand_confirmed_at": NOW - 16 * MINUTE}
LONG_AGO: dict[str, Any] = {"create_requested_at": NOW - 72 * 60 * MINUTE}


def steps(record: SliceRecord, seen: Observation, **known: Any) -> tuple[Reason, tuple[Action, ...], int | None]:
    decision = decide(record, PoolObservations(seen, {}), NOW, SETTINGS, heard(**known))
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
    given_up = an_attempt(1, create_requested_at=NOW - 10 * MINUTE, chips=16, slot=2)
    record = with_fields(requested(), attempt=2, attempts=2, desire=Desire.ABSENT, terminating=(given_up,))
    gone = with_fields(record, create_requested_at=None)
    young = replace(gone, terminating=(replace(given_up, create_requested_at=NOW - 90 * SECOND),))
    seen = PoolObservations(Absent(), {1: BEGUN})
    assert decide(young, seen, NOW, SETTINGS, heard()).actions == ()
    assert decide(young, seen, NOW, SETTINGS, heard()).record.reason is Reason.CREATION_IN_DOUBT
    decision = decide(gone, seen, NOW, SETTINGS, heard(slots={1: 2}))
    assert decision.actions == (DeleteRemains(1),)
    assert decision.record.phase is Phase.RELEASING
    going_on = decide(decision.record, seen, NOW + SECOND, SETTINGS, heard())
    assert going_on.actions == (DeleteRemains(1),)  # the next step follows at once, in the same slot
    waits = decide(decision.record, PoolObservations(Absent(), {1: Deleting()}), NOW + SECOND, SETTINGS, heard())
    assert waits.actions == ()


def test_a_step_that_failed_gives_the_attempt_up_with_what_stands_of_it() -> None:
    record = replace(requested(**STEP), reason=Reason.CREATING)
    after = decide(record, PoolObservations(Broken(STOCKOUT), {}), NOW, SETTINGS, heard()).record
    assert (after.reason, after.attempt, [each.number for each in after.terminating]) == (Reason.STOCKOUT, 2, [1])


@pytest.mark.parametrize(
    ("refused", "attempt", "terminating", "phase"),
    [
        pytest.param(Failure(FailureKind.QUOTA, "No."), 2, [1], Phase.WAITING, id="given up"),
        pytest.param(Failure(FailureKind.RATE, "Slow."), 1, [], Phase.PROVISIONING, id="tried again in its slot"),
    ],
)
def test_a_later_step_that_is_refused_leaves_nothing_behind(
    refused: Failure, attempt: int, terminating: list[int], phase: Phase
) -> None:
    record = requested(**STEP)
    after = acted(record, CreatePool(1), Refused(refused, begun=True), NOW, SETTINGS)
    assert (after.attempt, [each.number for each in after.terminating], after.phase) == (attempt, terminating, phase)
    assert (after.current.create_requested_at is None) is bool(terminating)


def test_hosts_that_compute_engine_has_not_yet_are_awaited_as_long_as_a_leader_waits() -> None:
    record = requested(**LONG_AGO)
    waits = decide(record, PoolObservations(AWAITS, {}), NOW, SETTINGS, heard()).record
    assert (waits.reason, waits.attempt) == (Reason.AWAITING_CAPACITY, 1)
    assert waits.message.endswith("It says: ZONE_RESOURCE_POOL_EXHAUSTED: not enough resources.")
    stale = decide(replace(record, **LATE), PoolObservations(AWAITS, {}), NOW, SETTINGS, heard()).record
    assert [each.number for each in stale.terminating] == [1]
    joined = with_fields(record, hosts=some_hosts(usable=1, joined=1))
    assert decide(joined, PoolObservations(AWAITS, {}), NOW, SETTINGS, heard()).record.reason is Reason.HOSTS_JOINING


def test_what_is_told_of_a_self_managed_cluster_does_not_speak_of_gke() -> None:
    tried = [
        decide(requested(**STEP), PoolObservations(seen, {}), NOW, SETTINGS, heard()).record.message
        for seen in (BEGUN, Creating(), AWAITS, Running(OURS.fingerprint), Broken(STOCKOUT))
    ]
    assert [text for text in tried if "GKE" in text or "node pool" in text] == []

"""What a record knows of whose its pools are, and what is done about labels that somebody replaced."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from tests.builders import MINUTE, NOW, heard, settings, unclaimed, with_fields
from tests.domain.cases import BARE, OURS, ready, seen, situations, unneeded
from tpu_slices.domain.model.observations import (
    Absent,
    Broken,
    Busy,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    Observation,
    Observed,
    Refused,
    Running,
    Started,
    Unowned,
    Unreadable,
)
from tpu_slices.domain.model.vendors import COMPUTE_ENGINE, GKE
from tpu_slices.domain.reconciling.case import Situation
from tpu_slices.domain.reconciling.decisions import CreatePool, Relabel
from tpu_slices.domain.reconciling.outcomes import acted
from tpu_slices.domain.reconciling.relabelling import Relabelled, known_ours, labels_replaced, relabelling
from tpu_slices.domain.records.attempts import Relabelling
from tpu_slices.domain.records.slices import SliceRecord

LIMITS = settings().limits
LACKING = BARE.lacking
DUE = Relabelling(lacking=LACKING, again_at=NOW)
WAITING = Relabelling(lacking=LACKING, again_at=NOW + MINUTE)
ANEW = Relabelling(lacking=LACKING, again_at=NOW + LIMITS.resync_after)
PUT_BACK = Relabelled(ANEW, (Relabel(1),))


def case_of(known: Relabelling | None, current: Observation, record: SliceRecord | None = None) -> Situation:
    record = with_fields(record or ready(), relabelling=known)
    return Situation(record, Observed(current), NOW, settings(), heard())


@pytest.mark.parametrize(
    ("known", "current", "then"),
    [
        pytest.param(None, OURS, Relabelled(None), id="it has its labels"),
        pytest.param(WAITING, OURS, Relabelled(None), id="it has them again"),
        pytest.param(None, BARE, PUT_BACK, id="they are lacking"),
        pytest.param(WAITING, BARE, Relabelled(WAITING), id="they were put back moments ago"),
        pytest.param(DUE, BARE, PUT_BACK, id="it is time to look again"),
        pytest.param(None, Busy("an upgrade"), Relabelled(None), id="nothing is known of them, and GKE is at work"),
        pytest.param(WAITING, Busy("an update"), Relabelled(WAITING), id="GKE is at work"),
        pytest.param(DUE, Busy("an update"), Relabelled(ANEW), id="GKE is at work for long"),
        pytest.param(DUE, Broken(Failure(FailureKind.UNKNOWN, "x")), Relabelled(ANEW), id="it is broken"),
        pytest.param(DUE, Absent(), Relabelled(None), id="it is gone"),
    ],
)
def test_labels_are_put_back_once_and_then_with_patience(
    known: Relabelling | None, current: Observation, then: Relabelled
) -> None:
    assert relabelling(case_of(known, current)) == then


@pytest.mark.parametrize(
    "record",
    [unneeded(ready()), ready(let_go="nobody used it"), unclaimed(ready())],
    ids=["not needed", "goes", "no claim has it"],
)
def test_nothing_is_put_back_on_a_pool_that_nobody_needs(record: SliceRecord) -> None:
    assert relabelling(case_of(DUE, BARE, record)) == Relabelled(None)


@given(situations())
def test_only_a_pool_that_runs_and_stays_gets_its_labels_back(case: Situation) -> None:
    running = isinstance(case.seen.pool, Running) and bool(case.seen.pool.lacking)
    assert bool(relabelling(case).actions) is (running and not case.record.goes)


@pytest.mark.parametrize("since", [None, NOW - MINUTE])
@pytest.mark.parametrize(
    ("current", "proves"),
    [
        (OURS, True),
        (Busy("repair"), True),
        (Absent(), False),
        (Creating(), False),
        (Broken(Failure(FailureKind.STOCKOUT, "x")), False),
        (Deleting(), False),
        (Unowned("x"), False),
        (Unreadable("x"), False),
    ],
)
def test_a_look_proves_a_pool_that_stands_to_be_ours(current: Observation, proves: bool, since: object) -> None:
    for record in (ready(ours_since=since), unclaimed(ready(ours_since=since))):
        after = known_ours(record, seen(current), NOW)
        assert after.current.ours_since == (since or (NOW if proves else None))
        assert proves or after is record


def test_an_accepted_creation_proves_it_and_the_next_slice_starts_anew() -> None:
    record = ready(ours_since=None, relabelling=WAITING)
    created = acted(record, CreatePool(1), Started("operation-1"), NOW, settings())
    assert created.current.ours_since == NOW
    let_go = created.let_go_of("it failed", NOW)
    assert (let_go.current.ours_since, let_go.current.relabelling) == (NOW, None)
    following = created.with_next(let_go.id)
    assert (following.current.ours_since, following.current.relabelling) == (None, None)


@pytest.mark.parametrize(
    ("outcome", "again_after", "refused"),
    [
        (Started("operation-1"), LIMITS.resync_after, ""),
        (Started(None), LIMITS.resync_after, ""),
        (Refused(Failure(FailureKind.BUSY, "incompatible operation")), LIMITS.resync_after, ""),
        (Refused(Failure(FailureKind.RATE, "too many operations")), LIMITS.resync_after, ""),
        (Refused(Failure(FailureKind.CONFIGURATION, "no permission")), LIMITS.blocked_retry_after, "no permission"),
        (Refused(Failure(FailureKind.UNKNOWN, "?")), LIMITS.blocked_retry_after, "?"),
    ],
)
def test_what_is_refused_is_tried_again_after_an_hour(outcome: object, again_after: object, refused: str) -> None:
    record = ready(relabelling=ANEW)
    after = acted(record, Relabel(1), outcome, NOW, settings())  # type: ignore[arg-type]
    assert after.current.relabelling is not None
    assert (after.current.relabelling.again_at - NOW, after.current.relabelling.refused) == (again_after, refused)


@pytest.mark.parametrize(("vendor", "what"), [(GKE, "the labels of its node pool"), (COMPUTE_ENGINE, "description")])
def test_it_is_told_what_somebody_replaced_and_what_becomes_of_it(vendor: object, what: str) -> None:
    told = labels_replaced(ANEW, vendor)  # type: ignore[arg-type]
    assert what in told
    assert LACKING in told
    assert told.endswith("they are put back.")
    refused = labels_replaced(replace(ANEW, refused="no permission"), vendor)  # type: ignore[arg-type]
    assert refused.endswith("tried again at 12:10 UTC: no permission")
    assert "once nothing is held" in labels_replaced(ANEW, vendor, frozen=True)  # type: ignore[arg-type]

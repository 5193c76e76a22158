"""Which slice a claim has, and why it has none: a row per row of the table, and what is true of every case."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, a_record, heard, settings, some_hosts, with_fields
from tests.domain.cases import (
    ELSEWHERE,
    HOUR,
    OURS,
    OWN,
    STOCKOUT,
    in_use,
    observations,
    ready,
    requested,
    situations,
    terminating,
)
from tpu_slices.domain.model.observations import (
    Absent,
    Begun,
    Broken,
    Creating,
    Observation,
    PoolObservations,
    Unowned,
    Unreadable,
)
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import LAST_ATTEMPT
from tpu_slices.domain.reconciling.binding import Bound, bind
from tpu_slices.domain.reconciling.case import Known, Situation
from tpu_slices.domain.reconciling.frozen import why_frozen
from tpu_slices.domain.records.slices import Desire, Refusal, Shortage, SliceRecord

WITH_SLOT = heard(slots={number: number for number in range(200)})
SHORT = Shortage(at=NOW - MINUTE, reason=Reason.STOCKOUT)
FITS = terminating(fits=True)


def bound(
    record: SliceRecord,
    current: Observation | None = None,
    earlier: Observation | None = None,
    known: Known = WITH_SLOT,
) -> Bound:
    """Return what a claim has; `earlier`: what is seen of its first slice, if it had another since."""
    others = {} if earlier is None else {1: earlier}
    return bind(Situation(record, PoolObservations(current or Absent(), others), NOW, settings(), known))


def claim(**fields: object) -> SliceRecord:
    """Return a claim that a leader waits for, and that has no slice."""
    return with_fields(a_record(demand_confirmed_at=NOW), **fields)


@pytest.mark.parametrize(
    ("given_to", "reason", "is_made"),
    [
        pytest.param(bound(claim()), Reason.CREATION_STARTED, True, id="nothing is in the way"),
        pytest.param(
            bound(requested(), Begun("its instance template")), Reason.CREATING, True, id="its making goes on"
        ),
        pytest.param(
            bound(requested(), Absent()), Reason.CREATION_STARTED, True, id="its slice is gone: the name is used again"
        ),
        pytest.param(bound(ready(), OURS), None, False, id="it has a slice"),
        pytest.param(
            bound(ready(hosts=some_hosts(usable=2)), OURS),
            None,
            False,
            id="it has a slice, some of whose hosts are away",
        ),
        pytest.param(bound(claim(desire=Desire.ABSENT)), None, False, id="it needs none"),
        pytest.param(bound(claim(attempt=2, terminating=(FITS,)), earlier=OURS), None, False, id="an earlier one fits"),
        pytest.param(bound(requested(), Broken(STOCKOUT)), Reason.STOCKOUT, False, id="its slice has just failed"),
        pytest.param(bound(requested(), Unowned("x")), Reason.UNOWNED_POOL, False, id="another's pool has its name"),
        pytest.param(bound(claim(runs_on=ELSEWHERE)), Reason.RUNS_ELSEWHERE, False, id="its Job runs elsewhere"),
        pytest.param(
            bound(claim(refusal=Refusal(reason=Reason.NOT_ALLOWED, message="no"))),
            Reason.NOT_ALLOWED,
            False,
            id="it is not allowed",
        ),
        pytest.param(
            bound(claim(phase=Phase.WAITING, reason=Reason.STOCKOUT, retry_at=NOW + MINUTE)),
            Reason.STOCKOUT,
            False,
            id="it may not be tried yet",
        ),
        pytest.param(
            bound(claim(demand_confirmed_at=NOW - HOUR)), Reason.DEMAND_STALE, False, id="nobody is known to wait"
        ),
        pytest.param(
            bound(claim(attempt=LAST_ATTEMPT + 1)), Reason.ATTEMPTS_EXHAUSTED, False, id="every name was used"
        ),
        pytest.param(
            bound(claim(attempt=2, terminating=(FITS,)), earlier=Unreadable("503")),
            Reason.EARLIER_POOL_UNREADABLE,
            False,
            id="an earlier one may fit, which is not known",
        ),
        pytest.param(bound(claim(), known=heard()), Reason.OPERATION_LIMIT, False, id="no slot is free"),
        pytest.param(
            bound(claim(), known=heard(shortage=SHORT)), Reason.AWAITING_TURN, False, id="it is not its turn to try"
        ),
    ],
)
def test_a_claim_says_why_no_slice_of_it_stands_or_that_one_is_made(
    given_to: Bound, reason: Reason | None, is_made: bool
) -> None:
    assert (given_to.waits and given_to.waits.reason) is reason
    assert (given_to.waits is not None and given_to.waits.creates) is is_made


def test_its_job_is_on_an_earlier_slice_before_its_own_one_has_failed() -> None:
    """Who runs has a slice, whatever became of the one that was being made meanwhile."""
    record = requested(attempt=2, terminating=(in_use(OWN),))
    given_to = bound(record, Broken(STOCKOUT), earlier=OURS)
    assert (given_to.case.record.attempt, given_to.waits) == (1, None)


readable = observations.filter(lambda seen: not isinstance(seen, Unreadable))


def numbers(record: SliceRecord) -> list[int]:
    return [each.number for each in record.all_attempts]


@given(situations(current=readable))
def test_binding_loses_no_slice_and_names_none_twice(case: Situation) -> None:
    assume(why_frozen(case) is None)
    before, after = case.record, bind(case).case.record
    named = numbers(after)
    requested_before = {each.number for each in before.all_attempts if each.create_requested_at is not None}
    assert len(set(named)) == len(named)
    assert requested_before <= set(named)
    assert all(new > before.attempts for new in set(named) - set(numbers(before)))
    assert after.attempts >= max(named)


@given(situations(current=readable))
def test_a_claim_that_waits_has_no_slice_that_stands_and_one_that_has_a_slice_does_not_wait(case: Situation) -> None:
    assume(why_frozen(case) is None)
    given_to = bind(case)
    stands = not isinstance(given_to.case.seen.current, Absent | Begun)
    assert (given_to.waits is None) is (stands or not case.record.wanted)


@given(situations(current=readable))
def test_nothing_is_made_that_nobody_was_lately_known_to_wait_for_or_that_is_refused(case: Situation) -> None:
    assume(why_frozen(case) is None)
    given_to = bind(case)
    if given_to.waits is not None and given_to.waits.creates:
        assert case.record.wanted
        assert case.waiting
        assert case.record.refusal is None
        assert not given_to.case.runs_elsewhere
        assert isinstance(given_to.case.seen.current, Absent | Begun)


@given(situations(current=readable))
def test_a_slice_that_its_own_job_uses_stays_its_own_while_it_is_needed(case: Situation) -> None:
    """Unless somebody is deleting it already."""
    assume(why_frozen(case) is None)
    record = case.record
    stands = isinstance(case.seen.current, type(OURS) | Creating | Broken)
    if record.wanted and record.on(record.current.hosts) and stands and record.current.create_requested_at:
        assert bind(case).case.record.attempt == record.attempt


@given(situations(current=readable), st.booleans())
def test_binding_again_changes_nothing(case: Situation, has_slots: bool) -> None:
    """It is decided upon what was seen, not upon what it decided before: a message that comes twice is harmless."""
    assume(why_frozen(case) is None)
    slots = {number: number for number in range(200)} if has_slots else {}
    case = replace(case, known=replace(case.known, slots=slots))
    once = bind(case)
    twice = bind(once.case)
    assert numbers(twice.case.record) == numbers(once.case.record)
    assert twice.opened == ()

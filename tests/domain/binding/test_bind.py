"""Which slice a claim has, and why it has none: a row per row of the table, and what is true of every case."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, a_record, had, heard, settings, some_hosts, with_fields
from tests.domain.cases import (
    GUEST,
    HOUR,
    OURS,
    STOCKOUT,
    every_record,
    observations,
    ready,
    requested,
    situations,
    was_seen,
)
from tpu_slices.domain.model.observations import (
    Absent,
    Begun,
    Broken,
    Busy,
    Creating,
    Deleting,
    Observation,
    Observed,
    Running,
    Unowned,
    Unreadable,
)
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import LAST_ATTEMPT
from tpu_slices.domain.reconciling.binding import Bound, bind
from tpu_slices.domain.reconciling.case import Known, Situation
from tpu_slices.domain.reconciling.ending import is_gone
from tpu_slices.domain.reconciling.frozen import why_frozen
from tpu_slices.domain.reconciling.taking import may_be_regained, regained
from tpu_slices.domain.records.awaited import Shortage
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.domain.records.slices import Desire, SliceRecord

WITH_SLOT = heard(slots={number: number for number in range(200)})
SHORT = Shortage(at=NOW - MINUTE, reason=Reason.STOCKOUT)


def bound(record: SliceRecord, found: Observation | None = None, known: Known = WITH_SLOT) -> Bound:
    return bind(Situation(record, Observed(found or Absent()), NOW, settings(), known))


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
        pytest.param(bound(requested(), Broken(STOCKOUT)), Reason.STOCKOUT, False, id="its slice has just failed"),
        pytest.param(bound(requested(), Unowned("x")), Reason.UNOWNED_POOL, False, id="another's pool has its name"),
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


@pytest.mark.parametrize(
    ("record", "found", "empty"),
    [
        pytest.param(requested(seen=was_seen(Creating())), Broken(STOCKOUT), True, id="its creation failed"),
        pytest.param(ready(hosts=some_hosts(usable=0)), Broken(STOCKOUT), False, id="it broke later, and has hosts"),
        pytest.param(
            requested(hosts=some_hosts(usable=0, joined=0, occupants=(GUEST,))),
            Broken(STOCKOUT),
            False,
            id="others are said to be on it",
        ),
        pytest.param(ready(), Deleting(), False, id="somebody deletes it"),
    ],
)
def test_a_slice_that_leaves_its_claim_holds_chips_unless_its_creation_failed_without_a_host(
    record: SliceRecord, found: Observation, *, empty: bool
) -> None:
    given_to = bound(record, found)
    assert given_to.let_go is not None
    assert (given_to.let_go.current.empty, given_to.let_go.chips_bought) == (empty, 0 if empty else 16)


readable = observations.filter(lambda seen: not isinstance(seen, Unreadable))


claims = every_record.filter(lambda record: not record.unclaimed)


def numbers(bound: Bound) -> list[int]:
    """Return the numbers of the slices that a claim has or had, and that are not known to be gone."""
    record = bound.case.record
    return [*had(record), *([record.attempt] if record.current.create_requested_at is not None else [])]


@given(situations(claims, current=readable))
def test_binding_loses_no_slice_and_names_none_twice(case: Situation) -> None:
    assume(why_frozen(case) is None)
    before, given_to = case.record, bind(case)
    after, named = given_to.case.record, numbers(given_to)
    stood = {before.attempt} if not is_gone(case) else set()
    assert len(set(named)) == len(named)
    assert {*had(before), *stood} <= set(named)
    assert after.attempt == before.attempt or after.attempt > before.claim.tried
    assert after.claim.tried >= max([after.attempt, *had(after)])


@given(situations(claims, current=readable))
def test_a_slice_that_its_claim_has_no_more_has_a_record_while_it_is_not_gone(case: Situation) -> None:
    assume(why_frozen(case) is None)
    given_to = bind(case)
    passed_on = given_to.case.record.attempt != case.record.attempt and not is_gone(case)
    assert (given_to.let_go is not None) is passed_on
    if given_to.let_go is not None:
        assert given_to.let_go.unclaimed
        assert given_to.let_go.goes
        assert given_to.let_go.attempt == case.record.attempt
        assert given_to.let_go.current.hosts == case.record.current.hosts
        operation_runs = case.creates_current or isinstance(case.seen.pool, Deleting)
        slot, kept = case.record.current.slot, given_to.let_go.current.slot
        assert kept == slot or (kept is None and not operation_runs)


@given(situations(claims, current=readable))
def test_a_slice_that_has_just_left_its_claim_is_not_given_back_at_once(case: Situation) -> None:
    """Else the two would take turns as fast as messages are delivered."""
    assume(why_frozen(case) is None)
    given_to = bind(case)
    if given_to.let_go is not None and may_be_regained(given_to.let_go):
        assert regained(given_to.case.record, case.with_record(given_to.let_go, case.seen)) is None


@given(situations(claims, current=readable))
def test_a_claim_that_waits_has_no_slice_that_stands_and_one_that_has_a_slice_does_not_wait(case: Situation) -> None:
    assume(why_frozen(case) is None)
    given_to = bind(case)
    after = given_to.case
    stands = not isinstance(after.seen.pool, Absent | Begun) or after.record.goes
    assert (given_to.waits is None) is (stands or not case.record.wanted)


@given(situations(claims, current=readable))
def test_nothing_is_made_that_nobody_was_lately_known_to_wait_for_or_that_is_refused(case: Situation) -> None:
    assume(why_frozen(case) is None)
    given_to = bind(case)
    if given_to.waits is not None and given_to.waits.creates:
        assert case.record.wanted
        assert case.waiting
        assert case.record.claim.refusal is None
        assert isinstance(given_to.case.seen.pool, Absent | Begun)


@given(situations(claims, current=readable))
def test_a_slice_that_its_own_job_uses_stays_its_own_while_it_is_needed(case: Situation) -> None:
    """Unless somebody is deleting it already."""
    assume(why_frozen(case) is None)
    record = case.record
    stands = isinstance(case.seen.pool, Running | Creating | Broken | Busy)
    deleted = case.order_may_arrive(record.current.delete_requested_at) and record.goes
    if record.wanted and record.occupied and stands and not deleted:
        assert bind(case).case.record.attempt == record.attempt
        assert not bind(case).case.record.goes


@given(situations(claims, current=readable), st.booleans())
def test_binding_again_changes_nothing(case: Situation, has_slots: bool) -> None:
    """It is decided upon what was seen, not upon what it decided before: a message that comes twice is harmless."""
    assume(why_frozen(case) is None)
    slots = {number: number for number in range(200)} if has_slots else {}
    case = replace(case, known=replace(case.known, slots=slots))
    once = bind(case)
    twice = bind(once.case)
    assert (numbers(twice), twice.case.record.goes) == (numbers(once), once.case.record.goes)
    assert (twice.opened, twice.let_go) == ((), None)

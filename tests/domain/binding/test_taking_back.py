"""A slice that goes is its claim's again if that needs it, and one that no claim has is given back: a row per row."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import MINUTE, NOW, a_spec, asked_to_open, had, heard, settings, some_hosts, with_fields
from tests.domain.cases import (
    GUEST,
    GUEST_LEFT,
    HOUR,
    LEFT,
    OTHERS,
    OURS,
    OWN,
    REJECTION,
    SIBLING,
    STOCKOUT,
    going,
    ready,
    requested,
    was_seen,
    with_hosts,
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
)
from tpu_slices.domain.reconciling.binding import Bound, bind
from tpu_slices.domain.reconciling.case import Situation
from tpu_slices.domain.reconciling.decisions import OpenHosts
from tpu_slices.domain.reconciling.taking import may_be_regained, regained
from tpu_slices.domain.records.attempts import Attempt
from tpu_slices.domain.records.slices import Desire, SliceRecord

CLOSED = going().current.hosts


def let_go(**fields: object) -> SliceRecord:
    """Return a claim that a leader waits for, and whose slice goes: nobody is on its hosts, which are closed."""
    return with_fields(requested(hosts=CLOSED, let_go="nobody used it for 30 minutes"), **fields)


def case_of(record: SliceRecord, found: Observation = OURS) -> Situation:
    known = heard(slots={number: number for number in range(9)})
    return Situation(record, Observed(found), NOW, settings(), known)


def bound(record: SliceRecord, found: Observation = OURS) -> Bound:
    return bind(case_of(record, found))


# a slice that goes

KEY = let_go().key
OPENED = (OpenHosts(1, 2, KEY),)
OWN_ON_IT = with_fields(let_go(), hosts=some_hosts(occupants=(OWN,)))


@pytest.mark.parametrize(
    ("record", "opened"),
    [
        pytest.param(let_go(), OPENED, id="its leader waits"),
        pytest.param(let_go(hosts=some_hosts()), (), id="its leader waits, and its hosts were not closed"),
        pytest.param(with_hosts(let_go(), departures=LEFT), OPENED, id="its Job left a moment ago, and waits"),
        pytest.param(OWN_ON_IT, (), id="its Job is on it"),
        pytest.param(with_fields(OWN_ON_IT, demand_confirmed_at=None), (), id="its Job is on it, and does not wait"),
        pytest.param(with_hosts(OWN_ON_IT, occupants=(OWN, GUEST)), (), id="its Job and others are on it"),
        pytest.param(
            with_fields(OWN_ON_IT, delete_requested_at=NOW - HOUR), (), id="its deletion was asked for long ago in vain"
        ),
    ],
)
def test_a_slice_that_goes_is_its_claims_again_if_that_needs_it(
    record: SliceRecord, opened: tuple[OpenHosts, ...]
) -> None:
    again = bound(record)
    assert (again.case.record.attempt, again.case.record.goes) == (1, False)
    assert (again.let_go, again.opened, again.waits) == (None, opened, None)


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(let_go(demand_confirmed_at=NOW - HOUR), id="no leader waits"),
        pytest.param(let_go(desire=Desire.ABSENT), id="it is not needed"),
        pytest.param(with_fields(OWN_ON_IT, desire=Desire.ABSENT), id="its Job is on it, and it is not needed"),
    ],
)
def test_a_slice_that_nobody_needs_goes_on_going(record: SliceRecord) -> None:
    still = bound(record)
    assert (still.case.record.attempt, still.case.record.goes) == (1, True)
    assert (still.let_go, still.opened, still.waits) == (None, (), None)


@pytest.mark.parametrize(
    ("record", "found", "fits"),
    [
        pytest.param(let_go(delete_requested_at=NOW), OURS, False, id="it is being deleted"),
        pytest.param(let_go(delete_requested_at=NOW - HOUR), Deleting(), False, id="it is seen to be deleted"),
        pytest.param(let_go(seen=was_seen(OTHERS)), OURS, True, id="made for another request"),
        pytest.param(with_hosts(let_go(), occupants=(GUEST,)), OURS, True, id="others are on it"),
        pytest.param(with_hosts(let_go(), occupants=(SIBLING,)), OURS, True, id="a sibling is on it"),
        pytest.param(with_hosts(let_go(), departures=GUEST_LEFT), OURS, True, id="others may restart on it"),
        pytest.param(let_go(), Broken(STOCKOUT), True, id="it broke"),
        pytest.param(let_go(), Creating(operation_runs=False), True, id="its creation was lost"),
    ],
)
def test_a_claim_that_cannot_have_its_slice_again_has_the_next_and_that_goes_by_itself(
    record: SliceRecord, found: Observation, *, fits: bool
) -> None:
    after = bound(record, found)
    assert after.let_go is not None
    assert (after.let_go.id, after.let_go.attempt, after.let_go.fits) == (record.id, 1, fits)
    assert (after.case.record.attempt, had(after.case.record), after.case.record.goes) == (2, (1,), False)
    assert after.waits is not None


@pytest.mark.parametrize("found", [OURS, Creating(), Busy("repair"), Running()], ids=repr)
def test_a_slice_is_had_again_only_if_it_can_serve(found: Observation) -> None:
    assert bound(let_go(), found).let_go is None


def test_a_slice_that_is_gone_leaves_no_record_and_its_name_is_not_used_again() -> None:
    after = bound(let_go(delete_requested_at=NOW - MINUTE), Absent())
    assert after.let_go is None
    assert (after.case.record.attempt, after.case.record.claim.tried, had(after.case.record)) == (2, 2, ())


def test_what_was_done_about_its_end_counts_no_more() -> None:
    record = let_go(operation="operation-1", slot=3, spared_until=NOW, refused="no", cancel_refused="no")
    after = bound(record).case.record.current
    hosts = some_hosts(usable=0, closed=4, vacant_since=None, asked=asked_to_open(NOW, number=2, key=KEY), answered=1)
    assert after == replace(
        record.current, refused="", cancel_refused="", hosts=replace(hosts, vacant_since=after.hosts.vacant_since)
    )


# the next one


def test_the_next_slice_starts_without_the_state_of_the_last() -> None:
    record = requested(operation="operation-1", slot=3, rebuild_allowed=True, rejection=REJECTION, earlier=(4,))
    stands = record.let_go_of("it failed", NOW)
    after = record.with_next(stands.id)
    assert after.current == Attempt(number=5)
    assert (after.claim.tried, had(after), after.claim.rebuild_allowed, after.claim.rejection) == (
        5,
        (4, 1),
        False,
        None,
    )
    assert (stands.current.operation, stands.current.slot, stands.current.ordered) == ("operation-1", 3, a_spec())
    assert (stands.wanted, stands.goes, stands.why_it_goes) == (False, True, "it failed")


def test_a_slice_of_which_no_host_exists_or_will_holds_no_chips() -> None:
    record = requested()
    assert record.let_go_of("", NOW).chips_bought == 16
    assert record.with_current(empty=True).let_go_of("", NOW).chips_bought == 0


# given back

TTL, SECOND = settings().limits.demand_ttl, MINUTE / 60
NEXT = requested(attempt=2, create_requested_at=None, earlier=(1,))
FREE = going(fits=True, seen=was_seen(OURS))
WITH_OWN = with_fields(FREE, hosts=some_hosts(occupants=(OWN,)), fits=False)


def given_back(claim: SliceRecord, slice_: SliceRecord) -> bool:
    return may_be_regained(slice_) and regained(claim, case_of(slice_)) is not None


@pytest.mark.parametrize(
    ("claim", "slice_", "expected"),
    [
        pytest.param(NEXT, WITH_OWN, True, id="its Job is on it"),
        pytest.param(requested(attempt=2), WITH_OWN, True, id="its Job is on it, and another is being made"),
        pytest.param(
            ready(attempt=2, hosts=some_hosts(occupants=(OWN,))), WITH_OWN, False, id="its Job is on another one too"
        ),
        pytest.param(with_fields(NEXT, desire=Desire.ABSENT), WITH_OWN, False, id="the claim is not needed"),
        pytest.param(with_fields(NEXT, hold=True), WITH_OWN, False, id="the claim is held"),
        pytest.param(NEXT, with_fields(WITH_OWN, hold=True), False, id="the slice is held"),
        pytest.param(NEXT, with_fields(WITH_OWN, release_requested=True), False, id="an operator released the slice"),
        pytest.param(NEXT, with_fields(FREE, release_requested=True), False, id="an operator released the free slice"),
        pytest.param(NEXT, with_fields(WITH_OWN, delete_requested_at=NOW), False, id="it is being deleted"),
        pytest.param(NEXT, with_fields(WITH_OWN, seen=was_seen(Deleting())), False, id="somebody deletes it"),
        pytest.param(NEXT, with_fields(WITH_OWN, seen=was_seen(Begun("its policy"))), False, id="parts of it stand"),
        pytest.param(NEXT, with_fields(WITH_OWN, seen=was_seen(Broken(STOCKOUT))), True, id="it broke, and is used"),
        pytest.param(
            NEXT, with_fields(WITH_OWN, delete_requested_at=NOW - HOUR), True, id="its deletion came to nothing"
        ),
        pytest.param(
            NEXT, with_fields(FREE, delete_requested_at=NOW - HOUR), False, id="free, and its deletion came to nothing"
        ),
        pytest.param(NEXT, FREE, True, id="the claim waits, and nobody uses it"),
        pytest.param(NEXT, with_hosts(FREE, usable=2, closed=2), True, id="some hosts are closed, some not yet"),
        pytest.param(with_fields(NEXT, demand_confirmed_at=NOW - TTL), FREE, True, id="it waited a while ago"),
        pytest.param(
            with_fields(NEXT, demand_confirmed_at=NOW - TTL - SECOND), FREE, False, id="it waited too long ago"
        ),
        pytest.param(NEXT, with_fields(FREE, fits=False), False, id="something was wrong with it"),
        pytest.param(requested(attempt=2), FREE, False, id="another is being made"),
        pytest.param(with_fields(NEXT, demand_confirmed_at=NOW - HOUR), FREE, False, id="the claim does not wait"),
        pytest.param(with_fields(NEXT, spec=a_spec(hosts=8, fingerprint="v1-x")), FREE, False, id="another request"),
        pytest.param(NEXT, with_hosts(FREE, closed=2), False, id="hosts of it are missing"),
        pytest.param(NEXT, with_fields(FREE, seen=was_seen(Broken(STOCKOUT))), False, id="it broke"),
        pytest.param(NEXT, with_hosts(FREE, occupants=(GUEST,)), False, id="others are on it"),
        pytest.param(NEXT, with_hosts(FREE, departures=GUEST_LEFT), False, id="others may restart on it"),
    ],
)
def test_a_slice_that_no_claim_has_is_given_back_if_its_job_is_there_or_waits_for_it(
    claim: SliceRecord, slice_: SliceRecord, *, expected: bool
) -> None:
    assert given_back(claim, slice_) is expected


def test_what_the_claim_had_meanwhile_goes_by_itself() -> None:
    claim = requested(attempt=2, earlier=(1,), rejection=REJECTION, rebuild_allowed=True, slot=4)
    found = regained(claim, case_of(WITH_OWN))
    assert found is not None
    after, meanwhile = found
    assert meanwhile is not None
    assert (after.name, after.attempt, had(after), after.claim.tried) == (claim.name, 1, (2,), 2)
    assert (after.current.hosts.occupants, after.goes) == ((OWN,), False)
    assert (after.claim.rejection, after.claim.rebuild_allowed, after.slot_awaited) == (None, False, None)
    assert (after.next_reconcile_at, after.look_at) == (NOW, NOW)
    assert (meanwhile.id, meanwhile.attempt, meanwhile.current.slot) == (f"{claim.maker}-2", 2, 4)


def test_the_other_slices_that_the_claim_had_stay_on_its_record() -> None:
    found = regained(requested(attempt=4, earlier=(1, 3)), case_of(WITH_OWN))
    assert found is not None
    assert had(found[0]) == (3, 4)


def test_a_number_that_was_never_requested_is_left_out() -> None:
    found = regained(NEXT, case_of(WITH_OWN))
    assert found is not None
    after, meanwhile = found
    assert (after.attempt, after.claim.tried, had(after), meanwhile) == (1, 2, (), None)

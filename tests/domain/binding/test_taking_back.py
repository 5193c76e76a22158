"""Attempts that were given up are taken back if they serve the slice's Job best: one row per row of the table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import MINUTE, NOW, a_record, a_spec, asked_to_open, heard, settings, some_hosts, with_fields
from tests.domain.cases import (
    ELSEWHERE,
    GUEST,
    GUEST_LEFT,
    HOUR,
    LEFT,
    LOST,
    OTHERS,
    OURS,
    OWN,
    REJECTION,
    SIBLING,
    STOCKOUT,
    in_use,
    requested,
    seen,
    terminating,
    was_seen,
    with_hosts,
)
from tpu_slices.domain.model.observations import (
    Absent,
    Broken,
    Busy,
    Creating,
    Deleting,
    Observation,
    Running,
    Unowned,
    Unreadable,
)
from tpu_slices.domain.reconciling.binding import bind, given_up
from tpu_slices.domain.reconciling.case import Known, Situation
from tpu_slices.domain.reconciling.decisions import Action, OpenHosts
from tpu_slices.domain.records.attempts import Attempt
from tpu_slices.domain.records.slices import Desire


def case_of(*attempts: Attempt, current: Observation | None = None, **changes: object) -> Situation:
    """Return the case of a slice whose second attempt was not requested, and whose first pool runs."""
    known = changes.pop("known", heard())
    assert isinstance(known, Known)
    record = with_fields(a_record(attempt=2, terminating=attempts), **changes)
    found = {f"a{each.number}": OURS for each in attempts}
    return Situation(record, seen(current or Absent(), **found), NOW, settings(), known)


# given up


def test_the_next_attempt_starts_without_the_state_of_the_last() -> None:
    record = requested(
        operation="operation-1",
        slot=3,
        rebuild_allowed=True,
        hosts=some_hosts(occupants=(OWN,)),
        spared_until=NOW,
        terminating=(terminating(number=4),),
    )
    after = given_up(record, fits=True)
    assert after == replace(
        requested(attempt=5, create_requested_at=None, terminating=()),
        terminating=(
            terminating(number=4),
            Attempt(
                number=1,
                ordered=a_spec(),
                create_requested_at=record.current.create_requested_at,
                operation="operation-1",
                slot=3,
                hosts=record.current.hosts,
                spared_until=NOW,
                fits=True,
            ),
        ),
    )


def test_an_attempt_of_which_no_host_exists_or_will_holds_no_chips() -> None:
    assert given_up(requested(), fits=False).chips_bought == 16
    assert given_up(requested(), fits=False, empty=True).chips_bought == 0


# taken back

FITS = terminating(fits=True)
OWN_ON_IT = in_use(OWN)
TAKEN_BACK = (1, (OpenHosts(1, 2),))
NOT_TAKEN_BACK = (2, ())


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        # its Job runs on it
        pytest.param(case_of(OWN_ON_IT), (1, ()), id="its Job runs on it, whether it fits or not"),
        pytest.param(
            case_of(with_hosts(FITS, occupants=(OWN,))),
            TAKEN_BACK,
            id="its Job runs on it, and it was closed",
        ),
        pytest.param(case_of(OWN_ON_IT, demand_confirmed_at=None), (1, ()), id="its Job runs on it, and does not wait"),
        pytest.param(case_of(in_use(OWN, GUEST)), (1, ()), id="its Job and others run on it"),
        pytest.param(
            case_of(OWN_ON_IT, current=OURS, create_requested_at=NOW - HOUR, hosts=some_hosts(occupants=(GUEST,))),
            (1, ()),
            id="its Job runs on it, others on the current one",
        ),
        pytest.param(
            case_of(OWN_ON_IT, current=OURS, create_requested_at=NOW - HOUR, hosts=some_hosts(occupants=(OWN,))),
            NOT_TAKEN_BACK,
            id="its Job runs on the current one as well",
        ),
        pytest.param(
            case_of(OWN_ON_IT, desire=Desire.ABSENT),
            NOT_TAKEN_BACK,
            id="its Job runs on it, but the slice is not needed",
        ),
        pytest.param(
            case_of(replace(OWN_ON_IT, delete_requested_at=NOW)),
            NOT_TAKEN_BACK,
            id="its Job runs on it, but it is being deleted",
        ),
        # it serves again
        pytest.param(case_of(FITS), TAKEN_BACK, id="fits, and its leader waits"),
        pytest.param(case_of(replace(FITS, hosts=some_hosts())), (1, ()), id="fits, and was not closed"),
        pytest.param(case_of(replace(FITS, fits=False)), NOT_TAKEN_BACK, id="given up for good"),
        pytest.param(case_of(replace(FITS, seen=was_seen(OTHERS))), NOT_TAKEN_BACK, id="made for another request"),
        pytest.param(case_of(FITS, spec=None), NOT_TAKEN_BACK, id="the request is not known"),
        pytest.param(case_of(FITS, demand_confirmed_at=NOW - HOUR), NOT_TAKEN_BACK, id="its leader does not wait"),
        pytest.param(case_of(FITS, runs_on=ELSEWHERE), NOT_TAKEN_BACK, id="its Job runs elsewhere"),
        pytest.param(
            case_of(FITS, create_requested_at=NOW, current=Creating()), NOT_TAKEN_BACK, id="another is being created"
        ),
        pytest.param(case_of(replace(FITS, delete_requested_at=NOW)), NOT_TAKEN_BACK, id="it is being deleted"),
        pytest.param(case_of(in_use(GUEST, fits=True)), NOT_TAKEN_BACK, id="others run on it"),
        pytest.param(case_of(in_use(SIBLING, fits=True)), NOT_TAKEN_BACK, id="a sibling Job runs on it"),
        pytest.param(
            case_of(with_hosts(FITS, departures=GUEST_LEFT)),
            NOT_TAKEN_BACK,
            id="others may restart on it",
        ),
        pytest.param(case_of(with_hosts(FITS, departures=LEFT)), TAKEN_BACK, id="its Job left a moment ago"),
    ],
)
def test_an_earlier_attempt_is_taken_back_if_it_serves_the_job_best(
    case: Situation, expected: tuple[int, tuple[Action, ...]]
) -> None:
    bound = bind(case)
    assert (bound.case.record.attempt, bound.opened) == expected


@pytest.mark.parametrize(
    ("found", "serves", "in_use_too"),
    [
        (Absent(), False, False),
        (Creating(), True, True),
        (LOST, False, True),
        (OURS, True, True),
        (Busy("repair"), True, True),
        (Broken(STOCKOUT), False, True),
        (Deleting(), False, False),
        (Unowned("x"), False, False),
        (Unreadable("503"), False, False),
    ],
    ids=repr,
)
def test_an_earlier_attempt_is_taken_back_only_from_what_can_serve(
    found: Observation, serves: bool, in_use_too: bool
) -> None:
    for attempt, expected in ((FITS, serves), (OWN_ON_IT, in_use_too)):
        case = replace(case_of(attempt), seen=seen(Absent(), a1=found))
        assert (bind(case).case.record.attempt == 1) is expected


def test_the_attempt_on_which_its_job_runs_comes_before_one_that_would_serve() -> None:
    case = case_of(OWN_ON_IT, replace(FITS, number=2), attempt=3, attempts=3)
    assert bind(case).case.record.attempt == 1


def test_what_is_taken_back_is_the_attempt_as_it_was_and_its_hosts_are_asked_to_be_opened() -> None:
    attempt = replace(FITS, operation="operation-1", slot=3, spared_until=NOW)
    case = bind(case_of(attempt, retry_at=NOW + MINUTE)).case
    hosts = some_hosts(usable=0, closed=4, vacant_since=NOW, asked=asked_to_open(NOW, number=2), answered=1)
    after = requested(operation="operation-1", slot=3, spared_until=NOW, hosts=hosts, attempts=2, ordered=a_spec())
    assert replace(case.record, retry_at=None, phase=after.phase) == after
    assert case.seen == seen(OURS)


def test_the_current_attempt_stays_on_record_when_another_takes_its_place() -> None:
    case = case_of(OWN_ON_IT, terminating(number=3), current=OURS, create_requested_at=NOW - MINUTE, attempts=4)
    after = bind(replace(case, seen=seen(OURS, a1=Running(), a3=Deleting()))).case
    assert [(each.number, each.fits) for each in after.record.terminating] == [(3, False), (2, True)]
    assert after.seen == seen(Running(), a2=OURS, a3=Deleting())
    assert given_up(after.record, fits=True).attempt == 5


def test_a_slice_whose_job_uses_it_after_all_is_no_longer_rejected() -> None:
    assert bind(case_of(OWN_ON_IT, rejection=REJECTION)).case.record.rejection is None

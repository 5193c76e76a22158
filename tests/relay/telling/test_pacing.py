from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from relay.agenda import Timing
from relay.telling.pacing import Pace
from tests.relay.watched import START

QUIET = 61.0


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def seconds(time: datetime) -> float:
    return (time - START).total_seconds()


def renewed(*times: float) -> Pace:
    """Return the pace of a workload that was renewed at these seconds."""
    pace = Pace(Timing())
    for each in times:
        pace = pace.renewed(at(each))
    return pace


def test_the_first_renewal_may_be_told_at_once() -> None:
    assert renewed().renewal_due(at(7)) == at(7)


def test_who_wants_renewals_all_the_time_gets_them_after_pauses_that_double_up_to_five_minutes() -> None:
    pace, times, now = Pace(Timing()), [], START
    for _ in range(14):
        now = pace.renewal_due(now)
        times.append(seconds(now))
        pace = pace.renewed(now)
    assert times == [0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 811, 1111, 1411, 1711]


def test_a_renewal_that_comes_later_than_its_pause_waits_for_nothing() -> None:
    assert renewed(0, 1, 3).renewal_due(at(9)) == at(9)


@pytest.mark.parametrize(
    ("times", "next_wait"),
    [
        ((0,), 1),
        ((0, QUIET), 1),
        ((0, 59), 2),
        ((0, 1, 3, 7, 15, 31, 63), 64),
        ((0, 1, 3, 7, 15, 31, 63, 63 + 128), 128),
        ((0, 1, 3, 7, 15, 31, 63, 63 + 129), 1),
    ],
    ids=["the first", "after a minute", "within a minute", "of many", "within two pauses", "after two pauses"],
)
def test_quiet_of_two_pauses_and_a_minute_lets_a_workload_begin_anew(
    times: tuple[float, ...], next_wait: float
) -> None:
    last = times[-1]
    assert renewed(*times).renewal_due(at(last)) == at(last + next_wait)


def test_jobs_that_were_told_before_join_a_renewal_ever_later_the_longer_they_come() -> None:
    pace, now, joined = renewed(0), START, []
    while now < at(600):
        now = pace.joining_due(now)
        joined.append(seconds(now))
        pace = pace.joined(now)
    waits = [later - earlier for earlier, later in pairwise(joined)]
    assert waits[:8] == [1.0] * 8
    assert waits == sorted(waits)
    assert waits[-1] == 30
    assert len(joined) == 50


def test_who_joins_a_renewal_is_not_quiet() -> None:
    pace = renewed(0).joined(at(50))
    assert (pace.is_quiet(at(100)), pace.is_quiet(at(50 + QUIET))) == (False, True)


def test_changes_are_counted_from_the_first_one_after_quiet() -> None:
    pace = Pace(Timing())
    for each in (0, 100, 130, 160):
        pace = pace.changed(at(each))
    assert (pace.changes, pace.changing_since) == (3, at(100))

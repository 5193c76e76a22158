"""A slice of a gang that stands is not let go before its Job has begun, as long as others of the gang run."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.builders import MINUTE, NOW, a_jobset, an_occupant, heard, settings, some_hosts
from tests.domain.cases import OURS, ready, seen
from tests.domain.gangs.test_deciding import a_case, a_gang, standing
from tpu_slices.domain.gangs.deciding import decided as settled
from tpu_slices.domain.gangs.members import Members
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.records.gangs import GangState
from tpu_slices.domain.records.hosts import Departure
from tpu_slices.domain.records.slices import SliceRecord

STOOD_FOR = settings().limits.gang_hold_at_most


def decided(stands_for: timedelta, vacant_for: timedelta | None = None, *, runs: bool = True) -> SliceRecord:
    """Return a slice of a gang of which others run, or none, that has stood for so long, as is decided on it."""
    stands = a_gang(state=GangState.STANDS, state_since=NOW - stands_for, ran=True, runs=runs)
    workload = a_jobset(demand={}, gangs={"all": stands})
    slice_ = ready(stands_for + 30 * MINUTE)
    if vacant_for is not None:
        slice_ = slice_.with_current(hosts=some_hosts(vacant_since=NOW - vacant_for))
    known = heard(workloads={workload.owner.uid: workload})
    return decide(slice_, seen(OURS), NOW, settings(), known).record


@pytest.mark.parametrize(
    ("runs", "vacant_for", "stands_for", "goes"),
    [
        pytest.param(True, None, 60 * MINUTE, False, id="its Job has not begun"),
        pytest.param(False, None, 60 * MINUTE, True, id="no Job runs"),
        pytest.param(True, timedelta(minutes=40), 60 * MINUTE, True, id="its Job left"),
        pytest.param(True, None, STOOD_FOR, True, id="its Job has not begun for so long that it may run elsewhere"),
    ],
)
def test_it_waits_for_its_job_while_others_run(
    runs: bool, vacant_for: timedelta | None, stands_for: timedelta, goes: bool
) -> None:
    assert decided(stands_for, vacant_for, runs=runs).goes is goes


@pytest.mark.parametrize(
    ("left", "runs"), [(MINUTE, True), (settings().limits.restart_grace, False), (None, False)], ids=str
)
def test_others_run_while_they_may_restart_where_they_left(left: timedelta | None, *, runs: bool) -> None:
    gone = () if left is None else (Departure(user=an_occupant(), at=NOW - left),)
    first, later = standing(1, hosts=some_hosts(departures=gone)), standing(1, 1)
    case = a_case(a_gang(claims=2, state=GangState.STANDS, ran=True, runs=True), Members(standing=(*first, *later)))
    assert settled(case).runs is runs


def test_it_is_looked_at_again_once_it_may_go() -> None:
    assert decided(60 * MINUTE).next_reconcile_at == NOW - 60 * MINUTE + STOOD_FOR

"""Where Jobs run that are on the hosts of other slices, and who holds the chips."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import CLUSTER, MINUTE, NOW, a_job, a_record, an_occupant, some_hosts
from tests.domain.cases import GUEST, HOUR, OWN, SIBLING, requested, terminating
from tpu_slices.domain.model.facts import Occupant
from tpu_slices.domain.model.hosts import Departure
from tpu_slices.domain.model.records import RunsOn, SliceRecord
from tpu_slices.domain.reconciling.occupancy import moved, with_place

LATER = NOW + 5 * MINUTE
OTHER = an_occupant("gemma")
PLACE = RunsOn(slice_id=a_record(job=a_job(job_index=9)).id, attempt=1, pod_uid="pod-1", chips=16, since=NOW)


def own_slice(occupant: Occupant) -> SliceRecord:
    return SliceRecord.of(occupant.workload_job(CLUSTER), NOW)


@pytest.mark.parametrize(
    ("before", "now", "concerned"),
    [
        pytest.param((), (GUEST,), [GUEST], id="came"),
        pytest.param((GUEST,), (), [GUEST], id="left"),
        pytest.param((GUEST,), (OTHER,), [GUEST, OTHER], id="one left, another came"),
        pytest.param((GUEST,), (GUEST,), [], id="stays"),
        pytest.param((), (OWN,), [], id="its own Job came"),
        pytest.param((OWN, GUEST), (GUEST,), [], id="its own Job left"),
        pytest.param((), (SIBLING,), [], id="a sibling came: it has a slice like this one"),
    ],
)
def test_a_report_concerns_the_slices_whose_jobs_came_or_left(
    before: tuple[Occupant, ...], now: tuple[Occupant, ...], concerned: list[Occupant]
) -> None:
    found = moved(a_record(), some_hosts(occupants=before), some_hosts(occupants=now))
    assert found == {own_slice(each).id: each for each in concerned}


def test_who_left_before_is_concerned_once_another_comes() -> None:
    vacated = some_hosts(departures=(Departure(user=GUEST, at=NOW - HOUR),))
    assert moved(a_record(), vacated, some_hosts(usable=3)) == {}
    assert moved(a_record(), vacated, some_hosts(occupants=(OTHER,))) == {
        own_slice(GUEST).id: GUEST,
        own_slice(OTHER).id: OTHER,
    }
    assert moved(a_record(), vacated, some_hosts(occupants=(OWN,))) == {own_slice(GUEST).id: GUEST}


def host(*occupants: Occupant) -> SliceRecord:
    """Return the slice on whose hosts these Jobs are, at its second attempt."""
    return requested(attempt=2, hosts=some_hosts(occupants=occupants), terminating=(terminating(chips=8),))


HERE = RunsOn(slice_id=a_record().id, attempt=2, pod_uid=GUEST.pod_uid, chips=16, since=NOW)
LEFT_AT = NOW + MINUTE
RESTARTED = replace(GUEST, pod_uid="pod-after-restart")


@pytest.mark.parametrize(
    ("place", "slice_", "expected"),
    [
        pytest.param(None, host(GUEST), replace(HERE, since=LATER), id="came"),
        pytest.param(PLACE, host(GUEST), replace(HERE, since=LATER), id="came from elsewhere"),
        pytest.param(replace(HERE, left_at=LEFT_AT), host(GUEST), replace(HERE, since=LATER), id="is there after all"),
        pytest.param(HERE, host(), replace(HERE, left_at=LATER), id="left a moment ago"),
        pytest.param(HERE, host(SIBLING), replace(HERE, left_at=LATER), id="left, and others came at once"),
        pytest.param(replace(HERE, left_at=LEFT_AT), host(SIBLING), None, id="left before, and others came"),
    ],
)
def test_a_jobs_place_follows_its_leader(place: RunsOn | None, slice_: SliceRecord, expected: RunsOn | None) -> None:
    guest = replace(own_slice(GUEST), runs_on=place, next_reconcile_at=None)
    changed = with_place(guest, slice_, 2, GUEST, LATER)
    assert changed is not None
    assert (changed.runs_on, changed.next_reconcile_at) == (expected, LATER)


@pytest.mark.parametrize(
    ("place", "slice_"),
    [
        pytest.param(HERE, host(GUEST), id="stays"),
        pytest.param(replace(HERE, left_at=LEFT_AT), host(), id="left before"),
        pytest.param(None, host(), id="was never there"),
        pytest.param(PLACE, host(), id="runs elsewhere"),
        pytest.param(replace(HERE, attempt=1), host(), id="runs on another attempt"),
    ],
)
def test_nothing_changes_where_a_job_did_not_move(place: RunsOn | None, slice_: SliceRecord) -> None:
    assert with_place(replace(own_slice(GUEST), runs_on=place), slice_, 2, GUEST, LATER) is None


def test_a_place_has_the_chips_of_its_attempt_and_the_pod_that_is_there() -> None:
    earlier = replace(host(), terminating=(terminating(chips=8, hosts=some_hosts(occupants=(RESTARTED,))),))
    changed = with_place(replace(own_slice(GUEST), runs_on=HERE), earlier, 1, RESTARTED, LATER)
    assert changed is not None
    assert changed.runs_on == replace(HERE, attempt=1, chips=8, pod_uid=RESTARTED.pod_uid, since=LATER)


def test_chips_are_held_by_the_slice_whose_job_runs_on_them() -> None:
    lender, borrower = host(GUEST), replace(own_slice(GUEST), runs_on=HERE)
    assert (lender.chips_held, borrower.chips_held) == (8, 16)
    assert host(GUEST, OWN).chips_held == 24
    left = replace(borrower, runs_on=replace(HERE, left_at=NOW))
    assert (host().chips_held, left.chips_held) == (24, 0)

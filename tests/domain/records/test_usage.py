"""How the chips of a slice are used, and what of that stays on record."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, a_record, a_spec, an_occupant, some_hosts, unclaimed, with_fields
from tpu_slices.domain.model.observations import Broken, Creating, Failure, FailureKind, Running, Visible, Witness
from tpu_slices.domain.model.pods import JobPods
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import Capacity, CapacityKind, SliceSpec
from tpu_slices.domain.records.attempts import Seen
from tpu_slices.domain.records.hosts import NO_HOSTS, Hosts
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.spending import chips_held, chips_idle
from tpu_slices.domain.records.usage import HELD, MOST_USAGES, BilledAs, Usage, Use, ended, used_on, with_those_of

CHIPS = a_spec().chips
OCCUPIED = some_hosts(occupants=(an_occupant(),))
VACANT = some_hosts()
GONE_AGAIN = replace(VACANT, usable=0, joined=0)
FAILED = Failure(FailureKind.STOCKOUT, "none left")


def a_slice(reason: Reason, hosts: Hosts = NO_HOSTS, **changes: Any) -> SliceRecord:
    fields = {"create_requested_at": NOW, "ordered": a_spec(), **changes}
    return a_record(phase=reason.phase, reason=reason, hosts=hosts, **fields)


def seen(pool: Visible) -> Seen:
    return Seen(pool=pool, since=NOW, by=Witness.LOOK)


def running(hosts: Hosts, **changes: Any) -> Hosts:
    pods = JobPods(**{"pod_uid": hosts.occupants[0].pod_uid, "needed": 4, "running": 4, **changes})
    return replace(hosts, pods=(pods,))


# one definition


@pytest.mark.parametrize(
    ("record", "use"),
    [
        pytest.param(a_slice(Reason.REQUESTED, create_requested_at=None), Use.WAITING, id="in line"),
        pytest.param(a_slice(Reason.STOCKOUT, create_requested_at=None), Use.WAITING, id="out of stock"),
        pytest.param(a_slice(Reason.CREATION_STARTED), Use.WAITING, id="its creation is requested"),
        pytest.param(a_slice(Reason.CREATING, seen=seen(Creating())), Use.WAITING, id="it is being created"),
        pytest.param(a_slice(Reason.CREATING, VACANT), Use.STARTING, id="its hosts join while it is being created"),
        pytest.param(a_slice(Reason.HOSTS_JOINING, seen=seen(Running())), Use.STARTING, id="GKE has made it"),
        pytest.param(
            a_slice(Reason.AWAITING_CAPACITY, seen=seen(Running(awaiting="none"))), Use.WAITING, id="it awaits hosts"
        ),
        pytest.param(a_slice(Reason.POOL_BROKEN, seen=seen(Broken(FAILED))), Use.WAITING, id="it failed without hosts"),
        pytest.param(a_slice(Reason.CREATING, OCCUPIED), Use.STARTING, id="a leader comes before all hosts do"),
        pytest.param(a_slice(Reason.READY, OCCUPIED), Use.USEFUL, id="a Job is on it"),
        pytest.param(a_slice(Reason.READY, VACANT), Use.IDLE, id="nobody is on it yet"),
        pytest.param(a_slice(Reason.PODS_NOT_RUNNING, OCCUPIED), Use.IDLE, id="pods of the Job on it do not run"),
        pytest.param(a_slice(Reason.HOSTS_LOST, OCCUPIED), Use.STARTING, id="a host is missing under its Job"),
        pytest.param(a_slice(Reason.HOSTS_LOST, running(OCCUPIED)), Use.USEFUL, id="a host was cordoned under its Job"),
        pytest.param(a_slice(Reason.HOSTS_LOST, running(OCCUPIED, running=3)), Use.STARTING, id="and one pod is gone"),
        pytest.param(a_slice(Reason.PREEMPTED, GONE_AGAIN), Use.WAITING, id="its spot hosts were taken"),
        pytest.param(
            a_slice(Reason.GKE_REPAIRS, GONE_AGAIN, seen=seen(Running())), Use.WAITING, id="its hosts are made anew"
        ),
        pytest.param(a_slice(Reason.HELD, OCCUPIED), Use.USEFUL, id="an operator holds it under its Job"),
        pytest.param(a_slice(Reason.HELD, VACANT), Use.IDLE, id="an operator holds it for nobody"),
        pytest.param(a_slice(Reason.HELD, create_requested_at=None), Use.STOPPED, id="an operator holds its claim"),
        pytest.param(a_slice(Reason.NOT_ALLOWED, create_requested_at=None), Use.STOPPED, id="it is refused"),
        pytest.param(a_slice(Reason.NOT_ALLOWED, OCCUPIED), Use.USEFUL, id="it is refused, and runs"),
        pytest.param(a_slice(Reason.OCCUPIED, OCCUPIED), Use.USEFUL, id="it goes, and another Job is on it"),
        pytest.param(a_slice(Reason.DELETION_STARTED, VACANT), Use.IDLE, id="it is being deleted"),
        pytest.param(a_slice(Reason.WARM, VACANT), Use.WARM, id="it is kept for the next claim"),
        pytest.param(a_slice(Reason.CREATION_IN_DOUBT), None, id="it goes, and no host came"),
        pytest.param(a_slice(Reason.RELEASED, VACANT), None, id="it is gone"),
    ],
)  # fmt: skip
def test_how_chips_are_used_follows_from_their_hosts(record: SliceRecord, use: Use | None) -> None:
    assert record.use is use
    assert chips_held(record) == (CHIPS if use in HELD else 0)
    assert chips_idle(record) == (CHIPS if use is Use.IDLE else 0)


def test_a_flex_start_pool_that_runs_has_no_hosts_before_they_are_counted() -> None:
    flexible = replace(a_spec(), capacity=replace(a_spec().capacity, kind=CapacityKind.FLEX_START))
    empty = a_slice(Reason.AWAITING_FLEX_START, ordered=flexible, seen=seen(Running()))
    assert empty.use is Use.WAITING
    assert with_fields(empty, hosts=VACANT).use is Use.STARTING


# what stays on record


def test_creations_that_are_out_of_stock_are_one_wait() -> None:
    record = a_record()
    for minute in range(1, 60, 3):
        record = record.transitioned(NOW + minute * MINUTE, Reason.CREATION_STARTED, "")
        record = record.transitioned(NOW + (minute + 1) * MINUTE, Reason.CREATING, "")
        record = record.transitioned(NOW + (minute + 2) * MINUTE, Reason.STOCKOUT, "none left")
    assert record.usages == (Usage(since=NOW, use=Use.WAITING, chips=CHIPS),)


def test_chips_are_held_from_when_a_host_is_seen() -> None:
    record = a_slice(Reason.CREATING)
    joined = record.with_current(hosts=VACANT).used(NOW + MINUTE)
    assert [(each.use, each.since, each.until) for each in joined.usages] == [
        (Use.WAITING, NOW, NOW + MINUTE),
        (Use.STARTING, NOW + MINUTE, None),
    ]


def test_a_slice_that_is_let_go_begins_its_own_usages() -> None:
    record = a_slice(Reason.READY, OCCUPIED)
    let_go = record.with_current(hosts=VACANT).let_go_of("its Job left it", NOW + MINUTE)
    assert [(each.use, each.since, each.chips) for each in let_go.usages] == [(Use.IDLE, NOW + MINUTE, CHIPS)]


def test_what_is_held_is_known_with_the_place_where_it_is_billed() -> None:
    spot, listed = (a_spec(capacity=Capacity(kind)) for kind in (CapacityKind.SPOT, CapacityKind.ON_DEMAND))
    usages = used_on((), Use.WAITING, spot, NOW)
    usages = used_on(usages, Use.USEFUL, spot, NOW + MINUTE)
    usages = used_on(usages, Use.USEFUL, listed, NOW + 2 * MINUTE)
    zone = a_spec().zone
    assert [each.billed_as for each in usages] == [
        None,
        BilledAs(capacity=CapacityKind.SPOT, zone=zone),
        BilledAs(capacity=CapacityKind.ON_DEMAND, zone=zone),
    ]


def test_a_claim_that_gets_a_slice_which_none_had_is_charged_for_the_time_in_between() -> None:
    slice_ = replace(unclaimed(a_slice(Reason.CLOSING_HOSTS, VACANT)), usages=(), created_at=NOW).used(NOW)
    waits = replace(a_record(), usages=()).used(NOW)
    has = waits.with_slice_of(slice_, NOW + MINUTE, left=None)
    assert [(each.use, each.since - NOW, each.until) for each in has.usages] == [
        (Use.IDLE, timedelta(), NOW + MINUTE),
        (Use.WAITING, timedelta(), NOW + MINUTE),
        (Use.STARTING, MINUTE, None),
    ]


# laws

steps = st.lists(st.tuples(st.integers(-3, 30), st.none() | st.sampled_from(Use), st.integers(0, 64)), max_size=50)


def of_chips(chips: int) -> SliceSpec:
    return a_spec(hosts=chips, chips_per_host=1)


def played(course: list[tuple[int, Use | None, int]]) -> tuple[tuple[Usage, ...], datetime]:
    usages, at = tuple[Usage, ...](), NOW
    for minutes, use, chips in course:
        at += minutes * MINUTE
        usages = used_on(usages, use, of_chips(chips), at)
    return usages, at


@given(steps)
def test_usages_are_bounded_and_only_the_last_one_goes_on(course: list[tuple[int, Use | None, int]]) -> None:
    usages, _ = played(course)
    assert len(usages) <= MOST_USAGES
    assert all(each.until is not None and each.since < each.until for each in usages[:-1])


@given(steps)
def test_the_same_use_again_changes_nothing(course: list[tuple[int, Use | None, int]]) -> None:
    usages, at = played(course)
    for each in usages[-1:]:
        if each.until is None:
            assert used_on(usages, each.use, of_chips(each.chips), at + MINUTE) == usages


@given(steps, steps)
def test_no_chip_hour_is_lost_when_a_slice_is_forgotten(
    claim: list[tuple[int, Use | None, int]], slice_: list[tuple[int, Use | None, int]]
) -> None:
    own, others = played(claim[:15])[0], played(slice_[:15])[0]
    at = NOW + timedelta(days=1)
    assert chip_time(with_those_of(own, others, at), at) == chip_time(own, at) + chip_time(ended(others, at), at)


def chip_time(usages: tuple[Usage, ...], at: datetime) -> timedelta:
    return sum((each.chips * ((each.until or at) - each.since) for each in usages), timedelta())

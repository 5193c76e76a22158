"""When reservations are looked at, which creations may start in them, and what is told of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, a_slot
from tpu_slices.domain.capacity.reservations import (
    BELIEVED_FOR,
    IN_USE,
    LOOKS_IN_VAIN,
    PATIENT,
    SELDOM,
    Demand,
    asked_again,
    ends_soon,
    lack,
    looked,
    nearest,
    next_look,
    place_of,
    room_for,
    state_at,
    told,
    unseen,
    used,
)
from tpu_slices.domain.model.slices import Capacity, CapacityKind
from tpu_slices.domain.records.limiters import CapacityPool
from tpu_slices.domain.records.reservations import Reservation, ReservationPlace, ReservationSeen, ReservationState

HOUR = timedelta(hours=1)
PLACE = ReservationPlace("p", "us-east5-b", "r")
POOL = CapacityPool("us-east5-b/tpu-v6e-slice/r")
WAITS, USES, NOBODY = Demand(waits=True, ours=0), Demand(waits=False, ours=8), Demand(waits=False, ours=0)
STATES = ReservationState


def seen(state: ReservationState = STATES.READY, **changes: Any) -> ReservationSeen:
    return ReservationSeen(**{"state": state, "count": 64, **changes})


def known(state: ReservationState = STATES.READY, looks: int = 0, **changes: Any) -> Reservation:
    about = {
        "ours": changes.pop("ours", 0),
        "error": changes.pop("error", ""),
        "announced": changes.pop("announced", 0),
    }
    return Reservation(
        place=PLACE, seen=seen(state, **changes), seen_at=NOW, needed_at=NOW, next_look_at=NOW, looks=looks, **about
    )


def in_flight(count: int, hosts: int = 4, at: timedelta = MINUTE) -> list[Any]:
    return [
        a_slot(number=each, capacity_pool=POOL, hosts=hosts, taken_at=NOW + at, attempt=each + 1)
        for each in range(count)
    ]


@pytest.mark.parametrize(
    ("changes", "slices", "says"),
    [
        ({"in_use": 16}, 2, "The reservation r has 48 free hosts of 64; 2 slices need 32."),
        ({"in_use": 16}, 1, "The reservation r has 48 free hosts of 64; the slice needs 16."),
        ({"in_use": 60}, 1, "The reservation r has 4 free hosts for what is being created and 16 more: 60 of 64 used,"),
        ({"count": None}, 1, "The reservation r is there, its hosts not counted; the slice needs 16."),
        ({"state": STATES.ENDED}, 1, "The reservation r ended: nothing is asked for in it."),
        ({"state": STATES.UNREADABLE, "detail": "needs a right"}, 1, "cannot be read: needs a right."),
    ],
)
def test_a_plan_is_told_what_a_reservation_has_for_its_slices(changes: dict[str, Any], slices: int, says: str) -> None:
    assert says in room_for(known(**changes), 16, slices, NOW)


@pytest.mark.parametrize(
    ("reservation", "project", "name", "parts"),
    [
        ("r", "p", "r", ("", "")),
        ("projects/q/reservations/r", "q", "r", ("", "")),
        ("r/reservationBlocks/b", "p", "r", ("b", "")),
        ("projects/q/reservations/r/reservationBlocks/b/reservationSubBlocks/s", "q", "r", ("b", "s")),
    ],
)
def test_a_shared_reservation_is_read_in_its_owners_project(
    reservation: str, project: str, name: str, parts: tuple[str, str]
) -> None:
    place = place_of(Capacity(CapacityKind.RESERVATION, reservation), "z", "p")
    assert place == ReservationPlace(project, "z", name, *parts)


@pytest.mark.parametrize(
    "reservation", [None, "", "projects/q/reservations/", "r/blocks/b", "r/reservationBlocks/b/c/d"]
)
def test_what_names_no_reservation_is_read_nowhere(reservation: str | None) -> None:
    assert place_of(Capacity(CapacityKind.RESERVATION, reservation), "z", "p") is None


@pytest.mark.parametrize(
    ("of", "demand", "after"),
    [
        (known(), WAITS, MINUTE),
        (known(looks=LOOKS_IN_VAIN), WAITS, PATIENT),
        (known(), USES, IN_USE),
        (known(), NOBODY, SELDOM),
        (known(ends_at=NOW + 4 * MINUTE), USES, 4 * MINUTE),
        (known(ends_at=NOW + 70 * MINUTE), USES, 10 * MINUTE),
        (known(STATES.PENDING, starts_at=NOW + 30 * MINUTE), WAITS, 30 * MINUTE),
        (known(STATES.PENDING, starts_at=NOW + 13 * HOUR), WAITS, SELDOM),
        (known(STATES.PENDING, starts_at=NOW), WAITS, MINUTE),
        (known(STATES.PENDING, looks=LOOKS_IN_VAIN), WAITS, PATIENT),
        (known(STATES.MISSING), WAITS, PATIENT),
        (known(STATES.MISSING), USES, IN_USE),
        (known(STATES.ENDED), WAITS, SELDOM),
        (known(STATES.UNREADABLE), WAITS, SELDOM),
    ],
)
def test_it_is_looked_at_as_often_as_somebody_needs_it(of: Reservation, demand: Demand, after: timedelta) -> None:
    assert next_look(of, demand, NOW) == NOW + after


@given(
    state=st.sampled_from(STATES),
    looks=st.integers(0, 30),
    ours=st.integers(0, 9),
    starts=st.none() | st.integers(-600, 600),
    ends=st.none() | st.integers(-600, 6000),
    waits=st.booleans(),
)
def test_no_reservation_is_looked_at_more_than_once_a_minute_but_for_a_time_of_its_own(
    state: ReservationState, looks: int, ours: int, starts: int | None, ends: int | None, *, waits: bool
) -> None:
    of = known(
        state,
        looks,
        starts_at=None if starts is None else NOW + starts * MINUTE,
        ends_at=None if ends is None else NOW + ends * MINUTE,
    )
    due = next_look(of, Demand(waits=waits, ours=ours), NOW)
    assert NOW + MINUTE <= due <= NOW + SELDOM


@pytest.mark.parametrize(
    ("of", "under_way", "hosts", "may"),
    [
        (None, [], 4, True),
        (known(STATES.UNREADABLE), [], 4, True),
        (known(count=None), [], 4, True),
        (known(), [], 64, True),
        (known(), [], 65, False),
        (known(in_use=60), [], 4, True),
        (known(in_use=60, degraded=1), [], 4, False),
        (known(in_use=56), in_flight(1), 4, True),
        (known(in_use=56), in_flight(2), 4, False),
        (known(in_use=56), in_flight(2, at=-MINUTE), 4, True),
        (known(in_use=56), in_flight(3, at=-MINUTE), 4, False),
        (known(in_use=60), in_flight(1, at=-MINUTE), 4, True),
        (known(in_use=60), in_flight(1, at=-MINUTE), 64, False),
        (known(STATES.PENDING, starts_at=NOW + HOUR), [], 4, False),
        (known(STATES.MISSING), [], 4, False),
        (known(STATES.ENDED), [], 4, False),
        (known(ends_at=NOW), [], 4, False),
    ],
)
def test_a_creation_may_start_where_its_hosts_are_known_to_be_free(
    of: Reservation | None, under_way: list[Any], hosts: int, *, may: bool
) -> None:
    assert (lack(POOL, hosts, under_way, of, NOW) is None) == may


@given(free=st.integers(0, 40), hosts=st.integers(1, 8), before=st.booleans())
def test_what_runs_never_exceeds_what_is_free_by_more_than_one(free: int, hosts: int, *, before: bool) -> None:
    of, slots = known(in_use=64 - free), in_flight(0)
    while lack(POOL, hosts, slots, of, NOW) is None:
        slots += [replace(each, number=len(slots)) for each in in_flight(1, hosts, -MINUTE if before else MINUTE)]
    assert len(slots) <= free // hosts + 1


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (
            known(STATES.PENDING, starts_at=NOW + 18 * HOUR),
            "Waits for reservation r, which begins at 06:00 UTC on 2 March",
        ),
        (
            known(STATES.PENDING, detail="its booking is not approved yet"),
            "Waits for reservation r, which is not there yet: its booking is not approved yet",
        ),
        (
            known(in_use=64, ours=32),
            "The reservation r has no free hosts: 64 of 64 used, 32 of them outside this cluster",
        ),
        (
            known(in_use=60, ours=60, degraded=2),
            "The reservation r has 2 free hosts for what is being created and 4 more: 60 of 64 used, 2 not healthy",
        ),
        (known(ends_at=NOW), "The reservation r ended at 12:00 UTC on 1 March: nothing is asked for in it"),
        (
            known(STATES.MISSING, nearest=("q", "s")),
            "There is no reservation r in us-east5-b of project p, and none of this name is booked; there is q and s",
        ),
        (
            known(STATES.UNREADABLE, detail="it needs compute.reservations.get"),
            "The reservation r of project p cannot be read: it needs compute.reservations.get",
        ),
    ],
)
def test_what_is_told_has_times_and_numbers(of: Reservation, text: str) -> None:
    assert told(of, 4, NOW) == text


def test_a_part_of_a_reservation_is_named_so() -> None:
    assert replace(PLACE, block="b", sub_block="s").shown == "reservation r block b sub-block s"


def test_one_that_is_gone_at_its_end_has_ended_and_is_not_missing() -> None:
    before = known(ends_at=NOW)
    after = looked(before, PLACE, seen(STATES.MISSING, count=None), WAITS, NOW + MINUTE)
    assert after.seen.state is STATES.ENDED
    assert looked(after, PLACE, seen(STATES.MISSING, count=None), WAITS, NOW + HOUR).seen.state is STATES.ENDED


def test_one_that_is_gone_before_its_end_is_missing() -> None:
    after = looked(known(ends_at=NOW + HOUR), PLACE, seen(STATES.MISSING, count=None), WAITS, NOW + MINUTE)
    assert after.seen.state is STATES.MISSING


def test_looks_that_find_nothing_more_are_counted_until_one_does() -> None:
    of = looked(None, PLACE, seen(in_use=64), WAITS, NOW)
    for number in range(3):
        assert of.looks == number
        of = looked(of, PLACE, seen(in_use=64), WAITS, NOW)
    assert looked(of, PLACE, seen(in_use=60), WAITS, NOW).looks == 0


def test_what_was_seen_is_believed_for_a_while_if_nobody_answers() -> None:
    of = unseen(known(in_use=64), PLACE, "503", NOW + BELIEVED_FOR)
    assert (of.next_look_at, of.seen_at) == (NOW + BELIEVED_FOR + MINUTE, NOW)
    assert state_at(of, NOW + BELIEVED_FOR) is STATES.READY
    assert state_at(of, NOW + BELIEVED_FOR + MINUTE) is STATES.UNREADABLE


def test_who_does_not_answer_twice_is_asked_less_often() -> None:
    of = unseen(known(), PLACE, "503", NOW)
    assert unseen(of, PLACE, "503", NOW + MINUTE).next_look_at == NOW + MINUTE + PATIENT


def test_nothing_is_known_if_nobody_ever_answered() -> None:
    of = unseen(None, PLACE, "503", NOW)
    assert (of.seen.state, of.next_look_at) == (STATES.UNREADABLE, NOW + MINUTE)
    assert told(of, 4, NOW) == "The reservation r of project p cannot be read: 503"


@pytest.mark.parametrize(
    ("left", "before", "minutes"),
    [
        (25 * HOUR, 0, 0),
        (24 * HOUR, 0, 1440),
        (23 * HOUR, 1440, 0),
        (HOUR, 1440, 60),
        (HOUR, 0, 60),
        (14 * MINUTE, 60, 15),
        (14 * MINUTE, 15, 0),
    ],
)
def test_each_time_before_its_end_is_told_once(left: timedelta, before: int, minutes: int) -> None:
    assert ends_soon(known(ends_at=NOW + left, ours=4, announced=before), NOW) == minutes


def test_the_end_of_one_that_nobody_uses_is_not_told() -> None:
    assert ends_soon(known(ends_at=NOW + MINUTE), NOW) == 0


def test_another_end_is_told_anew() -> None:
    before = known(ends_at=NOW + HOUR, ours=4, announced=60)
    assert looked(before, PLACE, seen(ends_at=NOW + 24 * HOUR), USES, NOW).announced == 0
    assert looked(before, PLACE, seen(ends_at=NOW + HOUR), USES, NOW).announced == 60


def test_a_creation_that_succeeded_since_it_was_seen_uses_its_hosts() -> None:
    of = known(in_use=8)
    assert used(of, 4, NOW + MINUTE).seen.free == 52
    assert used(of, 4, NOW - MINUTE) == of


def test_the_nearest_names_are_those_most_alike() -> None:
    assert nearest("hal-7", ["attic", "hall-7", "hall-8"])[0] == "hall-7"
    assert nearest("zzz", ["attic"]) == ("attic",)


def test_it_is_told_when_it_is_looked_at_next() -> None:
    of = replace(known(), next_look_at=NOW + 5 * MINUTE)
    assert asked_again(of, NOW) == "it is looked at again at 12:05 UTC"

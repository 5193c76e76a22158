"""Reservations as Compute Engine's REST API shows them, at the stand-in for it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
import requests

from tpu_slices.adapters.backends import LazyReservations
from tpu_slices.adapters.reservations import RestReservations
from tpu_slices.domain.records.reservations import BlockSeen, ReservationPlace, ReservationSeen, ReservationState
from tpu_slices.ports.errors import Temporary
from tpu_standins.testing.compute import PROJECT, ZONE, World

MACHINE = "ct6e-standard-4t"
PLACE = ReservationPlace(PROJECT, ZONE, "hall-7")
BLOCKS = [
    {"name": "b1", "sub_blocks": [{"name": "s1", "count": 4, "others": 3}, {"name": "s2", "count": 4, "degraded": 1}]},
    {"name": "b2", "sub_blocks": [{"name": "s3", "count": 8, "others": 1}]},
]


class Bench:
    """A reader of a stand-in whose clock a test moves."""

    def __init__(self) -> None:
        self.world = World()
        self.reader = RestReservations(self.world.session(), "http://compute.local/compute/v1")

    def reserve(self, name: str = "hall-7", **body: Any) -> None:
        given = {"project": PROJECT, "zone": ZONE, "name": name, "machine_type": MACHINE, "count": 16}
        self.world.press("POST", "/reservations", **{**given, **body})

    def book(self, **body: Any) -> None:
        given = {"project": PROJECT, "zone": ZONE, "name": "booked", "machine_type": MACHINE, "count": 16}
        times = {"starts_in": 3600, "ends_in": 7200}
        self.world.press("POST", "/bookings", **{**given, "reservation": "hall-7", **times, **body})

    def calls(self) -> list[str]:
        return [call.method for call in self.world.plane.calls()]

    def at(self, seconds: float) -> datetime:
        return datetime.fromtimestamp(self.world.clock.now + seconds, UTC)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_reservation_is_read_in_one_call(bench: Bench) -> None:
    bench.reserve(others=5, ends_in=86_400)
    assert bench.reader.read(PLACE) == ReservationSeen(
        state=ReservationState.READY, ends_at=bench.at(86_400), machine=MACHINE, count=16, in_use=5
    )
    assert bench.calls() == ["reservations.get"]


def test_broken_hosts_are_counted_in_the_blocks_that_have_some(bench: Bench) -> None:
    bench.reserve(blocks=BLOCKS)
    seen = bench.reader.read(PLACE)
    assert (seen.count, seen.in_use, seen.degraded, seen.free) == (16, 4, 1, 11)
    assert seen.blocks == (
        BlockSeen(name="b1", count=8, in_use=3, degraded=1),
        BlockSeen(name="b2", count=8, in_use=1),
    )
    assert bench.calls() == ["reservations.get", "reservationBlocks.list", "reservationSubBlocks.list"]


@pytest.mark.parametrize(
    ("block", "sub_block", "numbers"), [("b2", "", (8, 1, 0)), ("b1", "", (8, 3, 1)), ("b1", "s1", (4, 3, 0))]
)
def test_a_part_of_a_reservation_has_numbers_of_its_own(
    bench: Bench, block: str, sub_block: str, numbers: tuple[int, int, int]
) -> None:
    bench.reserve(blocks=BLOCKS)
    seen = bench.reader.read(ReservationPlace(PROJECT, ZONE, "hall-7", block, sub_block))
    assert (seen.count, seen.in_use, seen.degraded) == numbers


def test_a_part_that_there_is_not_is_missing(bench: Bench) -> None:
    bench.reserve(blocks=BLOCKS)
    assert bench.reader.read(ReservationPlace(PROJECT, ZONE, "hall-7", "b9")).state is ReservationState.MISSING


def test_without_the_right_to_read_blocks_hosts_are_counted_without_them(bench: Bench) -> None:
    bench.reserve(blocks=BLOCKS)
    bench.world.press("POST", "/faults", kind="permission", method="reservationBlocks.list", times=1)
    seen = bench.reader.read(PLACE)
    assert (seen.count, seen.in_use, seen.degraded, seen.blocks) == (16, 4, 0, ())


def test_one_that_is_being_made_is_not_there_yet(bench: Bench) -> None:
    bench.reserve(status="CREATING")
    seen = bench.reader.read(PLACE)
    assert (seen.state, seen.detail) == (ReservationState.PENDING, "its status is CREATING")


def test_a_booking_has_its_times_before_its_reservation_is_there(bench: Bench) -> None:
    bench.book()
    seen = bench.reader.read(PLACE)
    assert (seen.state, seen.starts_at, seen.ends_at) == (ReservationState.PENDING, bench.at(3600), bench.at(7200))
    assert (seen.count, seen.machine, seen.detail) == (16, MACHINE, "")
    bench.world.after(3601)
    there = bench.reader.read(PLACE)
    assert (there.state, there.ends_at) == (ReservationState.READY, seen.ends_at)


def test_a_booking_may_know_only_the_beginning_of_the_name(bench: Bench) -> None:
    bench.book(prefix="hall-")
    assert bench.reader.read(PLACE).state is ReservationState.PENDING


def test_a_booking_that_is_not_approved_says_so(bench: Bench) -> None:
    bench.book(procurement="PENDING_APPROVAL")
    assert bench.reader.read(PLACE).detail == "its booking is not approved yet"


@pytest.mark.parametrize("procurement", ["DECLINED", "CANCELLED", "FAILED"])
def test_a_booking_that_came_to_nothing_is_none(bench: Bench, procurement: str) -> None:
    bench.book(procurement=procurement)
    assert bench.reader.read(PLACE).state is ReservationState.MISSING


def test_a_name_that_there_is_not_has_the_nearest_ones(bench: Bench) -> None:
    for name in ("attic", "hall-8", "hall-70"):
        bench.reserve(name)
    seen = bench.reader.read(PLACE)
    assert (seen.state, set(seen.nearest)) == (ReservationState.MISSING, {"hall-8", "hall-70"})


def test_without_the_right_to_read_it_the_right_is_named(bench: Bench) -> None:
    bench.reserve()
    bench.world.press("POST", "/faults", kind="permission", method="reservations.get", times=1)
    seen = bench.reader.read(PLACE)
    assert (seen.state, seen.count) == (ReservationState.UNREADABLE, None)
    assert "needs compute.reservations.get" in seen.detail


def test_who_does_not_answer_is_asked_again_later(bench: Bench) -> None:
    bench.world.press("POST", "/faults", kind="unavailable", method="reservations.get", times=1)
    with pytest.raises(Temporary):
        bench.reader.read(PLACE)


@pytest.mark.parametrize("forbidden", ["futureReservations.list", "reservations.list"])
def test_what_else_may_not_be_read_is_left_out(bench: Bench, forbidden: str) -> None:
    bench.reserve("attic")
    bench.world.press("POST", "/faults", kind="permission", method=forbidden, times=1)
    assert bench.reader.read(PLACE).state is ReservationState.MISSING


class _Answers:
    """A session that answers each call with the same reservation."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.found = found

    def request(self, *_: Any, **__: Any) -> Any:
        response = requests.Response()
        response.status_code, response._content = 200, json.dumps(self.found).encode()
        return response


def test_one_that_is_deleted_some_time_after_it_was_made_ends_then() -> None:
    made = {
        "status": "READY",
        "creationTimestamp": "2026-03-01T12:00:00+00:00",
        "deleteAfterDuration": {"seconds": "60"},
    }
    seen = RestReservations(_Answers(made)).read(PLACE)
    assert seen.ends_at == datetime(2026, 3, 1, 12, 1, tzinfo=UTC)
    assert seen.free is None


def test_one_that_is_being_deleted_has_ended() -> None:
    assert RestReservations(_Answers({"status": "DELETING"})).read(PLACE).state is ReservationState.ENDED


def test_nothing_can_be_read_where_gke_alone_runs_here() -> None:
    assert LazyReservations(lambda: None).read(PLACE).state is ReservationState.UNREADABLE


def test_the_reader_is_made_once() -> None:
    made: list[RestReservations] = []

    def make() -> RestReservations:
        made.append(RestReservations(_Answers({"status": "READY"})))
        return made[-1]

    lazy = LazyReservations(make)
    assert [lazy.read(PLACE).state, lazy.read(PLACE).state] == [ReservationState.READY] * 2
    assert len(made) == 1

"""The advice on bookings as Compute Engine's REST API gives it, at the stand-in for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tpu_slices.adapters.bookings import TIMEOUT, RestBookings
from tpu_slices.domain.model.bookings import BookingAdvice, BookingAsked
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.wire.capacity.bookings import advice_of
from tpu_standins.testing.compute import PROJECT, World, a_state

FAMILY = "VM_FAMILY_CLOUD_TPU_LITE_POD_SLICE_CT6E"
ZONES = ("us-east5-a", "us-east5-b", "us-east5-c")
DAY = timedelta(days=1)


class Bench:
    """What asks a stand-in whose clock a test moves."""

    def __init__(self) -> None:
        self.world = World(a_state(zones=frozenset(ZONES)))
        self.adviser = RestBookings(self.world.session(), "http://compute.local/compute/v1")
        self.asked = BookingAsked(
            project=PROJECT,
            zones=ZONES[:2],
            denied=ZONES[2:],
            vm_family=FAMILY,
            workload_type="",
            chips=256,
            lasts=7 * DAY,
            not_before=self.at(DAY),
            not_after=self.at(100 * DAY),
        )

    def at(self, after: timedelta) -> datetime:
        return datetime.fromtimestamp(self.world.clock.now, UTC).replace(microsecond=0) + after

    def offer(self, zone: str, chips: int = 256, **more: Any) -> None:
        self.world.press("POST", "/advice", zone=zone, vm_family=FAMILY, chips=chips, **more)

    def advised(self) -> BookingAdvice:
        return self.adviser.advise(self.asked)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_the_time_and_the_zone_are_read_with_what_is_said_of_the_others(bench: Bench) -> None:
    bench.offer("us-east5-b")
    bench.offer("us-east5-a", chips=64)
    advice = bench.advised()
    assert (advice.zone, advice.starts_at, advice.ends_at) == ("us-east5-b", bench.at(DAY), bench.at(8 * DAY))
    assert (advice.others, advice.unknown) == ({"us-east5-a": "NO_CAPACITY"}, "")
    (call,) = bench.world.plane.calls()
    assert (call.method, call.code) == ("advice.calendarMode", 200)


def test_a_zone_that_is_denied_is_not_advised(bench: Bench) -> None:
    bench.offer("us-east5-c")
    advice = bench.advised()
    assert (advice.zone, advice.starts_at) == ("", None)
    assert advice.others == {"us-east5-a": "NOT_SUPPORTED", "us-east5-b": "NOT_SUPPORTED"}


@pytest.mark.parametrize("kind", ["BATCH", "SERVING"])
def test_the_type_of_the_workload_is_told_where_there_is_one(bench: Bench, kind: str) -> None:
    bench.offer("us-east5-a")
    assert bench.adviser.advise(replace(bench.asked, workload_type=kind)).zone == "us-east5-a"


def test_without_the_right_the_right_is_named(bench: Bench) -> None:
    bench.world.press("POST", "/faults", kind="permission", method="advice.calendarMode", times=1)
    with pytest.raises(Permanent, match=r"needs compute\.advice\.calendarMode"):
        bench.advised()


@pytest.mark.parametrize("kind", ["unavailable", "internal", "rate"])
def test_who_does_not_answer_is_no_refusal(bench: Bench, kind: str) -> None:
    bench.world.press("POST", "/faults", kind=kind, method="advice.calendarMode", times=1)
    with pytest.raises((Temporary, Permanent)):
        bench.advised()


def test_a_call_is_waited_for_only_as_long_as_a_person_would(bench: Bench) -> None:
    waited: list[float] = []

    class Noting:
        def request(self, method: str, url: str, *, timeout: float, **more: Any) -> Any:
            waited.append(timeout)
            return bench.world.session().request(method, url, **more)

    RestBookings(Noting(), "http://compute.local/compute/v1").advise(bench.asked)
    assert waited == [TIMEOUT]


@pytest.mark.parametrize("answer", [{"recommendations": [{}]}, {"recommendations": "none"}, {"recommendations": [1]}])
def test_an_answer_of_another_form_is_none(answer: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="unknown form"):
        advice_of(answer)


def test_an_empty_answer_is_no_advice() -> None:
    assert advice_of({}).unknown == "Compute Engine has no advice on it"


def test_of_several_recommendations_the_earliest_is_taken() -> None:
    def spec(day: int, zone: str) -> dict[str, Any]:
        times = {"startTime": f"2026-12-{day:02}T06:00:00Z", "endTime": f"2026-12-{day + 1:02}T06:00:00Z"}
        return {"recommendationsPerSpec": {"slices": {"location": f"zones/{zone}", **times}}}

    nowhere = {"recommendationsPerSpec": {"slices": {"otherLocations": {"zones/z": {"status": "NO_CAPACITY"}}}}}
    answer = {"recommendations": [nowhere, spec(9, "us-east5-b"), spec(3, "us-east5-a")]}
    assert advice_of(answer).zone == "us-east5-a"

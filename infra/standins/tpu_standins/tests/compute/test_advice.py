"""Advice on bookings in calendar mode, as Google's client asks for it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.cloud import compute_v1 as gce

from tpu_standins.testing.compute import OTHER_ZONE, REGION, REGIONAL, ZONE, World, a_state, refused

FAMILY = "VM_FAMILY_CLOUD_TPU_LITE_POD_SLICE_CT6E"
TWIN = f"{REGION}-a"
DAY = timedelta(days=1)


@pytest.fixture
def world() -> World:
    return World(a_state(zones=frozenset({ZONE, TWIN, OTHER_ZONE})))


def at(world: World, after: timedelta) -> datetime:
    return datetime.fromtimestamp(world.clock.now, UTC) + after


def a_spec(world: World, chips: int = 64, **changes: Any) -> dict[str, Any]:
    return {
        "target_resources": {"aggregate_resources": {"vm_family": FAMILY, "accelerator_count": chips}},
        "time_range_spec": {
            "start_time_not_earlier_than": at(world, DAY).isoformat(),
            "start_time_not_later_than": at(world, 30 * DAY).isoformat(),
            "min_duration": "86400s",
            "max_duration": "86400s",
        },
        **changes,
    }


def ask(world: World, *specs: dict[str, Any]) -> gce.CalendarModeAdviceResponse:
    named = {f"spec-{number}": spec for number, spec in enumerate(specs)}
    found = world.client(gce.AdviceClient).calendar_mode(
        calendar_mode_advice_request_resource=gce.CalendarModeAdviceRequest(future_resources_specs=named), **REGIONAL
    )
    assert isinstance(found, gce.CalendarModeAdviceResponse)
    return found


def advised(world: World, **changes: Any) -> gce.FutureResourcesRecommendation:
    (found,) = ask(world, a_spec(world, **changes)).recommendations
    return found.recommendations_per_spec["spec-0"]


def offer(world: World, zone: str = ZONE, chips: int = 64, **more: Any) -> None:
    world.press("POST", "/advice", zone=zone, vm_family=FAMILY, chips=chips, **more)


def others(advice: gce.FutureResourcesRecommendation) -> dict[str, str]:
    return {zone: each.status for zone, each in advice.other_locations.items()}


def test_the_zone_that_has_the_chips_first_is_recommended(world: World) -> None:
    offer(world, starts_in=10 * 86_400)
    offer(world, TWIN, starts_in=3 * 86_400)
    advice = advised(world)
    assert (advice.location, advice.recommendation_type) == (f"zones/{TWIN}", "FUTURE_RESERVATION")
    starts, ends = datetime.fromisoformat(advice.start_time), datetime.fromisoformat(advice.end_time)
    assert (starts, ends) == (at(world, 3 * DAY), at(world, 4 * DAY))
    assert others(advice) == {f"zones/{ZONE}": "RECOMMENDED"}


def test_nothing_begins_before_it_is_asked_for(world: World) -> None:
    offer(world)
    assert datetime.fromisoformat(advised(world).start_time) == at(world, DAY)


@pytest.mark.parametrize("lacks", [{"chips": 32}, {"starts_in": 31 * 86_400}])
def test_without_room_no_zone_is_named_but_why_it_is_none(world: World, lacks: dict[str, Any]) -> None:
    offer(world, **lacks)
    advice = advised(world)
    assert (advice.location, advice.start_time) == ("", "")
    assert others(advice) == {f"zones/{ZONE}": "NO_CAPACITY", f"zones/{TWIN}": "NOT_SUPPORTED"}


def test_a_zone_that_is_denied_is_left_out(world: World) -> None:
    offer(world)
    denied = {"location_policy": {"locations": {f"zones/{ZONE}": {"preference": "DENY"}}}}
    advice = advised(world, **denied)
    assert (advice.location, others(advice)) == ("", {f"zones/{TWIN}": "NOT_SUPPORTED"})


def test_a_booking_lasts_a_day_at_least(world: World) -> None:
    offer(world)
    times = {**a_spec(world)["time_range_spec"], "min_duration": "3600s"}
    assert others(advised(world, time_range_spec=times))[f"zones/{ZONE}"] == "CONDITIONS_NOT_MET"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"target_resources": {"aggregate_resources": {"accelerator_count": 4}}}, "vmFamily"),
        ({"target_resources": {"aggregate_resources": {"vm_family": FAMILY}}}, "acceleratorCount"),
        ({"target_resources": {"aggregate_resources": {"vm_family": "CT6E", "accelerator_count": 4}}}, "CT6E"),
        ({"target_resources": {}}, "required"),
        ({"time_range_spec": {}}, "startTimeNotEarlierThan"),
        ({"location_policy": {"locations": {ZONE: {"preference": "ALLOW"}}}}, "Unknown zone"),
        ({"location_policy": {"locations": {f"zones/{OTHER_ZONE}": {"preference": "ALLOW"}}}}, "Unknown zone"),
        ({"location_policy": {"locations": {f"zones/{ZONE}": {"preference": "NEVER"}}}}, "NEVER"),
    ],
)
def test_what_lacks_something_or_is_none_of_its_values_is_refused(
    world: World, changes: dict[str, Any], told: str
) -> None:
    answer = refused(lambda: advised(world, **changes))
    assert (answer.code, told in answer.message) == (400, True)


@pytest.mark.parametrize(
    "times", [{"min_duration": "1d"}, {"start_time_not_later_than": "soon"}, {"max_duration": "3600s"}]
)
def test_times_are_of_their_form_and_do_not_contradict_each_other(world: World, times: dict[str, str]) -> None:
    given = {**a_spec(world)["time_range_spec"], **times}
    assert refused(lambda: advised(world, time_range_spec=given)).code == 400


@pytest.mark.parametrize("count", [0, 2])
def test_one_specification_is_asked_for_at_a_time(world: World, count: int) -> None:
    assert refused(lambda: ask(world, *[a_spec(world)] * count)).code == 400


def test_what_is_not_covered_says_so(world: World) -> None:
    machines = {"specific_sku_resources": {"machine_type": "a3-megagpu-8g", "instance_count": 1}}
    assert refused(lambda: advised(world, target_resources=machines)).code == 501
    assert refused(lambda: world.client(gce.AdviceClient).capacity(**REGIONAL)).code == 501


def test_the_right_to_ask_may_be_missing(world: World) -> None:
    world.press("POST", "/faults", kind="permission", method="advice.calendarMode", times=1)
    told = refused(lambda: advised(world))
    assert (told.code, "compute.advice.calendarMode" in told.message) == (403, True)


def test_the_buttons_show_what_is_offered_and_take_it_back(world: World) -> None:
    offer(world)
    offer(world, chips=128)
    assert [each["chips"] for each in world.press("GET", "/advice")["offers"]] == [128]
    assert world.press("DELETE", "/advice")["offers"] == []

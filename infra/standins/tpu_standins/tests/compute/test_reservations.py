"""Reservations with their blocks, and future reservations, as Google's client reads them."""

from datetime import datetime
from typing import Any

import pytest
from google.cloud import compute_v1 as gce

from tpu_standins.compute.buttons import press
from tpu_standins.testing.compute import HERE, World, of_reservation, refused

MACHINE = "tpu7x-standard-4t"
BLOCKS = [
    {"name": "b1", "sub_blocks": [{"name": "s1", "count": 4, "others": 3}, {"name": "s2", "count": 4, "degraded": 1}]},
    {"name": "b2", "sub_blocks": [{"name": "s3", "count": 8}]},
]
PARENT = "reservations/mine/reservationBlocks/b1"


@pytest.fixture
def world() -> World:
    return World()


def reserve(world: World, **body: Any) -> None:
    world.press("POST", "/reservations", **{**HERE, "name": "mine", "machine_type": MACHINE, **body})


def book(world: World, **body: Any) -> None:
    given = {"name": "booked", "machine_type": MACHINE, "count": 2, "reservation": "mine"}
    world.press("POST", "/bookings", **{**HERE, **given, "starts_in": 3600, "ends_in": 7200, **body})


def read(world: World, name: str = "mine") -> gce.Reservation:
    found = world.client(gce.ReservationsClient).get(reservation=name, **HERE)
    assert isinstance(found, gce.Reservation)
    return found


def booked(world: World) -> gce.FutureReservation:
    (found,) = world.client(gce.FutureReservationsClient).list(**HERE)
    assert found == world.client(gce.FutureReservationsClient).get(future_reservation="booked", **HERE)
    assert isinstance(found, gce.FutureReservation)
    return found


def use(world: World, name: str = "mine") -> None:
    world.make_slice(**of_reservation(name))
    world.after(11)


def test_what_others_use_counts_and_is_not_ours(world: World) -> None:
    reserve(world, count=8, others=3)
    use(world)
    specific = read(world).specific_reservation
    assert (specific.count, specific.assured_count, specific.in_use_count) == (8, 8, 5)


@pytest.mark.parametrize(
    "lacks", [{"others": 3}, {"degraded": 3}, {"others": 2, "degraded": 1}, {"status": "CREATING"}]
)
def test_hosts_that_are_used_broken_or_not_there_yet_are_not_given(world: World, lacks: dict[str, Any]) -> None:
    reserve(world, count=4, **lacks)
    use(world)
    (error,) = world.members()[0].last_attempt.errors.errors
    assert "does not have available resources" in error.message


def test_a_dense_reservation_has_blocks_and_sub_blocks_with_their_health(world: World) -> None:
    reserve(world, blocks=BLOCKS)
    found = read(world)
    health = found.resource_status.health_info
    assert (found.deployment_type, found.specific_reservation.count) == ("DENSE", 16)
    assert (found.resource_status.reservation_block_count, health.health_status) == (2, "DEGRADED")
    assert (health.healthy_block_count, health.degraded_block_count) == (1, 1)
    blocks = list(world.client(gce.ReservationBlocksClient).list(reservation="mine", **HERE))
    assert [(each.name, each.count, each.in_use_count, each.health_info.health_status) for each in blocks] == [
        ("b1", 8, 3, "DEGRADED"),
        ("b2", 8, 0, "HEALTHY"),
    ]
    parts = list(world.client(gce.ReservationSubBlocksClient).list(parent_name=PARENT, **HERE))
    assert [(each.name, each.count, each.in_use_host_count, each.health_info.healthy_host_count) for each in parts] == [
        ("s1", 4, 3, 4),
        ("s2", 4, 0, 3),
    ]


def test_a_block_and_a_sub_block_are_read_by_name(world: World) -> None:
    reserve(world, blocks=BLOCKS)
    block = world.client(gce.ReservationBlocksClient).get(reservation="mine", reservation_block="b2", **HERE)
    assert (block.resource.name, block.resource.reservation_sub_block_count) == ("b2", 1)
    part = world.client(gce.ReservationSubBlocksClient).get(parent_name=PARENT, reservation_sub_block="s2", **HERE)
    assert part.resource.health_info.degraded_host_count == 1


def test_our_hosts_are_counted_in_the_blocks_that_have_room(world: World) -> None:
    reserve(world, blocks=BLOCKS)
    use(world)
    used = [each.in_use_count for each in world.client(gce.ReservationBlocksClient).list(reservation="mine", **HERE)]
    assert used == [5, 0]
    assert read(world).specific_reservation.in_use_count == 5


def test_a_reservation_that_is_not_dense_has_no_blocks(world: World) -> None:
    reserve(world, count=4)
    assert not list(world.client(gce.ReservationBlocksClient).list(reservation="mine", **HERE))
    assert not read(world).deployment_type


def test_what_is_below_nothing_is_not_found(world: World) -> None:
    blocks, parts = world.client(gce.ReservationBlocksClient), world.client(gce.ReservationSubBlocksClient)
    reserve(world, blocks=BLOCKS)
    nowhere = "reservations/mine/reservationBlocks/b9"
    for call in (
        lambda: blocks.list(reservation="none", **HERE),
        lambda: blocks.get(reservation="mine", reservation_block="b9", **HERE),
        lambda: parts.list(parent_name=nowhere, **HERE),
        lambda: parts.get(parent_name=PARENT, reservation_sub_block="s9", **HERE),
        lambda: read(world, "none"),
        lambda: world.client(gce.FutureReservationsClient).get(future_reservation="none", **HERE),
    ):
        assert refused(call).code == 404


def test_a_list_has_the_reservations_of_its_zone_alone(world: World) -> None:
    reserve(world, count=4)
    reserve(world, count=4, name="far", zone="us-east5-a")
    reserve(world, count=4, name="theirs", project="library")
    assert [each.name for each in world.client(gce.ReservationsClient).list(**HERE)] == ["mine"]


def test_a_list_comes_in_pages_and_takes_a_filter(world: World) -> None:
    for name in ("a", "b", "c"):
        reserve(world, count=1, name=name)
    reservations = world.client(gce.ReservationsClient)
    assert [each.name for each in reservations.list(request={**HERE, "max_results": 2})] == ["a", "b", "c"]
    assert [each.name for each in reservations.list(request={**HERE, "filter": "name=b"})] == ["b"]


def test_the_right_to_read_a_reservation_may_be_missing(world: World) -> None:
    reserve(world, count=4)
    world.press("POST", "/faults", kind="permission", method="reservations.get", times=1)
    told = refused(lambda: read(world))
    assert (told.code, "compute.reservations.get" in told.message) == (403, True)


def test_a_booking_makes_its_reservation_at_its_start_and_deletes_it_at_its_end(world: World) -> None:
    book(world)
    before = booked(world)
    assert before.status.procurement_status == "COMMITTED"
    assert (before.reservation_mode, before.reservation_name, before.name_prefix) == ("CALENDAR", "mine", "")
    start, end = (datetime.fromisoformat(at) for at in (before.time_window.start_time, before.time_window.end_time))
    assert (start.timestamp() - world.clock.now, (end - start).total_seconds()) == (3600, 3600)
    world.after(3599)
    assert refused(lambda: read(world)).code == 404
    world.after(2)
    made = read(world)
    assert (made.specific_reservation.count, datetime.fromisoformat(made.delete_at_time)) == (2, end)
    status = booked(world).status
    assert (status.procurement_status, status.fulfilled_count) == ("FULFILLED", 2)
    assert list(status.auto_created_reservations) == [made.self_link]
    world.after(3600)
    assert refused(lambda: read(world)).code == 404


def test_hosts_go_with_the_reservation_that_ends(world: World) -> None:
    book(world, starts_in=0, ends_in=60)
    use(world)
    assert world.statuses() == [("NONE", "RUNNING")] * 2
    world.after(60)
    assert world.statuses() == [("NONE", "")] * 2


def test_only_the_beginning_of_a_name_may_be_known_before(world: World) -> None:
    book(world, prefix="mi")
    assert (booked(world).name_prefix, booked(world).reservation_name) == ("mi", "")


@pytest.mark.parametrize("procurement", ["PENDING_APPROVAL", "DECLINED", "FAILED", "CANCELLED"])
def test_what_is_not_approved_makes_nothing(world: World, procurement: str) -> None:
    book(world, procurement=procurement)
    world.after(3601)
    assert booked(world).status.procurement_status == procurement
    assert refused(lambda: read(world)).code == 404


def test_the_buttons_show_what_there_is_and_take_it_back(world: World) -> None:
    reserve(world, count=4, others=1)
    book(world)
    (shown,) = world.press("GET", "/reservations")["reservations"]
    assert (shown["in_use"], shown["ours"], shown["left"]) == (1, 0, 3)
    world.press("DELETE", "/bookings", **HERE, name="booked")
    left = world.press("DELETE", "/reservations", **HERE, name="mine")
    assert (left["reservations"], left["bookings"]) == ([], [])


def test_a_booking_without_its_times_is_refused(world: World) -> None:
    assert press(world.plane, "POST", "/bookings", b'{"project": "p"}')[0] == 400

"""Gangs in reservations: what can never stand together there is refused before anything is created."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from tests.builders import a_request
from tests.journeys.reservations.waiting import HALL, HOSTS, a_world, creations
from tests.world import World
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import ClaimId, ClusterId, SliceId
from tpu_slices_simulator.fakes.reservations import FakeReservation
from tpu_slices_simulator.live import LiveWorkload


def gang(world: World, slices: int) -> LiveWorkload:
    return world.jobset_appears("llama", slices, a_request(gang="all", node_selector=of_hall()))


def of_hall() -> tuple[tuple[str, str], ...]:
    return (*a_request().node_selector, ("cloud.google.com/reservation-name", HALL))


def test_ten_slices_in_a_reservation_of_eight_are_refused_before_the_first_creation() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=8 * HOSTS), operations=20)
    gang(world, 10)
    world.settle(minutes=180)
    assert creations(world) == []
    (message,) = {record.message for record in world.records.values()}
    assert {record.reason for record in world.records.values()} == {Reason.GANG_TOO_LARGE}
    assert message.startswith(
        "The reservation hall-7 has 32 hosts in all, and the slices of the gang need 40 of them at once"
    )


def test_eight_slices_in_a_reservation_of_eight_are_made() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=8 * HOSTS), operations=20)
    job = gang(world, 8)
    world.settle(minutes=30, until=lambda: len(job.bound) == 8)
    assert len(job.bound) == 8
    assert len(creations(world)) == 8


def test_a_slice_by_itself_that_waits_behind_a_gang_there_is_not_asked_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = a_world(FakeReservation(name=HALL, hosts=4 * HOSTS, others=2 * HOSTS), operations=20)
    of_gang = gang(world, 3)
    world.settle(minutes=15)
    assert len(world.pools) == 2
    single = world.jobset_appears("single", request=a_request(node_selector=of_hall()))
    world.settle(minutes=5)
    asked, request = list[str](), world.publisher.request_reconcile

    def counting(cluster: ClusterId, slices: Collection[ClaimId | SliceId], *args: Any, **kwargs: Any) -> None:
        asked.extend(each for each in slices if "single" in each)
        request(cluster, slices, *args, **kwargs)

    monkeypatch.setattr(world.publisher, "request_reconcile", counting)
    world.settle(minutes=20)
    assert (of_gang.bound, single.bound) == (set(), set())
    assert len(asked) <= 2


def test_a_gang_fits_once_its_reservation_is_larger() -> None:
    hall = FakeReservation(name=HALL, hosts=8 * HOSTS)
    world = a_world(hall, operations=20)
    job = gang(world, 10)
    world.settle(minutes=20)
    hall.hosts = 10 * HOSTS
    world.settle(minutes=120, until=lambda: len(job.bound) == 10)
    assert len(job.bound) == 10

"""The requests by which reservations are made on a running stack, and how they are shown."""

import argparse
from dataclasses import replace
from typing import Any

import pytest

from infra.local.up import reserving
from infra.local.up.trouble import NotSimulated, Press
from tests.local.up.test_trouble import WHERE

ON_COMPUTE = replace(WHERE, compute=True, environment={"GOOGLE_CLOUD_PROJECT": "p"})
WHAT = {"project": "p", "zone": "z", "name": "hall-7", "machine_type": reserving.MACHINE, "count": 8}


def asked(**options: Any) -> argparse.Namespace:
    given = {"name": "hall-7", "zone": "z", "hosts": 8, "machine": reserving.MACHINE, "others": 0, "lasting": None}
    return argparse.Namespace(**{**given, **options})


def test_a_reservation_is_there_at_once_and_may_end() -> None:
    assert reserving.reservation(asked(others=4), ON_COMPUTE) == Press(
        "http://g/reservations", "POST", {**WHAT, "others": 4}
    )
    assert (reserving.reservation(asked(lasting=60.0), ON_COMPUTE).body or {})["ends_in"] == 60.0


def test_a_booking_makes_the_reservation_of_its_name_at_its_start() -> None:
    pressed = reserving.booking(asked(starts_in=90.0, lasting=3600.0), ON_COMPUTE)
    assert pressed.url == "http://g/bookings"
    assert pressed.body == {**WHAT, "reservation": "hall-7", "starts_in": 90.0, "ends_in": 3690.0}


def test_a_cluster_of_gke_has_no_reservations_here() -> None:
    with pytest.raises(NotSimulated, match="--backend compute"):
        reserving.reservation(asked(), WHERE)


def test_what_is_reserved_and_booked_is_shown_with_who_uses_it() -> None:
    made = {"path": "projects/p/zones/z/reservations/hall-7", "status": "READY", "count": 8, "in_use": 6, "ours": 2}
    booked = {"reservation": "hall-8", "starts": 90.0}
    reply = {
        "reservations": [{**made, "deletes": 3600.0}, {**made, "deletes": None}],
        "bookings": [{**booked, "done": False}, {**booked, "done": True}],
    }
    assert reserving.told(reply) == [
        "hall-7: READY, 6 of 8 hosts used, 2 by this stack, ends at 01:00:00 UTC",
        "hall-7: READY, 6 of 8 hosts used, 2 by this stack",
        "hall-8: booked, begins at 00:01:30 UTC",
    ]

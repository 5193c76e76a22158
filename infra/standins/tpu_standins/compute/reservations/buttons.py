"""Buttons for reservations. Each takes a JSON object with `project`, `zone` and `name`. Pure.

POST   /reservations  {"machine_type": T, "count": 4}: create, or change, a reservation. {"others": 2}: so many hosts
                      are used by others; {"degraded": 1}: so many are broken; {"status": "CREATING"};
                      {"ends_in": 3600}: Compute deletes it after so many seconds, and its VMs;
                      {"blocks": [{"name": B, "sub_blocks": [{"name": S, "count": 16, "others": 4, "degraded": 1}]}]}
                      instead of "count": a dense one
DELETE /reservations  delete it; its VMs stay
POST   /bookings      {"machine_type": T, "count": 4, "reservation": R, "starts_in": 60, "ends_in": 7200}: create a
                      future reservation, which makes R and deletes it; {"prefix": "hall-"}: only this of R is known
                      before; {"procurement": "PENDING_APPROVAL"}; {"mode": "DEFAULT"}
DELETE /bookings      delete it; what it made stays
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tpu_standins.compute.paths import Resource
from tpu_standins.compute.reservations.supply import consumed, in_use, left
from tpu_standins.compute.reserved import Block, Booking, Reserved, SubBlock
from tpu_standins.compute.state import State

Body = Mapping[str, Any]
ReservationButton = Callable[[State, Body, float], State]


def shown(state: State) -> dict[str, Any]:
    """Return what the buttons show of reservations."""
    return {
        "reservations": [
            {
                "path": str(path),
                "machine_type": each.machine_type,
                "status": each.status,
                "count": each.count,
                "in_use": sum(in_use(state, each).values()),
                "ours": consumed(state, path),
                "left": left(state, each),
                "deletes": each.deletes,
            }
            for path, each in state.reservations.items()
        ],
        "bookings": [
            {"path": str(path), "reservation": each.reservation, "starts": each.starts, "done": each.done}
            for path, each in state.bookings.items()
        ],
    }


def _reserve(state: State, body: Body, now: float) -> State:
    path = _path(body, "reservations")
    blocks = tuple(_block(each) for each in body.get("blocks", ()))
    known = state.reservations.get(path)
    made = Reserved(
        path=path,
        machine_type=str(body["machine_type"]),
        created=known.created if known else now,
        blocks=blocks,
        part=None if blocks else _part({**body, "name": ""}),
        status=str(body.get("status", "READY")),
        deletes=now + float(body["ends_in"]) if "ends_in" in body else known.deletes if known else None,
        made_by=known.made_by if known else "",
    )
    return replace(state, reservations={**state.reservations, path: made})


def _release(state: State, body: Body, _: float) -> State:
    path = _path(body, "reservations")
    return replace(state, reservations={key: each for key, each in state.reservations.items() if key != path})


def _book(state: State, body: Body, now: float) -> State:
    path = _path(body, "futureReservations")
    made = Booking(
        path=path,
        machine_type=str(body["machine_type"]),
        count=int(body["count"]),
        reservation=str(body["reservation"]),
        starts=now + float(body["starts_in"]),
        ends=now + float(body["ends_in"]),
        created=now,
        procurement=str(body.get("procurement", "COMMITTED")),
        mode=str(body.get("mode", "CALENDAR")),
        prefix=str(body.get("prefix", "")),
    )
    return replace(state, bookings={**state.bookings, path: made})


def _cancel(state: State, body: Body, _: float) -> State:
    path = _path(body, "futureReservations")
    return replace(state, bookings={key: each for key, each in state.bookings.items() if key != path})


def _block(body: Body) -> Block:
    return Block(name=str(body["name"]), parts=tuple(_part(each) for each in body["sub_blocks"]))


def _part(body: Body) -> SubBlock:
    return SubBlock(
        name=str(body["name"]),
        count=int(body["count"]),
        others=int(body.get("others", 0)),
        degraded=int(body.get("degraded", 0)),
    )


def _path(body: Body, collection: str) -> Resource:
    return Resource(str(body["project"]), f"zones/{body['zone']}", collection, str(body["name"]))


RESERVATION_BUTTONS: Mapping[tuple[str, str], ReservationButton] = {
    ("POST", "/reservations"): _reserve,
    ("DELETE", "/reservations"): _release,
    ("POST", "/bookings"): _book,
    ("DELETE", "/bookings"): _cancel,
}

"""Gets and lists of what is below a reservation: state and call in, one of Google's messages or a refusal out. Pure."""

from collections.abc import Iterable
from typing import Any

from google.cloud.compute_v1 import types as gce

from tpu_standins.compute.errors import Refusal, not_found
from tpu_standins.compute.paths import Resource
from tpu_standins.compute.reservations.messages import (
    block_message,
    booking_message,
    reservation_message,
    sub_block_message,
)
from tpu_standins.compute.reservations.supply import block_named, part_named
from tpu_standins.compute.reserved import Block, Reserved
from tpu_standins.compute.routes import Call
from tpu_standins.compute.state import State


def reservations(state: State, _: float) -> Iterable[tuple[str, str, Any]]:
    return ((path.project, path.scope, reservation_message(state, each)) for path, each in state.reservations.items())


def bookings(state: State, now: float) -> Iterable[tuple[str, str, Any]]:
    return ((path.project, path.scope, booking_message(each, now)) for path, each in state.bookings.items())


def block(state: State, call: Call, _: float) -> Any:
    """Return a block, in an envelope as Google's [py-gce ReservationBlocksGetResponse]."""
    reserved = _reserved(state, call, call.message.reservation)
    found = block_named(reserved, call.message.reservation_block)
    if reserved is None or found is None:
        return _nothing(call, call.message.reservation, call.message.reservation_block)
    return gce.ReservationBlocksGetResponse(resource=block_message(state, reserved, found))


def sub_block(state: State, call: Call, _: float) -> Any:
    reserved, parent = _parent(state, call)
    found = part_named(parent, call.message.reservation_sub_block)
    if reserved is None or parent is None or found is None:
        return not_found(f"{_place(call)}/{call.message.parent_name}/{call.message.reservation_sub_block}")
    return gce.ReservationSubBlocksGetResponse(resource=sub_block_message(state, reserved, parent, found))


def blocks(state: State, call: Call) -> list[Any] | Refusal:
    """Return the blocks of a reservation; one that is not dense has none."""
    reserved = _reserved(state, call, call.message.reservation)
    if reserved is None:
        return _nothing(call, call.message.reservation)
    return [block_message(state, reserved, each) for each in reserved.blocks]


def sub_blocks(state: State, call: Call) -> list[Any] | Refusal:
    reserved, parent = _parent(state, call)
    if reserved is None or parent is None:
        return not_found(f"{_place(call)}/{call.message.parent_name}")
    return [sub_block_message(state, reserved, parent, each) for each in parent.parts]


def _parent(state: State, call: Call) -> tuple[Reserved | None, Block | None]:
    """Return reservation and block of `reservations/R/reservationBlocks/B`."""
    _, reservation, _, name = call.message.parent_name.split("/")
    reserved = _reserved(state, call, reservation)
    return reserved, block_named(reserved, name)


def _reserved(state: State, call: Call, name: str) -> Reserved | None:
    return state.reservations.get(Resource(call.target.project, call.target.scope, "reservations", name))


def _nothing(call: Call, reservation: str, name: str = "") -> Refusal:
    below = f"/reservationBlocks/{name}" if name else ""
    return not_found(f"{_place(call)}/reservations/{reservation}{below}")


def _place(call: Call) -> str:
    return f"projects/{call.target.project}/{call.target.scope}"

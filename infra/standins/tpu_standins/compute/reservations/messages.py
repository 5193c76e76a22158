"""Reservations and future reservations as Google's messages [py-gce]. Pure."""

from collections.abc import Iterable

from google.cloud.compute_v1 import types as gce

from tpu_standins.compute.paths import Resource, link, number, scope_path, timestamp
from tpu_standins.compute.reservations.supply import in_use
from tpu_standins.compute.reserved import Block, Booking, Reserved, SubBlock
from tpu_standins.compute.state import State

_HEALTHY, _DEGRADED = "HEALTHY", "DEGRADED"


def reservation_message(state: State, reserved: Reserved) -> gce.Reservation:
    path = reserved.path
    message = gce.Reservation(
        kind="compute#reservation",
        id=_id(path, reserved.created),
        name=path.name,
        creation_timestamp=timestamp(reserved.created),
        zone=_zone(path),
        self_link=path.link,
        status=reserved.status,
        specific_reservation_required=True,
        specific_reservation=gce.AllocationSpecificSKUReservation(
            count=reserved.count,
            assured_count=reserved.count,
            in_use_count=sum(in_use(state, reserved).values()),
            instance_properties=_machine(reserved.machine_type),
        ),
    )
    if reserved.deletes is not None:
        message.delete_at_time = timestamp(reserved.deletes)
    if reserved.blocks:
        message.deployment_type = "DENSE"
        bad = sum(_is_degraded(block.parts) for block in reserved.blocks)
        message.resource_status = gce.AllocationResourceStatus(
            reservation_block_count=len(reserved.blocks),
            health_info=gce.AllocationResourceStatusHealthInfo(
                health_status=_health(bad), healthy_block_count=len(reserved.blocks) - bad, degraded_block_count=bad
            ),
        )
    return message


def block_message(state: State, reserved: Reserved, block: Block) -> gce.ReservationBlock:
    used = in_use(state, reserved)
    in_block = sum(used[part.name] for part in block.parts)
    bad = sum(part.degraded > 0 for part in block.parts)
    return gce.ReservationBlock(
        kind="compute#reservationBlock",
        id=_id(reserved.path, reserved.created, block.name),
        name=block.name,
        creation_timestamp=timestamp(reserved.created),
        zone=_zone(reserved.path),
        self_link=f"{reserved.path.link}/reservationBlocks/{block.name}",
        status="READY",
        count=sum(part.count for part in block.parts),
        in_use_count=in_block,
        in_use_host_count=in_block,
        reservation_sub_block_count=len(block.parts),
        reservation_sub_block_in_use_count=sum(used[part.name] > 0 for part in block.parts),
        health_info=gce.ReservationBlockHealthInfo(
            health_status=_health(bad), healthy_sub_block_count=len(block.parts) - bad, degraded_sub_block_count=bad
        ),
    )


def sub_block_message(state: State, reserved: Reserved, block: Block, part: SubBlock) -> gce.ReservationSubBlock:
    used = in_use(state, reserved)[part.name]
    return gce.ReservationSubBlock(
        kind="compute#reservationSubBlock",
        id=_id(reserved.path, reserved.created, block.name, part.name),
        name=part.name,
        creation_timestamp=timestamp(reserved.created),
        zone=_zone(reserved.path),
        self_link=f"{reserved.path.link}/reservationBlocks/{block.name}/reservationSubBlocks/{part.name}",
        status="READY",
        count=part.count,
        in_use_count=used,
        in_use_host_count=used,
        health_info=gce.ReservationSubBlockHealthInfo(
            health_status=_health(part.degraded),
            healthy_host_count=part.count - part.degraded,
            degraded_host_count=part.degraded,
        ),
    )


def booking_message(booking: Booking, now: float) -> gce.FutureReservation:
    path = booking.path
    message = gce.FutureReservation(
        kind="compute#futureReservation",
        id=_id(path, booking.created),
        name=path.name,
        creation_timestamp=timestamp(booking.created),
        zone=_zone(path),
        self_link=path.link,
        planning_status="SUBMITTED",
        reservation_mode=booking.mode,
        specific_reservation_required=True,
        auto_delete_auto_created_reservations=True,
        auto_created_reservations_delete_time=timestamp(booking.ends),
        time_window=gce.FutureReservationTimeWindow(
            start_time=timestamp(booking.starts), end_time=timestamp(booking.ends)
        ),
        specific_sku_properties=gce.FutureReservationSpecificSKUProperties(
            total_count=str(booking.count), instance_properties=_machine(booking.machine_type)
        ),
        status=gce.FutureReservationStatus(
            procurement_status=_procurement(booking, now),
            fulfilled_count=booking.count if booking.done else 0,
            auto_created_reservations=[_made(booking).link] if booking.done else [],
        ),
    )
    if booking.prefix:
        message.name_prefix = booking.prefix
    else:
        message.reservation_name = booking.reservation
    return message


def _made(booking: Booking) -> Resource:
    return Resource(booking.path.project, booking.path.scope, "reservations", booking.reservation)


def _procurement(booking: Booking, now: float) -> str:
    if booking.done:
        return "FULFILLED"
    committed = booking.procurement in {"APPROVED", "COMMITTED"}
    return "PROVISIONING" if committed and now >= booking.starts else booking.procurement


def _is_degraded(parts: Iterable[SubBlock]) -> bool:
    return any(part.degraded for part in parts)


def _health(degraded: int) -> str:
    return _DEGRADED if degraded else _HEALTHY


def _machine(machine_type: str) -> gce.AllocationSpecificSKUAllocationReservedInstanceProperties:
    return gce.AllocationSpecificSKUAllocationReservedInstanceProperties(machine_type=machine_type)


def _zone(path: Resource) -> str:
    return link(scope_path(path.project, path.scope))


def _id(path: Resource, created: float, *below: str) -> int:
    return number(" ".join((str(path), str(created), *below)))

"""Reservations: what reads them, and what is on record of who uses them. Protocols."""

from __future__ import annotations

from typing import Protocol

from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.records.limiters import CapacityPool
from tpu_slices.domain.records.reservations import ReservationPlace, ReservationSeen
from tpu_slices.domain.records.slices import SliceRecord


class ReservationReader(Protocol):
    """Reads reservations of Compute Engine, and what is booked of them."""

    def read(self, place: ReservationPlace) -> ReservationSeen:
        """Return how a reservation is: UNREADABLE if that may not be read. Raise Temporary if nobody answers."""


class ReservedHosts(Protocol):
    """Who uses the hosts of reservations, by the records of slices: a part of the store."""

    def hosts_reserved(self, cluster: ClusterId, pool: CapacityPool) -> int:
        """Return the sum of `queues.hosts_reserved` of slices with this `queues.reserved_pool`, in one call."""

    def users_of_reservation(self, cluster: ClusterId, pool: CapacityPool, most: int) -> tuple[SliceRecord, ...]:
        """Return slices with this `queues.reserved_pool`."""

"""The dependencies of the flows, built by `wiring`."""

from __future__ import annotations

from dataclasses import dataclass

from tpu_slices.ports.backend import Backend
from tpu_slices.ports.clock import Clock
from tpu_slices.ports.delivery import Delivery
from tpu_slices.ports.publisher import Publisher
from tpu_slices.ports.reservations import ReservationReader
from tpu_slices.ports.store import SliceStore


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeDeps:
    """The dependencies for recording facts."""

    store: SliceStore
    publisher: Publisher
    clock: Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileDeps(IntakeDeps):
    """The dependencies for reconciling slices: those for facts, the backend, and what its hosts come from."""

    backend: Backend
    reservations: ReservationReader


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyDeps:
    """The dependencies for notifying targets: neither records nor topics."""

    delivery: Delivery
    clock: Clock

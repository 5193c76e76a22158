"""What the flows get from `wiring`."""

from __future__ import annotations

from dataclasses import dataclass

from tpu_slices.ports.backend import Backend
from tpu_slices.ports.clock import Clock
from tpu_slices.ports.publisher import Publisher
from tpu_slices.ports.store import (
    SliceStore,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeDeps:
    """What it takes to write down what is wanted, as the flows get it from `wiring`."""

    store: SliceStore
    publisher: Publisher
    clock: Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileDeps(IntakeDeps):
    """And what it takes to bring it about."""

    backend: Backend

"""Retries a step after a conflict: another process wrote a record first."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tpu_slices.ports.clock import Clock
from tpu_slices.ports.errors import StaleRecord

T = TypeVar("T")

TRIES = 3
FIRST_PAUSE = 0.1  # seconds, at most; doubled each time


def retry_on_conflict(step: Callable[[], T], clock: Clock) -> T:
    """Return the result of the step; on StaleRecord pause and repeat it, with three tries in all, then raise."""
    for tried in range(TRIES - 1):
        try:
            return step()
        except StaleRecord:
            clock.pause(FIRST_PAUSE * (1 << tried))
    return step()

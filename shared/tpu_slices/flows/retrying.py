"""A stale record is no error: somebody else decided first, so look again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tpu_slices.ports.clock import Clock
from tpu_slices.ports.errors import StaleRecord

T = TypeVar("T")

TRIES = 3
FIRST_PAUSE = 0.1  # seconds, at most; doubled each time


def retry_on_conflict(step: Callable[[], T], clock: Clock) -> T:
    """Do the step; on StaleRecord pause and do it anew, three times in all, then let the message come back."""
    for tried in range(TRIES - 1):
        try:
            return step()
        except StaleRecord:
            clock.pause(FIRST_PAUSE * (1 << tried))
    return step()

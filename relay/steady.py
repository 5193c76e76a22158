"""A monotonic clock for intervals, whose times start at the system clock's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta


class SteadyClock:
    """Runs evenly, even if the system clock is set: what is scheduled comes neither early nor late."""

    def __init__(self, began: datetime, seconds: Callable[[], float]) -> None:
        self._began = began
        self._seconds = seconds
        self._origin = seconds()

    def now(self) -> datetime:
        """Return the time; compare it only with other times of this clock."""
        return self._began + timedelta(seconds=self._seconds() - self._origin)

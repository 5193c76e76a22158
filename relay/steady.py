"""Time by which intervals are measured: it starts with the wall's clock and is never set."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta


class SteadyClock:
    """Goes on evenly, though somebody sets the clock on the wall: what is due stays due when it was due."""

    def __init__(self, began: datetime, seconds: Callable[[], float]) -> None:
        self._began = began
        self._seconds = seconds
        self._origin = seconds()

    def now(self) -> datetime:
        """Say when it is; compare it with nothing but what this clock said before."""
        return self._began + timedelta(seconds=self._seconds() - self._origin)

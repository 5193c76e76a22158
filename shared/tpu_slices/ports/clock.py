"""The clock: its protocol."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Return the time, in UTC."""

    def pause(self, at_most: float) -> None:
        """Sleep for a random time of at most this many seconds, so that conflicting writers do not retry together."""

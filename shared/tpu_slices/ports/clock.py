"""Time: contract of the clock."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Give the time, in UTC."""

    def pause(self, at_most: float) -> None:
        """Let a random time pass, `at_most` so many seconds: two who met once should not meet again."""

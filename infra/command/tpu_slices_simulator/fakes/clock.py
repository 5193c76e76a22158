"""A clock that only a test advances."""

from __future__ import annotations

from datetime import datetime, timedelta


class FakeClock:
    """The port `Clock`; a pause takes no time."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        return self._now

    def pause(self, at_most: float) -> None:
        assert at_most > 0

    def advance(self, by: timedelta) -> None:
        self._now += by

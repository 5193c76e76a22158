"""A clock that a test sets: it does not advance by itself."""

from dataclasses import dataclass

NOON = 1_800_000_000.0
"""A moment, in seconds since 1970."""


@dataclass
class SteppedClock:
    now: float = NOON

    def __call__(self) -> float:
        return self.now

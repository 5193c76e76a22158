"""How far a workload is on its ladder."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedOver:
    """A rung at which a workload asks for nothing for a while."""

    rung: int
    message: str
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OnLadder:
    """At which rung of a ladder a workload asks for slices that it has not."""

    rung: int = 0
    since: datetime
    tried: bool = False
    """Whether a slice of it was refused there since, or waits for its reservation."""
    whole: bool = False
    """Whether it came there as a gang that has not started: what it has elsewhere goes."""
    sent: bool = False
    """Whether the vendor named the zone when it refused: it is tried there before a rung that is better."""
    message: str = ""
    """Why it came there, as told; empty: it began there."""
    passed: tuple[PassedOver, ...] = ()
    nowhere: str = ""
    """Why it asks for nothing at all: what it has is in a zone in which no rung is open; empty: it asks."""

    def passes(self, rung: int, now: datetime) -> bool:
        return any(each.rung == rung and now < each.until for each in self.passed)

"""Whether the relay is well, by what its parts tell of themselves: the answers to Kubernetes' probes.

Every entry is written whole, so parts tell from any thread without a lock, and the probe never waits for one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from relay.objects import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long what may last before it counts."""

    silence: timedelta = timedelta(seconds=90)
    """Without a sign of a watch."""
    publishing: timedelta = timedelta(minutes=2)
    """In which no fact was taken though there were some."""
    tick: timedelta = timedelta(minutes=10)
    """For one turn of a part: more than all its time limits together."""


class Health:
    """Takes in signs; `now` is a clock that is never set."""

    def __init__(self, now: Callable[[], datetime], limits: Limits = Limits()) -> None:
        self._now = now
        self._limits = limits
        self._ticks: dict[str, datetime] = {}
        self._signs: dict[Kind, datetime] = {}
        self._failures: dict[Kind, str] = {}
        self._unpublished: tuple[datetime, str] | None = None

    def ticked(self, part: str) -> None:
        """Take in that a part goes round."""
        self._ticks[part] = self._now()

    def bookmarked(self, kind: Kind) -> None:
        """Take in a sign of a watch whose list is in place."""
        self._signs[kind] = self._now()
        self._failures.pop(kind, None)
        self.ticked(kind)

    def failed(self, kind: Kind, why: str) -> None:
        """Take in that a list or a watch failed."""
        self._failures[kind] = why
        self.ticked(kind)

    def published(self) -> None:
        self._unpublished = None

    def not_published(self, why: str) -> None:
        """Take in that facts were not taken; since when counts from the first time."""
        since, _ = self._unpublished or (self._now(), why)
        self._unpublished = (since, why)

    def unready(self) -> list[str]:
        """Say, a line each, what keeps the relay from telling what there is in the cluster."""
        now = self._now()
        lines = [line for kind in Kind if (line := self._of_watch(kind, now))]
        if self._unpublished is not None and now - self._unpublished[0] > self._limits.publishing:
            since, why = self._unpublished
            lines.append(f"publishing: fails for {_seconds(now - since)}: {why}")
        return lines

    def hung(self) -> list[str]:
        """Name, a line each, the parts that do not go round any more."""
        now, ticks = self._now(), dict(self._ticks)
        return [
            f"{part}: no turn for {_seconds(now - ticked)}"
            for part, ticked in sorted(ticks.items())
            if now - ticked > self._limits.tick
        ]

    def _of_watch(self, kind: Kind, now: datetime) -> str | None:
        sign, failure = self._signs.get(kind), self._failures.get(kind)
        detail = f": {failure}" if failure else ""
        if sign is None:
            return f"{kind}: no list yet{detail}"
        if now - sign > self._limits.silence:
            return f"{kind}: no sign for {_seconds(now - sign)}{detail}"
        return None


def _seconds(time: timedelta) -> str:
    return f"{time.total_seconds():.0f} s"

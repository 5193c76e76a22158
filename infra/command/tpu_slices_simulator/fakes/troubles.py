"""What becomes of calls to GKE: windows in which they fail."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Verb(StrEnum):
    """The methods of the port; LIST: those that read a whole cluster."""

    LOOK = "LOOK"
    CREATE = "CREATE"
    DELETE = "DELETE"
    CANCEL = "CANCEL"
    LIST = "LIST"
    JOIN = "JOIN"
    RELABEL = "RELABEL"


ORDERS = frozenset({Verb.CREATE, Verb.DELETE, Verb.CANCEL, Verb.RELABEL})


class Trouble(StrEnum):
    """How a call fails."""

    FORBIDDEN = "FORBIDDEN"
    """403."""
    UNAVAILABLE = "UNAVAILABLE"
    """503, before an order has an effect."""
    ANSWER_LOST = "ANSWER_LOST"
    """503, after it had its effect."""


@dataclass(slots=True, kw_only=True)
class Window:
    """Calls of these verbs fail until a time, and at most that many; None: without limit."""

    trouble: Trouble
    verbs: frozenset[Verb]
    until: datetime | None = None
    calls: int | None = None

    def is_open(self, now: datetime) -> bool:
        return (self.until is None or now < self.until) and self.calls != 0


class Troubles:
    """The windows that were opened; where several are open, the one that was opened first takes the call."""

    def __init__(self) -> None:
        self._windows: list[Window] = []

    def open(self, window: Window) -> None:
        self._windows.append(window)

    def close(self, troubles: Collection[Trouble]) -> None:
        self._windows = [window for window in self._windows if window.trouble not in troubles]

    def of(self, verb: Verb, now: datetime) -> Trouble | None:
        """Return how this call fails, and count it; None: it does not."""
        for window in self._windows:
            if verb in window.verbs and window.is_open(now):
                window.calls = None if window.calls is None else window.calls - 1
                return window.trouble
        return None

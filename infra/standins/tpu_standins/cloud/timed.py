"""What the simulated GKE and Compute Engine share: state under one lock, threads that advance time, the audit log."""

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

Clock = Callable[[], float]
"""Seconds since 1970."""

Entry = dict[str, Any]
"""A google.logging.v2.LogEntry as a sink exports it: JSON in camelCase."""

_CALLS_KEPT = 100_000
_LONGEST_WAIT = 5.0
_RETRY = 0.25


@dataclass(frozen=True, slots=True)
class Moment:
    """When something happens, and the random part of the names that it generates."""

    now: float
    token: str


@dataclass(frozen=True, slots=True)
class Outside:
    """A control plane's external dependencies. `publish` is the log sink's destination, if there is one."""

    clock: Clock
    token: Callable[[], str]
    publish: Callable[[Entry], None] | None = None


class _Pace(Protocol):
    @property
    def log(self) -> float:
        """How long an entry takes to the sink, in seconds."""


class _State(Protocol):
    @property
    def pace(self) -> _Pace: ...


S = TypeVar("S", bound=_State)
C = TypeVar("C")


class Timed(ABC, Generic[S, C]):
    """Changes its state under one lock, from any thread; threads of its own let time pass, and export the audit log.

    Implementations answer calls, and say what time does. `passes` is the log sink's filter, `thread` a name.
    """

    def __init__(self, state: S, outside: Outside, passes: Callable[[Entry], bool], thread: str) -> None:
        self._state = state
        self._outside = outside
        self._passes = passes
        self._entries: deque[tuple[float, Entry]] = deque()
        self._calls: deque[C] = deque(maxlen=_CALLS_KEPT)
        self._changed = threading.Condition()
        self._told = 0
        self._stopping = False
        self._threads = [
            threading.Thread(target=self._repeat, args=[self._tend], name=thread, daemon=True),
            threading.Thread(target=self._repeat, args=[self._export], name=f"{thread}-log", daemon=True),
        ]

    @abstractmethod
    def _advance(self, now: float) -> None:
        """Let the state be that of a moment, and record what ended on the way. The lock is held."""

    @abstractmethod
    def _next_change(self, now: float) -> float:
        """Return when time will next change the state; infinity: never. The lock is held."""

    @abstractmethod
    def _follow(self, state: S, now: float) -> bool:
        """Bring what is outside up to a state; return False if some of it must be tried again."""

    def _adopt(self, _now: float) -> bool:
        """Adopt what `_follow` came to know; return whether that changed the state. The lock is held."""
        return False

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def change(self, button: Callable[[S, Moment], S]) -> S:
        """Apply a button's change and return the new state; if it raises, the state is unchanged."""
        with self._changed:
            moment = self._advanced()
            self._state = button(self._state, moment)
            self._tell()
            return self._state

    def look(self) -> tuple[S, float]:
        """Return the current state and the current time."""
        with self._changed:
            moment = self._advanced()
            return self._state, moment.now

    def wait_for_change(self, seconds: float) -> None:
        """Return when something may have changed, when so many seconds are over, or when this control plane stops."""
        with self._changed:
            if not self._stopping:
                self._changed.wait(seconds)

    def calls(self) -> tuple[C, ...]:
        with self._changed:
            return tuple(self._calls)

    def tick(self) -> float:
        """Bring what is outside and the audit log up to date; return the seconds until there may be more to do."""
        return min(self._tend(), self._export())

    def _tend(self) -> float:
        """Bring what is outside up to date; return the seconds until there may be more to do."""
        state, now = self.look()
        settled = self._follow(state, now)
        with self._changed:
            moved = self._adopt(now)
            self._changed.notify_all()
            return 0.0 if moved else self._until(self._next_change(now), now, _LONGEST_WAIT if settled else _RETRY)

    def _export(self) -> float:
        """Export the entries that are due, whatever is done outside; return the seconds until there may be more."""
        with self._changed:
            now = self._advanced().now
            due = [entry for at, entry in self._entries if at <= now]
            self._entries = deque((at, entry) for at, entry in self._entries if at > now)
            more = min([self._next_change(now), *(at for at, _ in self._entries)])
        for entry in due:
            if self._outside.publish is not None and self._passes(entry):
                self._outside.publish(entry)
        return self._until(more, now, _LONGEST_WAIT)

    def _until(self, at: float, now: float, longest: float) -> float:
        return max(0.0, min(at - now, longest))

    def _repeat(self, step: Callable[[], float]) -> None:
        while not self._stopping:
            told = self._told
            wait = step()
            with self._changed:
                self._changed.wait_for(partial(self._is_new, told), timeout=wait)

    def _is_new(self, told: int) -> bool:
        return self._stopping or self._told != told

    def _tell(self) -> None:
        """Wake all who wait for a change. The lock is held."""
        self._told += 1
        self._changed.notify_all()

    def _advanced(self) -> Moment:
        """Let time pass until now. The lock is held."""
        moment = Moment(self._outside.clock(), self._outside.token())
        self._advance(moment.now)
        return moment

    def _record(self, entry: Entry | None, now: float) -> None:
        if entry is not None:
            self._entries.append((now + self._state.pace.log, entry))

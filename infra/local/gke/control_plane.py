"""The only mutable object: state under one lock, and the thread that advances time."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from infra.local.gke.audit import Entry, ended_entry, passes_sink, started_entry
from infra.local.gke.codes import Code
from infra.local.gke.faults import lasting
from infra.local.gke.hosts import appearances
from infra.local.gke.lifecycle import Moment, advance, next_change
from infra.local.gke.nodes import NodeKeeper, Nodes, described
from infra.local.gke.rules import Refusal
from infra.local.gke.service import METHODS, Message, Outcome
from infra.local.gke.state import State

Clock = Callable[[], float]
"""Seconds since 1970."""

_CALLS_KEPT = 100_000
_LONGEST_WAIT = 5.0
_RETRY = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call and its outcome: `monotonic` and `at` (seconds since 1970) are its arrival, `code` is a name."""

    method: str
    cluster: str
    pool: str
    monotonic: float
    at: float
    code: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Outside:
    """The control plane's external dependencies. `publish` is the log sink's destination, if there is one."""

    clock: Clock
    token: Callable[[], str]
    nodes: Nodes
    publish: Callable[[Entry], None] | None = None


class ControlPlane:
    """Answers calls from any thread; a thread of its own maintains Nodes and writes log entries."""

    def __init__(self, state: State, outside: Outside) -> None:
        self._state = state
        self._outside = outside
        self._keeper = NodeKeeper(outside.nodes)
        self._entries: deque[tuple[float, Entry]] = deque()
        self._calls: deque[Call] = deque(maxlen=_CALLS_KEPT)
        self._changed = threading.Condition()
        self._news = False
        self._stopping = False
        self._thread = threading.Thread(target=self._let_time_pass, name="gke-time", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    def answer(self, method: str, request: Message) -> Message | Refusal:
        """Apply a call and return its response, or the refusal to send instead."""
        came_in = time.monotonic()
        with self._changed:
            moment = self._advanced()
            outcome = METHODS[method].respond(self._state, request, moment)
            self._state = outcome.state
            if outcome.started is not None:
                self._record(started_entry(outcome.started), moment.now)
            self._calls.append(_call(method, outcome, came_in, moment.now))
            self._tell()
            return outcome.answer

    def change(self, button: Callable[[State, Moment], State]) -> State:
        """Apply a button's change and return the new state; if it raises, the state is unchanged."""
        with self._changed:
            moment = self._advanced()
            self._state = button(self._state, moment)
            self._tell()
            return self._state

    def look(self) -> tuple[State, float]:
        """Return the current state and the current time."""
        with self._changed:
            moment = self._advanced()
            return self._state, moment.now

    def calls(self) -> tuple[Call, ...]:
        with self._changed:
            return tuple(self._calls)

    def tick(self) -> float:
        """Bring Nodes and the audit log up to date; return the seconds until there may be more to do."""
        state, now = self.look()
        settled = self._keeper.follow(appearances(state, now), described(state), now)
        with self._changed:
            moved = self._state.nodes != self._keeper.standing
            self._state = replace(self._state, nodes=self._keeper.standing)
            self._advance(now)
            due = [entry for at, entry in self._entries if at <= now]
            self._entries = deque((at, entry) for at, entry in self._entries if at > now)
            wait = 0.0 if moved else self._until_more(now, _LONGEST_WAIT if settled else _RETRY)
        self._publish(due)
        return wait

    def _until_more(self, now: float, longest: float) -> float:
        due = min([next_change(self._state, now), *(at for at, _ in self._entries)])
        return max(0.0, min(due - now, longest))

    def _publish(self, entries: list[Entry]) -> None:
        for entry in entries:
            if self._outside.publish is not None and passes_sink(entry):
                self._outside.publish(entry)

    def _let_time_pass(self) -> None:
        while not self._stopping:
            self._news = False
            wait = self.tick()
            with self._changed:
                self._changed.wait_for(lambda: self._stopping or self._news, timeout=wait)

    def _tell(self) -> None:
        self._news = True
        self._changed.notify_all()

    def _advanced(self) -> Moment:
        moment = Moment(self._outside.clock(), self._outside.token())
        self._advance(moment.now)
        return moment

    def _advance(self, now: float) -> None:
        self._state, ended = advance(lasting(self._state, now), now)
        for operation in ended:
            self._record(ended_entry(operation), now)

    def _record(self, entry: Entry | None, now: float) -> None:
        if entry is not None:
            self._entries.append((now + self._state.pace.log, entry))


def _call(method: str, outcome: Outcome, came_in: float, at: float) -> Call:
    refused = outcome.answer if isinstance(outcome.answer, Refusal) else None
    code = refused.code if refused else Code.OK
    return Call(
        method=method,
        cluster=outcome.cluster,
        pool=outcome.pool,
        monotonic=came_in,
        at=at,
        code=code.name,
        message=refused.message if refused else "",
    )

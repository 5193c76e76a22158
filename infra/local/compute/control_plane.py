"""The only mutable object: state under one lock, and the thread that advances time."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from infra.local.compute import audit
from infra.local.compute.errors import Refusal
from infra.local.compute.lifecycle import Moment, advance, next_change
from infra.local.compute.routes import understand
from infra.local.compute.service import respond
from infra.local.compute.state import Operation, State
from infra.local.compute.vms import Boot, Idle, running
from infra.local.gke.audit import Entry

Clock = Callable[[], float]
"""Seconds since 1970."""

_CALLS_KEPT = 100_000
_LONGEST_WAIT = 5.0
_RETRY = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """One call and its outcome: `monotonic` and `at` (seconds since 1970) are its arrival, `code` is that of HTTP.

    `reason`: Compute's word for an error, `rule`: the row that refused. `operation`: the name of what the call started.
    """

    method: str
    target: str
    monotonic: float
    at: float
    code: int = 200
    reason: str = ""
    message: str = ""
    rule: str = ""
    operation: str = ""


@dataclass(frozen=True, slots=True)
class Outside:
    """The control plane's external dependencies. `publish` is the log sink's destination, if there is one."""

    clock: Clock
    token: Callable[[], str]
    publish: Callable[[Entry], None] | None = None


class ControlPlane:
    """Answers calls from any thread; a thread of its own lets VMs boot and writes log entries."""

    def __init__(self, state: State, outside: Outside) -> None:
        self._state = state
        self._outside = outside
        self._boot: Boot = Idle()
        self._entries: deque[tuple[float, Entry]] = deque()
        self._calls: deque[Called] = deque(maxlen=_CALLS_KEPT)
        self._changed = threading.Condition()
        self._news = False
        self._stopping = False
        self._thread = threading.Thread(target=self._let_time_pass, name="compute-time", daemon=True)

    def boots(self, boot: Boot) -> None:
        """Let machines do this from now on; to be called before the start."""
        self._boot = boot

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    def answer(self, verb: str, url: str, body: bytes) -> Any:
        """Apply a request; return one of Google's messages, or the refusal to send instead."""
        came_in = time.monotonic()
        call = understand(verb, url, body)
        with self._changed:
            moment = self._advanced()
            if isinstance(call, Refusal):
                self._calls.append(_called(Called(method=verb, target=url, monotonic=came_in, at=moment.now), call))
                return call
            outcome = respond(self._state, call, moment)
            self._state = outcome.state
            self._record(outcome.started, audit.started_entry, moment.now)
            name = outcome.started.path.name if outcome.started else ""
            called = Called(
                method=call.method, target=str(call.target), monotonic=came_in, at=moment.now, operation=name
            )
            self._calls.append(_called(called, outcome.answer))
            self._tell()
            return outcome.answer

    def change(self, button: Callable[[State, float], State]) -> State:
        """Apply a button's change and return the new state; if it raises, the state is unchanged."""
        with self._changed:
            moment = self._advanced()
            self._state = button(self._state, moment.now)
            self._tell()
            return self._state

    def look(self) -> tuple[State, float]:
        """Return the current state and the current time."""
        with self._changed:
            moment = self._advanced()
            return self._state, moment.now

    def wait_for_change(self, seconds: float) -> None:
        """Return when something may have changed, when so many seconds are over, or when this control plane stops."""
        with self._changed:
            if not self._stopping:
                self._changed.wait(seconds)

    def calls(self) -> tuple[Called, ...]:
        with self._changed:
            return tuple(self._calls)

    def tick(self) -> float:
        """Bring machines and the audit log up to date; return the seconds until there may be more to do."""
        state, now = self.look()
        settled = self._boot.follow(running(state, now), now)
        with self._changed:
            due = [entry for at, entry in self._entries if at <= now]
            self._entries = deque((at, entry) for at, entry in self._entries if at > now)
            wait = self._until_more(now, _LONGEST_WAIT if settled else _RETRY)
            self._changed.notify_all()
        self._publish(due)
        return wait

    def _until_more(self, now: float, longest: float) -> float:
        due = min([next_change(self._state, now), *(at for at, _ in self._entries)])
        return max(0.0, min(due - now, longest))

    def _publish(self, entries: list[Entry]) -> None:
        for entry in entries:
            if self._outside.publish is not None and audit.passes_sink(entry):
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
        before = self._state
        self._state, ended = advance(before, moment.now)
        for operation in ended:
            self._record(operation, audit.ended_entry, moment.now, before)
        return moment

    def _record(
        self,
        operation: Operation | None,
        entry: Callable[[State, Operation], Entry],
        now: float,
        state: State | None = None,
    ) -> None:
        if operation is not None:
            self._entries.append((now + self._state.pace.log, entry(state or self._state, operation)))


def _called(called: Called, answer: Any) -> Called:
    if not isinstance(answer, Refusal):
        return called
    return replace(called, code=int(answer.code), reason=answer.reason, message=answer.message, rule=answer.rule)

"""The only mutable thing: state under one lock, and the thread that lets time pass."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from google.rpc import code_pb2

from infra.local.gke.audit import Entry, ended_entry, passes_sink, started_entry
from infra.local.gke.hosts import appearances
from infra.local.gke.lifecycle import Moment, advance, next_change
from infra.local.gke.nodes import NodeKeeper, Nodes
from infra.local.gke.rules import Refusal
from infra.local.gke.service import METHODS, Message
from infra.local.gke.state import Operation, State

Clock = Callable[[], float]
"""Seconds since 1970."""

_log = logging.getLogger(__name__)
_CALLS_KEPT = 100_000
_LONGEST_WAIT = 5.0
_RETRY = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call as answered: `monotonic` and `at` (seconds since 1970) when it came in, `code` by name."""

    method: str
    cluster: str
    pool: str
    monotonic: float
    at: float
    code: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Outside:
    """What the control plane needs of the world. `publish` is the log sink's destination, if there is one."""

    clock: Clock
    token: Callable[[], str]
    nodes: Nodes
    publish: Callable[[Entry], None] | None = None


class ControlPlane:
    """Answers calls from any thread; Nodes and log entries are the business of one thread of its own."""

    def __init__(self, state: State, outside: Outside) -> None:
        self._state = state
        self._outside = outside
        self._keeper = NodeKeeper(outside.nodes)
        self._entries: deque[tuple[float, Entry]] = deque()
        self._calls: deque[Call] = deque(maxlen=_CALLS_KEPT)
        self._changed = threading.Condition()
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
        """The response, or the refusal to send in its place."""
        came_in = time.monotonic()
        with self._changed:
            moment = self._moment()
            self._advance(moment.now)
            outcome = METHODS[method].respond(self._state, request, moment)
            self._state = outcome.state
            if outcome.started is not None:
                self._record(started_entry(outcome.started), moment.now)
            code, text = _verdict(outcome.answer)
            self._calls.append(
                Call(
                    method=method,
                    cluster=outcome.cluster,
                    pool=outcome.pool,
                    monotonic=came_in,
                    at=moment.now,
                    code=code,
                    message=text,
                )
            )
            self._changed.notify_all()
            return outcome.answer

    def change(self, button: Callable[[State, Moment], State]) -> State:
        """What a button does; whatever it raises leaves the state as it was."""
        with self._changed:
            moment = self._moment()
            self._advance(moment.now)
            self._state = button(self._state, moment)
            self._changed.notify_all()
            return self._state

    def look(self) -> tuple[State, float]:
        """The state now, and when that is."""
        with self._changed:
            now = self._outside.clock()
            self._advance(now)
            return self._state, now

    def calls(self) -> tuple[Call, ...]:
        with self._changed:
            return tuple(self._calls)

    def tick(self) -> float:
        """Brings Nodes and log up to date; returns the seconds until there may be more to do."""
        state, now = self.look()
        settled = self._keeper.follow(state, appearances(state, now))
        with self._changed:
            before = self._state
            self._state = replace(self._state, nodes=self._keeper.standing)
            self._advance(now)
            changed = self._state != before if settled else False
            due = [entry for at, entry in self._entries if at <= now]
            self._entries = deque((at, entry) for at, entry in self._entries if at > now)
            wait = 0.0 if changed else self._wait(now, settled=settled)
        self._publish(due)
        return wait

    def _wait(self, now: float, *, settled: bool) -> float:
        due = min([next_change(self._state, now), *(at for at, _ in self._entries)])
        return max(0.0, min(due - now, _LONGEST_WAIT if settled else _RETRY))

    def _publish(self, entries: list[Entry]) -> None:
        for entry in entries:
            if self._outside.publish is not None and passes_sink(entry):
                self._outside.publish(entry)

    def _let_time_pass(self) -> None:
        while not self._stopping:
            wait = self.tick()
            with self._changed:
                if not self._stopping:
                    self._changed.wait(wait)

    def _advance(self, now: float) -> None:
        self._state, ended = advance(self._state, now)
        for operation in ended:
            self._record(ended_entry(operation), now)

    def _record(self, entry: Entry | None, now: float) -> None:
        if entry is not None:
            self._entries.append((now + self._state.pace.log, entry))

    def _moment(self) -> Moment:
        return Moment(self._outside.clock(), self._outside.token())


def _verdict(answer: Message | Refusal) -> tuple[str, str]:
    if isinstance(answer, Refusal):
        return code_pb2.Code.Name(code_pb2.Code.ValueType(answer.code)), answer.message
    return "OK", ""

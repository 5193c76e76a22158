"""The only mutable object: the state of Compute Engine, and what runs on its VMs."""

import time
from dataclasses import dataclass, replace
from typing import Any

from tpu_standins.cloud.timed import Outside, Timed
from tpu_standins.compute import audit
from tpu_standins.compute.errors import Refusal
from tpu_standins.compute.lifecycle import advance, next_change
from tpu_standins.compute.routes import understand
from tpu_standins.compute.service import respond
from tpu_standins.compute.state import State
from tpu_standins.compute.vms import Boot, Idle, running


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


class ControlPlane(Timed[State, Called]):
    """Answers calls from any thread; a thread of its own lets VMs boot and writes log entries."""

    def __init__(self, state: State, outside: Outside) -> None:
        super().__init__(state, outside, audit.passes_sink, "compute-time")
        self._boot: Boot = Idle()

    def boots(self, boot: Boot) -> None:
        """Let machines do this from now on; to be called before the start."""
        self._boot = boot

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
            if outcome.started is not None:
                self._record(audit.started_entry(self._state, outcome.started), moment.now)
            name = outcome.started.path.name if outcome.started else ""
            called = Called(
                method=call.method, target=str(call.target), monotonic=came_in, at=moment.now, operation=name
            )
            self._calls.append(_called(called, outcome.answer))
            self._tell()
            return outcome.answer

    def _follow(self, state: State, now: float) -> bool:
        return self._boot.follow(running(state, now), now)

    def _next_change(self, now: float) -> float:
        return next_change(self._state, now)

    def _advance(self, now: float) -> None:
        before = self._state
        self._state, ended = advance(before, now)
        for operation in ended:
            self._record(audit.ended_entry(before, operation), now)


def _called(called: Called, answer: Any) -> Called:
    if not isinstance(answer, Refusal):
        return called
    return replace(called, code=int(answer.code), reason=answer.reason, message=answer.message, rule=answer.rule)

"""The only mutable object: the state of GKE, and the Nodes of its hosts."""

import time
from dataclasses import dataclass, replace

from tpu_standins.cloud.faults import lasting
from tpu_standins.cloud.nodes import NodeKeeper, Nodes
from tpu_standins.cloud.timed import Outside, Timed
from tpu_standins.gke.audit import ended_entry, passes_sink, started_entry
from tpu_standins.gke.codes import Code
from tpu_standins.gke.hosts import appearances, described
from tpu_standins.gke.lifecycle import advance, next_change
from tpu_standins.gke.rules import Refusal
from tpu_standins.gke.service import METHODS, Message, Outcome
from tpu_standins.gke.state import State


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


class ControlPlane(Timed[State, Call]):
    """Answers calls from any thread; a thread of its own maintains Nodes and writes log entries."""

    def __init__(self, state: State, outside: Outside, nodes: Nodes) -> None:
        super().__init__(state, outside, passes_sink, "gke-time")
        self._keeper = NodeKeeper(nodes)

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

    def _follow(self, state: State, now: float) -> bool:
        leaving = frozenset(host.name for host in state.hosts.values() if host.leaving)
        return self._keeper.follow(appearances(state, now), described(state), now, leaving)

    def _adopt(self, now: float) -> bool:
        moved = self._state.nodes != self._keeper.standing
        self._state = replace(self._state, nodes=self._keeper.standing)
        self._advance(now)
        return moved

    def _next_change(self, now: float) -> float:
        return next_change(self._state, now)

    def _advance(self, now: float) -> None:
        self._state, ended = advance(replace(self._state, faults=lasting(self._state.faults, now)), now)
        for operation in ended:
            self._record(ended_entry(operation), now)


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

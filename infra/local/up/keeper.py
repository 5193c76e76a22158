"""Keeps every part of a stack running: a part that dies is restarted, one that was stopped stays down.

Only the main thread starts programs (see `tpu_standins.processes`), so orders wait for its next iteration. It never
waits for one part: that may need another, which must be restarted first.
"""

import queue
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import Enum

from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.processes import Child, Processes, Program

LONGEST_PAUSE = 30.0
FORGOTTEN_AFTER = 60.0
"""Seconds after which a start counts as successful: the next exit is then counted as the first."""
LARGEST_LOG = 32_000_000


class Order(Enum):
    STOP = "stop"
    START = "start"
    KILL = "kill"


class UnknownPart(ValueError):
    """There is no part of this name; the message lists the existing ones."""


class NotYet(Exception):
    """What a part had before it died cannot be restored now; says why."""


@dataclass(slots=True, kw_only=True)
class Part:
    """A part: its child while it runs; `due` is when it is restarted after it died, by the monotonic clock."""

    program: Program
    child: Child | None
    started: float
    ready: bool = False
    stopped: bool = False
    deaths: int = 0
    due: float | None = None

    @property
    def status(self) -> str:
        if self.child is not None:
            return f"{'running' if self.ready else 'starting'}, pid {self.child.process.pid}"
        return "stopped" if self.stopped else "died; will be restarted"


@dataclass(slots=True, kw_only=True)
class Keeper:
    """`afterwards`: by name, what to do once a part is ready again, to restore the state that it lost.

    It is tried again in the next iteration if it raises NotYet. `round_seconds`: how long an iteration waits for an
    order.
    """

    processes: Processes
    afterwards: Mapping[str, Callable[[], None]]
    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    round_seconds: float = 0.5
    parts: dict[str, Part] = field(default_factory=dict)
    _orders: queue.SimpleQueue[tuple[Order, str, Future[str]]] = field(default_factory=queue.SimpleQueue)

    def take_over(self) -> None:
        """Adopt the programs that are running now."""
        for child in self.processes.children():
            self.parts[child.program.name] = Part(program=child.program, child=child, started=self.clock(), ready=True)

    def ask(self, order: Order, name: str) -> Future[str]:
        """Queue an order, from any thread, for the next iteration. Raise UnknownPart if there is no such part."""
        part = self._named(name)
        outcome: Future[str] = Future()
        self._orders.put((order, part.program.name, outcome))
        return outcome

    def statuses(self) -> dict[str, str]:
        return {name: part.status for name, part in list(self.parts.items())}

    def keep(self, rounds: Iterator[object]) -> None:
        """Run one iteration per item of `rounds`; an order is carried out at once."""
        for _ in rounds:
            self._obey()
            for part in self.parts.values():
                self._look_after(part)

    def _obey(self) -> None:
        try:
            order, name, outcome = self._orders.get(timeout=self.round_seconds)
        except queue.Empty:
            return
        outcome.set_result(self._do(order, self.parts[name]))

    def _do(self, order: Order, part: Part) -> str:
        name = part.program.name
        match order:
            case Order.STOP:
                part.stopped, part.due = True, None
                self._down(part)
            case Order.START if part.child is None:
                part.stopped = False
                self._up(part)
            case Order.KILL if part.child is not None:
                part.child.process.kill()
                part.child.ended(within=PATIENCE_SECONDS)
                return f"{name} was killed and will be restarted"
            case _:
                pass
        return f"{name}: {part.status}"

    def _look_after(self, part: Part) -> None:
        if part.due is not None and self.clock() >= part.due:
            self._up(part)
        if part.child is None:
            return
        if trouble := self._trouble(part, part.child):
            self._restart_later(part, part.child, trouble)
        else:
            _cut(part.child)

    def _up(self, part: Part) -> None:
        part.due, part.ready = None, False
        (part.child,) = self.processes.start(part.program)
        part.started = self.clock()

    def _trouble(self, part: Part, child: Child) -> str | None:
        """Return why a part must be started again, or None; note that it is ready, once it is."""
        if part.ready:
            return "died" if child.ended() else None
        if hopeless := child.failure():
            return hopeless
        missing = self._missing(child)
        if missing is None:
            part.ready = True
            self.say(f"{part.program.name} is running again")
        elif self.clock() - part.started > part.program.patience_seconds:
            return f"was not running again within {part.program.patience_seconds:.0f} s ({missing})"
        return None

    def _missing(self, child: Child) -> str | None:
        """Return what a part that was started still lacks, or None if it runs as before."""
        if not child.is_ready():
            return "it is not ready"
        try:
            self.afterwards.get(child.program.name, _nothing)()
        except NotYet as problem:
            return str(problem)
        return None

    def _restart_later(self, part: Part, child: Child, why: str) -> None:
        part.deaths = 1 if self.clock() - part.started > FORGOTTEN_AFTER else part.deaths + 1
        pause = min(LONGEST_PAUSE, 0.5 * 2 ** (part.deaths - 1))
        part.due = self.clock() + pause
        self.say(f"{part.program.name} {why} and will be restarted in {pause:.0f} s: see {child.log}.1")
        self._down(part)

    def _down(self, part: Part) -> None:
        if part.child is not None:
            child, part.child = part.child, None
            self.processes.end(child)

    def _named(self, name: str) -> Part:
        for full in (name, f"function-{name}"):
            if full in self.parts:
                return self.parts[full]
        raise UnknownPart(f'there is no part "{name}": {", ".join(self.parts)}')


def _nothing() -> None:
    """Restore nothing: most parts keep their state elsewhere."""


def _cut(child: Child) -> None:
    """Truncate a log that has grown too large; the program writes it in append mode."""
    if child.log.stat().st_size > LARGEST_LOG:
        child.log.write_bytes(b"")

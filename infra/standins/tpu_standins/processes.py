"""Child processes: started, waited for until they are ready, and ended when this process ends.

`setpriv --pdeathsig` asks the kernel to signal a child when the thread that started it dies, for whatever reason
(prctl(2), PR_SET_PDEATHSIG). Hence only the main thread starts programs; they still come up in parallel,
because starting one does not wait for it.
"""

import os
import re
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from tpu_standins.interrupts import uninterrupted
from tpu_standins.patience import ATTEMPT_SECONDS, PATIENCE_SECONDS

LOOK_AGAIN_SECONDS = 0.03
LINES_OF_LOG = 15

# If the parent dies before prctl(2) is called, no signal will follow: then the program is not executed at all.
UNLESS_ORPHANED = ("sh", "-c", '[ "$PPID" = "$0" ] && exec "$@"')

# Children do not inherit the user's credentials, proxies or endpoints.
INHERITED = ("HOME", "LANG", "PATH", "TMPDIR", "USER")


@dataclass(frozen=True, slots=True)
class Listens:
    """Ready when this program itself, not another one, listens on the TCP port."""

    port: int


@dataclass(frozen=True, slots=True)
class Says:
    """Ready when a complete line of its output matches the regular expression."""

    line: str


@dataclass(frozen=True, slots=True)
class Asked:
    """Ready when this question is answered with yes. Only this program may be able to answer it."""

    question: Callable[[], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program to start. `hopeless` matches output after which it will never be ready, although it keeps running.

    `ending` is the signal by which it is asked to end, and which it gets when this process dies.
    """

    name: str
    command: tuple[str, ...]
    ready: Listens | Says | Asked
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    hopeless: str | None = None
    patience_seconds: float = PATIENCE_SECONDS
    ending: signal.Signals = signal.SIGTERM


class ProgramFailed(Exception):
    """A program exited or was not ready in time. The message ends with the tail of its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A started program. The pidfd reports its exit without reaping it, so that its pid is not reused."""

    program: Program
    process: subprocess.Popen[bytes]
    descriptor: int
    log: Path

    def ended(self, within: float = 0) -> bool:
        """Wait up to `within` seconds for the process to exit; return whether it has."""
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        return bool(poll.poll(within * 1000))

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def is_ready(self) -> bool:
        match self.program.ready:
            case Listens(port):
                return port in _listening_ports(self.process.pid)
            case Says(line):
                return _whole_line(line, self.output()) is not None
            case Asked(question):
                return question()

    def failure(self) -> str | None:
        """Return why it will never be ready, or None as long as it may still become ready."""
        if self.ended():
            return "exited"
        if self.program.hopeless and (found := re.search(self.program.hopeless, self.output())):
            return f"printed {found.group()!r}"
        return None

    def explain(self, why: str) -> ProgramFailed:
        tail = "\n".join(self.output().splitlines()[-LINES_OF_LOG:])
        return ProgramFailed(f"{self.program.name} {why}; the last lines of {self.log}:\n{tail}")

    def ask_to_end(self) -> None:
        signal.pidfd_send_signal(self.descriptor, self.program.ending)

    def collect(self, grace_seconds: float) -> None:
        """Wait for the grace period, send SIGKILL to the process group, and reap the process."""
        self.ended(within=grace_seconds)
        # The process is not reaped yet, so the group id still denotes this group.
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.descriptor)


@dataclass(slots=True, kw_only=True)
class Processes:
    """Starts programs, and ends them in reverse order when the `with` block is left.

    Programs started together are ended together. `environment` is the caller's: a child sees only the
    variables in INHERITED and those of its own program.
    """

    setpriv: Path
    logs: Path
    environment: Mapping[str, str]
    grace_seconds: float = ATTEMPT_SECONDS
    clock: Callable[[], float] = time.monotonic
    _batches: list[list[Child]] = field(default_factory=list)

    def start(self, *programs: Program) -> tuple[Child, ...]:
        """Start the programs without waiting for them to be ready."""
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("programs would end together with the thread that starts them")
        self.logs.mkdir(parents=True, exist_ok=True)
        batch: list[Child] = []
        self._batches.append(batch)
        for each in programs:
            self._start(each, batch)
        return tuple(batch)

    def end(self, child: Child) -> None:
        """End one program, or clean up after one that exited by itself; its log is kept as `NAME.log.1`."""
        with uninterrupted():
            if not child.ended():
                child.ask_to_end()
            child.collect(self.grace_seconds)
            for batch in self._batches:
                if child in batch:
                    batch.remove(child)
            child.log.replace(f"{child.log}.1")

    def _start(self, program: Program, batch: list[Child]) -> Child:
        log = self.logs / f"{program.name}.log"
        log.unlink(missing_ok=True)
        with (
            uninterrupted(),
            log.open("ab") as output,
        ):  # append mode: the file may be truncated while it is being written
            process = subprocess.Popen(
                [*self._orphans_get(program.ending), *UNLESS_ORPHANED, str(os.getpid()), *program.command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=program.folder,
                env=_inherited(self.environment) | dict(program.environment),
                start_new_session=True,
            )
            child = Child(program=program, process=process, descriptor=os.pidfd_open(process.pid), log=log)
            batch.append(child)
            return child

    def _orphans_get(self, number: signal.Signals) -> tuple[str, ...]:
        return (str(self.setpriv), "--pdeathsig", number.name.removeprefix("SIG"))

    def wait_until_ready(self, *children: Child) -> None:
        """Wait until all are ready. Raise ProgramFailed for the first that exits, gives up or is not ready in time."""
        started = self.clock()
        waiting = list(children)
        while waiting:
            child = waiting[0]
            if child.is_ready():
                waiting.remove(child)
                continue
            for each in waiting:
                if why := each.failure():
                    raise each.explain(why)
            if self.clock() - started > child.program.patience_seconds:
                raise child.explain(f"was not ready within {child.program.patience_seconds:.0f} s")
            child.ended(within=LOOK_AGAIN_SECONDS)

    def check(self) -> None:
        """Raise ProgramFailed if any program has exited since it was started."""
        for each in self.children():
            if each.ended():
                raise each.explain("exited")

    def children(self) -> list[Child]:
        return [each for batch in self._batches for each in batch]

    def stop(self) -> None:
        with uninterrupted():
            while self._batches:
                batch = self._batches.pop()
                for each in batch:
                    each.ask_to_end()
                for each in batch:
                    each.collect(self.grace_seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _inherited(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: environment[name] for name in INHERITED if name in environment}


def _whole_line(pattern: str, output: str) -> re.Match[str] | None:
    """Return the first complete line that matches; the last line may still be partly written."""
    complete = output[: output.rfind("\n") + 1]
    return re.search(rf"^(?:{pattern})$", complete, re.MULTILINE)


def _listening_ports(pid: int) -> set[int]:
    try:
        connections = psutil.Process(pid).net_connections(kind="tcp")
    except psutil.Error:
        return set()
    return {each.laddr.port for each in connections if each.status == psutil.CONN_LISTEN}

"""What tests spend: time, and processor time of this process and of all below it, from /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from typing import Any, Self

TICKS = os.sysconf("SC_CLK_TCK")
TIMES = slice(11, 15)
"""utime, stime, cutime and cstime among the fields after the name in /proc/PID/stat (proc(5)), in ticks."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a test has spent, in seconds."""

    test: str
    cpu: float
    wall: float

    @property
    def folder(self) -> str:
        return PurePath(self.test.partition("::")[0]).parent.as_posix()

    def told(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Self:
        return cls(**told)


@dataclass(frozen=True, slots=True)
class Spent:
    """What was spent so far, in seconds; of processes that run, and of those that ended and were waited for."""

    cpu: float
    at: float

    def since(self, before: Spent, test: str) -> Usage:
        """Return what a test has spent since then. What an orphan spent is lost once nobody below has it."""
        return Usage(test, round(max(0.0, self.cpu - before.cpu), 2), round(self.at - before.at, 2))


def spent() -> Spent:
    own = os.times()
    below = sum(map(_spent_by, _below(os.getpid())))
    return Spent(own.user + own.system + own.children_user + own.children_system + below, time.monotonic())


def _below(pid: int) -> Iterator[int]:
    for child in _children(pid):
        yield child
        yield from _below(child)


def _children(pid: int) -> Iterator[int]:
    """Yield the children of all threads; nothing of a process that has just ended."""
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            yield from map(int, (thread / "children").read_text().split())
    except OSError:
        return


def _spent_by(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[TIMES])) / TICKS

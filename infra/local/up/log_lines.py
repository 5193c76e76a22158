"""The logs of all parts as one: each line short, with the part it is from."""

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

AT_ONCE = 1_000_000
"""Bytes read of one log in one go."""

_QUIET = frozenset({"pubsub", "firestore"})
"""Parts that say much and little of it to us: only their troubles are shown."""
_ROUTINE = frozenset({"sweep.done", "Heartbeat"})
"""What is said each minute, of which nothing follows."""
_TROUBLE = re.compile(r"\bSEVERE\b|OutOfMemory|BindException")
_FIRST = ("cluster", "jobset", "slice", "kind", "phase", "reason", "outlook", "sentence", "why")
_UNSAID = {"message", "severity", "time", "logging.googleapis.com/trace", "jobset_uid", "event_id", "id", "exception"}


def shown(part: str, line: str, *, everything: bool = False) -> str | None:
    """Give a line as a person reads it; None: it is left out."""
    said = _fields(line)
    if said is None:
        kept = everything or part not in _QUIET or _TROUBLE.search(line)
        return f"{part:<18} {line}" if line.strip() and kept else None
    if not everything and _ROUTINE & {said["message"], said.get("kind")}:
        return None
    names = [name for name in _FIRST if name in said]
    if everything:
        names += [name for name in said if name not in {*names, *_UNSAID}]
    about = " ".join(str(said[name]) for name in names)
    severity = "" if said.get("severity") == "INFO" else f"{said.get('severity')} "
    return f"{str(said.get('time', ''))[11:19]} {part:<18} {severity}{said['message']} {about}".rstrip()


def _fields(line: str) -> dict[str, Any] | None:
    """Read one of our own lines (see `tpu_slices.adapters.logs`)."""
    if not line.startswith("{"):
        return None
    try:
        said = json.loads(line)
    except ValueError:
        return None
    return said if isinstance(said, dict) and "message" in said else None


@dataclass(slots=True)
class Tail:
    """One log, read on from where it was; a log that was replaced or cut off is read from its beginning."""

    path: Path
    _inode: int = 0
    _offset: int = 0
    _rest: bytes = b""

    def lines(self) -> Iterator[str]:
        """Give the whole lines that came since."""
        try:
            with self.path.open("rb") as log:
                status = os.fstat(log.fileno())
                if status.st_ino != self._inode or status.st_size < self._offset:
                    self._inode, self._offset, self._rest = status.st_ino, 0, b""
                log.seek(self._offset)
                read = log.read(AT_ONCE)
        except FileNotFoundError:
            return
        self._offset += len(read)
        *whole, self._rest = (self._rest + read).split(b"\n")
        yield from (line.decode(errors="replace") for line in whole)


@dataclass(slots=True)
class Logs:
    """All logs of a folder, those that come later too; `parts`: only these, where any are named."""

    folder: Path
    parts: frozenset[str] = frozenset()
    everything: bool = False
    _tails: dict[str, Tail] = field(default_factory=dict)

    def news(self) -> Iterator[str]:
        for path in sorted(self.folder.glob("*.log")):
            if not self.parts or self.parts & {path.stem, path.stem.removeprefix("function-")}:
                tail = self._tails.setdefault(path.stem, Tail(path))
                lines = (shown(path.stem, line, everything=self.everything) for line in tail.lines())
                yield from (line for line in lines if line is not None)

    def follow(self, say: Callable[[str], None], pause: Callable[[float], None] = time.sleep) -> None:
        """Say what is new, for ever."""
        while True:
            for line in self.news():
                say(line)
            pause(0.3)

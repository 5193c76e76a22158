"""The logs of all parts merged into one: each line shortened and prefixed with its part."""

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infra.local.cluster_choice import CONTROLLERS

AT_ONCE = 1_000_000
"""Bytes read from one log at a time."""

_EMULATORS, _PLANE = {"pubsub", "firestore"}, {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
_CONTROLLERS = {each.part for each in CONTROLLERS}
_QUIET = frozenset(_EMULATORS | _PLANE | _CONTROLLERS)
"""Verbose parts, of which only errors are shown."""
_ROUTINE = frozenset({"sweep.completed", "clusters.searched", "cluster.counted", "inventory.checked", "Heartbeat"})
"""Messages logged every minute, or every few, that lead to no action."""
_TROUBLE = re.compile(r"\bSEVERE\b|OutOfMemory|BindException|^F\d{4} |^panic: |^Traceback ")
_FIRST = ("cluster", "owner", "slice", "kind", "phase", "reason", "message")
_UNSAID = {
    "event",
    "severity",
    "time",
    "logging.googleapis.com/trace",
    "owner_uid",
    "owner_kind",
    "event_id",
    "id",
    "exception",
}


def shown(part: str, line: str, *, everything: bool = False) -> str | None:
    """Return a log line formatted for people, or None if it is left out."""
    said = _fields(line)
    if said is None:
        kept = everything or part not in _QUIET or _TROUBLE.search(line)
        return f"{part:<18} {line}" if line.strip() and kept else None
    if not everything and _ROUTINE & {said["event"], said.get("kind")}:
        return None
    names = [name for name in _FIRST if name in said]
    if everything:
        names += [name for name in said if name not in {*names, *_UNSAID}]
    said["message"] = str(said.get("message", "")).removeprefix(said["event"]).removeprefix(": ")
    about = " ".join(str(said[name]) for name in names if said[name] != "")
    severity = "" if said.get("severity") == "INFO" else f"{said.get('severity')} "
    return f"{str(said.get('time', ''))[11:19]} {part:<18} {severity}{said['event']} {about}".rstrip()


def _fields(line: str) -> dict[str, Any] | None:
    """Return the fields of a line that the provisioner itself logged (see `tpu_slices.adapters.logs`), else None."""
    if not line.startswith("{"):
        return None
    try:
        said = json.loads(line)
    except ValueError:
        return None
    return said if isinstance(said, dict) and "event" in said else None


@dataclass(slots=True)
class Tail:
    """One log, read from where the last read ended; a log that was replaced or truncated is read from its beginning."""

    path: Path
    _inode: int = 0
    _offset: int = 0
    _rest: bytes = b""

    def lines(self) -> Iterator[str]:
        """Yield the complete lines written since the last call."""
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
    """All logs of a folder, including those created later; `parts` restricts them to the named parts, if any."""

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
        """Pass new lines to `say`, for ever."""
        while True:
            for line in self.news():
                say(line)
            pause(0.3)

"""What is on this machine's own disk where a startup script writes, were it not on a host of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

OF_THE_MACHINE = {"usr", "dev", "proc"}
"""What is mounted, or made to be mounted on."""


def files_of(root: Path) -> Iterator[str]:
    """Yield the files on a host's disk, as paths from its root."""
    for folder, folders, names in os.walk(root):
        if Path(folder) == root:
            folders[:] = [each for each in folders if each not in OF_THE_MACHINE]
        yield from ((Path(folder) / name).relative_to(root).as_posix() for name in names)


def written_since(moment: Path, root: Path, machine: Path = Path("/")) -> list[str]:
    """Return which files of a host's disk are on the machine too, and were written there after this file was."""
    known = {name: machine / name for name in files_of(root)}
    since = moment.lstat().st_mtime_ns
    return [name for name, path in known.items() if path.is_file() and path.lstat().st_mtime_ns >= since]


def swapped_on() -> set[str]:
    """Return the files that this machine has for swap."""
    _, *lines = Path("/proc/swaps").read_text().splitlines()
    return {line.split()[0] for line in lines}

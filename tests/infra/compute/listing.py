"""What is on this machine's own disk where the startup script would write, were it not on a host of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("/etc", "/usr/local", "/opt", "/var/lib", "/var/cache", "/installed", "/joins")
FILES = ("/calls", "/valid-tokens", "/startup-script", "/proc/self/mounts", "/proc/swaps")
DEEPEST = 4  # folders below those


def listing(folders: tuple[str, ...] = FOLDERS, files: tuple[str, ...] = FILES) -> dict[str, str]:
    """Return every file with what changes when it does, and the text of these files."""
    found = {path: state for folder in folders for path, state in _states(Path(folder))}
    texts = {path: Path(path).read_text() for path in files if Path(path).exists()}
    return {**found, **texts}


def _states(folder: Path) -> Iterator[tuple[str, str]]:
    for parent, folders, names in os.walk(folder):
        if len(Path(parent).relative_to(folder).parts) == DEEPEST:
            folders.clear()
        for name in (*folders, *names):
            path = Path(parent) / name
            try:
                state = path.lstat()
            except FileNotFoundError:
                continue  # another program's
            changed = "" if path.is_dir() else f" {state.st_size} {state.st_mtime_ns}"
            yield str(path), f"{state.st_mode} {state.st_uid}{changed}"

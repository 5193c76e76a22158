"""What a test leaves open is an error of its own file, and not of a later one that happens to run then."""

import gc
import os
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tpu_standins.testing.waiting import until


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while modules are imported: they leave nearly none."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    _collect()


@pytest.fixture(autouse=True, scope="module")
def nothing_is_left_open() -> Iterator[None]:
    """Collect garbage after the last test of a file: a file or socket left open warns there, which is an error."""
    yield
    _collect()


def _collect() -> None:
    """Collect garbage, and exempt what remains: the next collection then takes milliseconds."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def no_process_is_left() -> Iterator[None]:
    """Fail if a process is left when all other fixtures have been torn down: the first to be set up is the last."""
    yield
    until(lambda: not children(), lambda: f"the end of {children()}")


def children() -> list[str]:
    """Return the command lines of this process's children that have not ended."""
    tasks = Path(f"/proc/{os.getpid()}/task").iterdir()
    pids = [pid.decode() for task in tasks for pid in _read(task / "children").split()]
    commands = (_read(Path(f"/proc/{pid}/cmdline")).replace(b"\0", b" ").decode() for pid in pids)
    return [command for command in commands if command]  # a zombie has none


def _read(path: Path) -> bytes:
    """Return what a file of a process says; nothing if the process or the thread has ended meanwhile."""
    with suppress(OSError):
        return path.read_bytes()
    return b""

"""Finds processes that should have ended but still run, by the TMPDIR that they inherited."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

PATIENCE_SECONDS = 120.0
REPOSITORY = Path(__file__).parents[3]


def until(condition: Callable[[], object], what: str, within: float = PATIENCE_SECONDS) -> None:
    """Wait for a condition. Fail with `what` if it does not hold in time."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"waited {within} s for {what}"
        time.sleep(0.02)


def running_in(folder: Path) -> list[psutil.Process]:
    """Return all processes that were started with this TMPDIR, whatever their parent is now."""
    return [each for each in psutil.process_iter() if _tmpdir(each) == str(folder)]


def _tmpdir(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("TMPDIR")
    except psutil.Error:  # it has exited meanwhile, or we may not inspect it
        return None


def start_module(module: str, folder: Path) -> subprocess.Popen[str]:
    """Run a module of the tests with this folder as its argument and its TMPDIR."""
    return subprocess.Popen(
        [sys.executable, "-m", module, str(folder)],
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

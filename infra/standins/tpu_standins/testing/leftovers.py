"""Finds processes that should have ended but still run, by the TMPDIR that they inherited."""

import os
import subprocess
import sys
from pathlib import Path

import psutil

from tpu_standins.testing.modules import PYTHON


def running_in(folder: Path) -> list[psutil.Process]:
    """Return all processes that were started with this TMPDIR, whatever their parent is now."""
    return [each for each in psutil.process_iter() if _tmpdir(each) == str(folder)]


def _tmpdir(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("TMPDIR")
    except psutil.Error:  # it has exited meanwhile, or we may not inspect it
        return None


def start_module(module: str, folder: Path) -> subprocess.Popen[str]:
    """Run a module with this folder as its argument and its TMPDIR."""
    return subprocess.Popen(
        [sys.executable, "-m", module, str(folder)],
        env={**os.environ, **PYTHON, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

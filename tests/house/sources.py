"""The files of the repository, as rules look at them. A rule is one test, which names every file that breaks it."""

from __future__ import annotations

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAMS = ("shared/", "functions/", "relay/", "infra/", "tests/")
"""The folders of what is run."""
STANDINS = "infra/standins/"
TESTS = ("tests/", f"{STANDINS}tpu_standins/tests/", f"{STANDINS}tpu_standins/testing/")
"""The folders of tests, and of what they alone use."""


@cache
def tracked(*endings: str) -> tuple[str, ...]:
    """Return the files whose names end so, those not yet committed among them."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return tuple(sorted(name for name in listed if name.endswith(endings) and (ROOT / name).is_file()))


def modules(*folders: str) -> list[str]:
    """Return the modules of Python below these folders."""
    return [name for name in tracked(".py") if name.startswith(folders)]


@cache
def text(name: str) -> str:
    return (ROOT / name).read_text()


@cache
def tree(name: str) -> ast.Module:
    return ast.parse(text(name))

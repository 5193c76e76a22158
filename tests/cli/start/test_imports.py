"""What the command imports before it does anything: a person, and each TAB, waits for that."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tpu_slices_cli.app import COMMANDS

RUN = "import sys; sys.argv[:] = {words!r}; from tpu_slices_cli.app import main"
TELL = "main(standalone_mode=False); print('IMPORTED', *sys.modules)"
HEAVY = ("google.api_core", "google.auth", "grpc", "kubernetes", "tpu_slices_simulator")


def imported(*words: str) -> frozenset[str]:
    """Return the modules that are loaded when `slices` with these words has run; what developers alone have aside."""
    program = "; ".join((RUN.format(words=["slices", *words]), TELL))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return frozenset(done.stdout.rpartition("IMPORTED")[2].split())


def ours(modules: frozenset[str]) -> int:
    return sum(each.startswith("tpu_slices") for each in modules)


def of(modules: frozenset[str], *packages: str) -> set[str]:
    return {each for each in modules if any(each == name or each.startswith(f"{name}.") for name in packages)}


def test_help_imports_no_command_and_little_else() -> None:
    modules = imported("--help")
    assert of(modules, *HEAVY, "rich", "structlog", "pydantic") == set()
    assert of(modules, *(f"tpu_slices_cli.{module}" for module, _ in COMMANDS.values())) == set()
    assert ours(modules) <= 26


@pytest.mark.parametrize(
    ("command", "most"),
    [
        ("plan", 150),
        ("list", 91),
        ("explain", 184),
        ("timeline", 103),
        ("simulate", 30),
        ("hold", 92),
        ("doctor", 116),
        ("adopt", 138),
    ],
)
def test_a_command_imports_no_more_of_our_modules_than_are_counted_here(command: str, most: int) -> None:
    modules = imported(command, "--help")
    assert of(modules, *HEAVY) == set()
    assert ours(modules) <= most

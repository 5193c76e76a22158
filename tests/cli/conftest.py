"""The command, run as on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.cli.stage import Stage
from tpu_slices_cli.app import main

ROOT = Path(__file__).parents[2]
RESEARCH = ROOT / "examples" / "clusters" / "research.yaml"

Slices = Callable[..., Result]


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def slices() -> Slices:
    """Return a function that runs `slices` with these arguments; `input` becomes its standard input."""

    def run(*arguments: object, input: str | None = None) -> Result:  # noqa: A002 - as the runner calls it
        return CliRunner().invoke(main, [str(argument) for argument in arguments], input=input, prog_name="slices")

    return run

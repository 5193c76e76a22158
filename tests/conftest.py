"""Fixtures every test may ask for."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog
from hypothesis import settings

from tpu_slices.adapters import logs

pytest_plugins = ["tests.emulators"]

# A law is tried on so many examples; how long one takes on a busy machine says nothing.
settings.register_profile("gate", max_examples=60, deadline=None)
settings.load_profile("gate")

Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Iterator[Lines]:
    """Log as the functions do; give the lines that were written since the last look."""
    logs.configure("demo-project")
    yield lambda: [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    structlog.reset_defaults()

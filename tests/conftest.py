"""Fixtures every test may ask for."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from tpu_slices.adapters import logs

pytest_plugins = ["tests.running"]

VERSION = "1.2.3"
"""What the lines of logs say was deployed."""
Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Iterator[Lines]:
    """Log as the functions do; the fixture's value returns the lines written since its last call."""
    logs.configure("demo-project", VERSION)
    yield lambda: [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    structlog.reset_defaults()

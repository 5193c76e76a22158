"""Fixtures every test may ask for."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, settings

from tpu_slices.adapters import logs

pytest_plugins = ["tests.emulators", "tests.leaks", "tests.order", "tests.suites"]

# How many examples of each property are tried; for as long as it takes, as a busy machine may take long for one.
FOR_LONG: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("fast", max_examples=10, database=None, **FOR_LONG)
settings.register_profile("gate", max_examples=60, **FOR_LONG)
settings.register_profile("deep", max_examples=600, **FOR_LONG)
settings.load_profile("gate")

VERSION = "1.2.3"
"""What the lines of logs say was deployed."""
Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Iterator[Lines]:
    """Log as the functions do; the fixture's value returns the lines written since its last call."""
    logs.configure("demo-project", VERSION)
    yield lambda: [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    structlog.reset_defaults()

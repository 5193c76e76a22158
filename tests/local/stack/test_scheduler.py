import logging
import threading

import pytest
from google.api_core.exceptions import ServiceUnavailable

from infra.local.scheduler import repeated

PATIENCE_SECONDS = 5


def test_a_tick_that_fails_is_told_and_the_next_one_comes(caplog: pytest.LogCaptureFixture) -> None:
    ticks = iter([ServiceUnavailable("gone fishing"), None])
    second = threading.Event()

    def tick() -> None:
        if problem := next(ticks, None):
            raise problem
        second.set()

    with caplog.at_level(logging.WARNING), repeated(tick, interval_seconds=0.01):
        assert second.wait(PATIENCE_SECONDS)
    assert "gone fishing" in caplog.text


def test_no_tick_comes_after_the_end() -> None:
    came = threading.Event()
    count = 0

    def tick() -> None:
        nonlocal count
        count += 1
        came.set()

    with repeated(tick, interval_seconds=0.01):
        assert came.wait(PATIENCE_SECONDS)
    at_the_end = count
    assert "scheduler" not in {each.name for each in threading.enumerate()}
    assert count == at_the_end

import logging
import threading

import pytest
from google.api_core.exceptions import GoogleAPIError, RetryError, ServiceUnavailable

from infra.local.scheduler import repeated
from tpu_standins.patience import PATIENCE_SECONDS


@pytest.mark.parametrize(
    "problem",
    [
        ServiceUnavailable("gone fishing"),  # type: ignore[no-untyped-call]  # google.api_core has no types
        RetryError("gone fishing", None),  # type: ignore[no-untyped-call]
    ],
    ids=["refused", "given up"],
)
def test_a_tick_that_fails_is_told_and_the_next_one_comes(
    problem: GoogleAPIError, caplog: pytest.LogCaptureFixture
) -> None:
    ticks = iter([problem, None])
    second = threading.Event()

    def tick() -> None:
        if due := next(ticks, None):
            raise due
        second.set()

    with caplog.at_level(logging.WARNING), repeated(tick, interval_seconds=0.01):
        assert second.wait(PATIENCE_SECONDS)
    assert "gone fishing" in caplog.text


def test_its_thread_ends_with_the_block() -> None:
    ticked = threading.Event()
    with repeated(ticked.set, interval_seconds=0.01):
        assert ticked.wait(PATIENCE_SECONDS)
    assert "scheduler" not in {each.name for each in threading.enumerate()}

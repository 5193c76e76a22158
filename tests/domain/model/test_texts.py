"""How durations are written."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tpu_slices.domain.model.texts import duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (604_800, "7 days"),
        (86_400, "1 day"),
        (90_000, "25 hours"),
        (3_600, "1 hour"),
        (5_400, "90 minutes"),
        (601, "601 seconds"),
    ],
)
def test_a_duration_is_written_in_its_largest_whole_unit(seconds: int, text: str) -> None:
    assert duration(timedelta(seconds=seconds)) == text

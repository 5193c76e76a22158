"""What the backend is told of an attempt: what was ordered, whatever is requested since."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import MINUTE, NOW, a_record, a_spec, an_attempt, settings
from tpu_slices.flows.orders import order_of

ORDERED = a_spec(zone="us-central2-b")
MOVED = replace(ORDERED, zone="us-central2-c", hosts=8)


@pytest.mark.parametrize(("attempt", "what"), [(1, ORDERED), (2, MOVED), (3, MOVED)])
def test_an_attempt_is_looked_for_as_what_was_ordered(attempt: int, what: object) -> None:
    """The first was given up after the request had moved, the second was created for it; the third is not known."""
    earlier = an_attempt(1, create_requested_at=NOW - MINUTE, ordered=ORDERED)
    record = a_record(spec=MOVED, attempt=2, create_requested_at=NOW, ordered=MOVED, terminating=(earlier,))
    assert order_of(record, attempt, settings()).spec == what


def test_the_current_attempt_is_looked_for_as_what_was_ordered_though_the_request_has_moved_since() -> None:
    record = a_record(spec=MOVED, create_requested_at=NOW, ordered=ORDERED)
    assert order_of(record, 1, settings()).spec == ORDERED


def test_what_is_created_next_is_what_is_requested_now() -> None:
    record = a_record(spec=MOVED, create_requested_at=None, ordered=ORDERED)
    assert order_of(record, 1, settings()).spec == MOVED

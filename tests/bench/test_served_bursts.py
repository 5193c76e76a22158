"""What the bench of bursts says of operations that it saw."""

from __future__ import annotations

import math

from tests.bench.served_bursts import Operation, Patience, floor


def lasting(*seconds: float) -> list[Operation]:
    """Return operations that began far apart, whatever the slots."""
    return [Operation(began=100.0 * at, ended=100.0 * at + each, kind="") for at, each in enumerate(seconds)]


def test_the_floor_is_when_the_last_operation_would_have_begun_in_slots_that_are_never_free() -> None:
    assert floor(lasting(*[5.0] * 64), slots=9) == 35
    assert floor(lasting(5, 2, 1, 1), slots=2) == 3
    assert floor(lasting(5), slots=2) == 0


def test_the_floor_is_known_before_the_last_operations_have_ended() -> None:
    assert floor(lasting(5, 5, math.inf, math.inf), slots=2) == 5


def test_patience_lasts_while_something_changes_and_ends_after_its_seconds_without_a_change() -> None:
    times = iter([0, 9, 18, 27, 28])
    patience = Patience(10, lambda: next(times))
    assert [patience.lasts(left) for left in (3, 2, 1, 1, 1)] == [True, True, True, True, False]

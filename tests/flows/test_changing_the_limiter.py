"""Of two processes that change the limiter at the same time one is heard, and the other does not go by its own view."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from tests.builders import CLUSTER, NOW
from tests.world import World
from tpu_slices.domain.records.limiters import ConcurrencyLimiter
from tpu_slices.flows.slots import change_limiter


def narrowed(limiter: ConcurrencyLimiter, _: datetime) -> ConcurrencyLimiter:
    return replace(limiter, limit=1)


def test_the_limiter_is_returned_as_it_was_written_or_as_it_is_if_nothing_changes() -> None:
    world = World()
    written = change_limiter(narrowed, world.settings, world.deps)
    assert written is not None
    assert written.limit == 1
    assert change_limiter(narrowed, world.settings, world.deps) == written


def test_a_limiter_that_another_process_changed_at_the_same_time_is_not_returned() -> None:
    world = World()
    world.store.put(ConcurrencyLimiter.of(CLUSTER, NOW, 5))
    other = ConcurrencyLimiter.of(CLUSTER, NOW, 3)
    world.store.meanwhile(lambda: world.store.put(other))
    assert change_limiter(narrowed, world.settings, world.deps) is None
    stored = world.store.limiter(CLUSTER)
    assert stored is not None
    assert stored.value == other

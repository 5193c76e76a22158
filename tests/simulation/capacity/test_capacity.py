"""Workloads on ladders, in reservations, and beside spares keep every promise, whatever runs out where."""

from __future__ import annotations

import pytest

from tests.simulation.capacity.booked import in_reservations
from tests.simulation.capacity.drawn import on_ladders
from tests.simulation.drawn import in_gangs, story_of
from tests.simulation.played import played
from tests.simulation.stocked import with_spares
from tests.simulation.test_promises import SEEDS, proven
from tpu_slices.wire.cluster_settings import decode_settings, encode_settings

pytestmark = pytest.mark.slow

GATE, GATE_OF_GANGS = 2, 1
"""So many seeds for each change; the others are proof."""


@pytest.mark.parametrize("seed", proven(SEEDS[: max(1, len(SEEDS) // 5)], GATE))
def test_workloads_on_ladders_keep_every_promise(seed: int) -> None:
    done = played(on_ladders(story_of(seed)))
    assert done.promise is None, done.seen


@pytest.mark.parametrize("seed", proven(SEEDS[: max(1, len(SEEDS) // 5)], GATE_OF_GANGS))
def test_gangs_on_ladders_keep_every_promise(seed: int) -> None:
    done = played(on_ladders(in_gangs(story_of(seed))))
    assert done.promise is None, done.seen


@pytest.mark.parametrize("seed", proven(SEEDS[: max(1, len(SEEDS) // 5)], GATE))
def test_workloads_in_reservations_keep_every_promise(seed: int) -> None:
    done = played(in_reservations(story_of(seed)))
    assert done.promise is None, done.seen


@pytest.mark.proof
@pytest.mark.parametrize("seed", SEEDS[: max(1, len(SEEDS) // 5)])
def test_gangs_in_reservations_beside_spares_keep_every_promise(seed: int) -> None:
    done = played(with_spares(in_reservations(in_gangs(story_of(seed)))))
    assert done.promise is None, done.seen


def test_the_settings_that_are_drawn_are_accepted() -> None:
    for seed in range(40):
        made = with_spares(in_reservations(story_of(seed))).settings
        assert decode_settings(made.cluster, encode_settings(made), made.version) == made

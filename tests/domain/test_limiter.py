"""Who may start: never too many, in order, and only probes where capacity lately ran out."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import CLUSTER, MINUTE, NOW, a_slot, a_spec
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.slices import Capacity, CapacityKind, SliceId
from tpu_slices.domain.reconciling.limiter import (
    RAISE_AFTER,
    SHORTAGE_MEMORY,
    Candidate,
    CapacityPool,
    ConcurrencyLimiter,
    Slot,
    admit,
    capacity_pool_of,
    is_short,
    lowered,
    raised,
    ran_out,
)

CELLS = [CapacityPool("zone-a/v5e/ON_DEMAND"), CapacityPool("zone-b/v5e/ON_DEMAND"), CapacityPool("zone-a/v6e/SPOT")]
LIMITS = Limits(operations=9)


def a_governor(**changes: object) -> ConcurrencyLimiter:
    fields = {"cluster": CLUSTER, "changed_at": NOW, "shortages": {}}
    return ConcurrencyLimiter(**{**fields, **changes})  # type: ignore[arg-type]  # the test names fields of Governor


candidates = st.lists(
    st.builds(
        Candidate,
        st.integers(0, 500).map(lambda number: SliceId(f"tpu-{number}")),
        st.sampled_from(CELLS),
        st.integers(0, 60).map(lambda minutes: NOW - minutes * MINUTE),
    ),
    max_size=30,
    unique_by=lambda candidate: candidate.slice_id,
)
running = st.lists(st.sampled_from(CELLS), max_size=9).map(
    lambda pools: [a_slot(number, capacity_pool=capacity_pool) for number, capacity_pool in enumerate(pools)]
)
limiters = st.builds(
    a_governor,
    limit=st.integers(1, 12),
    shortages=st.dictionaries(st.sampled_from(CELLS), st.integers(0, 30).map(lambda minutes: NOW - minutes * MINUTE)),
)


@given(candidates, running, limiters)
def test_no_more_run_than_the_door_is_wide_and_the_settings_allow(
    waiting: list[Candidate], slots: list[Slot], limiter: ConcurrencyLimiter
) -> None:
    admitted = admit(waiting, slots, limiter, NOW, LIMITS)
    assert len(admitted) <= max(0, min(limiter.limit, LIMITS.operations) - len(slots))
    assert set(admitted) <= set(waiting)


@given(candidates, running)
def test_without_shortages_those_who_wait_longest_start_first(waiting: list[Candidate], slots: list[Slot]) -> None:
    admitted = admit(waiting, slots, a_governor(limit=9), NOW, LIMITS)
    order = sorted(waiting, key=lambda candidate: (candidate.since, candidate.slice_id))
    assert list(admitted) == order[: len(admitted)]
    assert len(admitted) == min(len(waiting), max(0, 9 - len(slots)))


def test_a_cell_that_ran_out_gets_one_probe_and_the_others_go_past_it() -> None:
    short = [Candidate(SliceId(f"tpu-short-{n}"), CELLS[0], NOW - 9 * MINUTE) for n in range(3)]
    others = [Candidate(SliceId(f"tpu-other-{n}"), CELLS[1], NOW) for n in range(3)]
    limiter = ran_out(a_governor(), CELLS[0], NOW - MINUTE)
    admitted = admit([*short, *others], [], limiter, NOW, LIMITS)
    assert [candidate.capacity_pool for candidate in admitted] == [CELLS[0], CELLS[1], CELLS[1], CELLS[1]]
    assert admit(short, [a_slot(capacity_pool=CELLS[0])], limiter, NOW, LIMITS) == ()


def test_short_cells_together_get_at_most_half_of_the_slots() -> None:
    pools = [CapacityPool(f"zone-{n}/v5e/ON_DEMAND") for n in range(5)]
    waiting = [Candidate(SliceId(f"tpu-{n}"), capacity_pool, NOW) for n, capacity_pool in enumerate(pools)]
    limiter = a_governor(shortages=dict.fromkeys(pools, NOW))
    assert len(admit(waiting, [], limiter, NOW, LIMITS)) == 2


def test_a_shortage_is_forgotten_after_a_while() -> None:
    limiter = ran_out(a_governor(), CELLS[0], NOW)
    assert is_short(CELLS[0], limiter, NOW + SHORTAGE_MEMORY - timedelta(seconds=1))
    assert not is_short(CELLS[0], limiter, NOW + SHORTAGE_MEMORY)
    later = ran_out(limiter, CELLS[1], NOW + SHORTAGE_MEMORY)
    assert set(later.shortages) == {CELLS[1]}


@pytest.mark.parametrize(("limit", "half"), [(9, 4), (5, 2), (2, 1), (1, 1)])
def test_a_429_halves_the_door_and_never_closes_it(limit: int, half: int) -> None:
    assert lowered(a_governor(limit=limit), NOW).limit == half


def test_the_door_opens_by_one_after_a_quiet_while_up_to_the_setting() -> None:
    limiter = lowered(a_governor(limit=8), NOW)
    assert raised(limiter, NOW + RAISE_AFTER - timedelta(seconds=1), LIMITS) == limiter
    for wider in (5, 6, 7, 8, 9, 9):
        limiter = raised(limiter, limiter.changed_at + RAISE_AFTER, LIMITS)
        assert limiter.limit == wider


def test_a_cell_is_where_capacity_comes_from() -> None:
    assert capacity_pool_of(a_spec()) == "us-central2-b/tpu-v5-lite-podslice/ON_DEMAND"
    assert capacity_pool_of(a_spec(capacity=Capacity(CapacityKind.SPOT))).endswith("/SPOT")
    assert capacity_pool_of(a_spec(capacity=Capacity(CapacityKind.RESERVATION, "mine"))).endswith("/mine")

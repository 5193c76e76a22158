"""Which creations may start: never too many, oldest first, and only probes where capacity recently ran out."""

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

POOLS = [CapacityPool("zone-a/v5e/ON_DEMAND"), CapacityPool("zone-b/v5e/ON_DEMAND"), CapacityPool("zone-a/v6e/SPOT")]
LIMITS = Limits(operations=9)


def a_limiter(**changes: object) -> ConcurrencyLimiter:
    fields = {"cluster": CLUSTER, "changed_at": NOW, "shortages": {}}
    return ConcurrencyLimiter(**{**fields, **changes})  # type: ignore[arg-type]  # the test names its fields


candidates = st.lists(
    st.builds(
        Candidate,
        st.integers(0, 500).map(lambda number: SliceId(f"tpu-{number}")),
        st.sampled_from(POOLS),
        st.integers(0, 60).map(lambda minutes: NOW - minutes * MINUTE),
    ),
    max_size=30,
    unique_by=lambda candidate: candidate.slice_id,
)
running = st.lists(st.sampled_from(POOLS), max_size=9).map(
    lambda pools: [a_slot(number, capacity_pool=capacity_pool) for number, capacity_pool in enumerate(pools)]
)
limiters = st.builds(
    a_limiter,
    limit=st.integers(1, 12),
    shortages=st.dictionaries(st.sampled_from(POOLS), st.integers(0, 30).map(lambda minutes: NOW - minutes * MINUTE)),
)


@given(candidates, running, limiters)
def test_no_more_run_than_limit_and_settings_allow(
    waiting: list[Candidate], slots: list[Slot], limiter: ConcurrencyLimiter
) -> None:
    admitted = admit(waiting, slots, limiter, NOW, LIMITS)
    assert len(admitted) <= max(0, min(limiter.limit, LIMITS.operations) - len(slots))
    assert set(admitted) <= set(waiting)


@given(candidates, running)
def test_without_shortages_the_longest_waiting_start_first(waiting: list[Candidate], slots: list[Slot]) -> None:
    admitted = admit(waiting, slots, a_limiter(limit=9), NOW, LIMITS)
    order = sorted(waiting, key=lambda candidate: (candidate.since, candidate.slice_id))
    assert list(admitted) == order[: len(admitted)]
    assert len(admitted) == min(len(waiting), max(0, 9 - len(slots)))


def test_an_exhausted_capacity_pool_gets_one_probe_and_others_are_not_held_up() -> None:
    short = [Candidate(SliceId(f"tpu-short-{n}"), POOLS[0], NOW - 9 * MINUTE) for n in range(3)]
    others = [Candidate(SliceId(f"tpu-other-{n}"), POOLS[1], NOW) for n in range(3)]
    limiter = ran_out(a_limiter(), POOLS[0], NOW - MINUTE)
    admitted = admit([*short, *others], [], limiter, NOW, LIMITS)
    assert [candidate.capacity_pool for candidate in admitted] == [POOLS[0], POOLS[1], POOLS[1], POOLS[1]]
    assert admit(short, [a_slot(capacity_pool=POOLS[0])], limiter, NOW, LIMITS) == ()


def test_exhausted_capacity_pools_together_get_at_most_half_of_the_slots() -> None:
    pools = [CapacityPool(f"zone-{n}/v5e/ON_DEMAND") for n in range(5)]
    waiting = [Candidate(SliceId(f"tpu-{n}"), capacity_pool, NOW) for n, capacity_pool in enumerate(pools)]
    limiter = a_limiter(shortages=dict.fromkeys(pools, NOW))
    assert len(admit(waiting, [], limiter, NOW, LIMITS)) == 2


def test_a_shortage_is_forgotten_after_a_while() -> None:
    limiter = ran_out(a_limiter(), POOLS[0], NOW)
    assert is_short(POOLS[0], limiter, NOW + SHORTAGE_MEMORY - timedelta(seconds=1))
    assert not is_short(POOLS[0], limiter, NOW + SHORTAGE_MEMORY)
    later = ran_out(limiter, POOLS[1], NOW + SHORTAGE_MEMORY)
    assert set(later.shortages) == {POOLS[1]}


@pytest.mark.parametrize(("limit", "half"), [(9, 4), (5, 2), (2, 1), (1, 1)])
def test_a_429_halves_the_limit_and_never_below_one(limit: int, half: int) -> None:
    assert lowered(a_limiter(limit=limit), NOW).limit == half


def test_the_limit_rises_by_one_after_a_quiet_while_up_to_the_setting() -> None:
    limiter = lowered(a_limiter(limit=8), NOW)
    assert raised(limiter, NOW + RAISE_AFTER - timedelta(seconds=1), LIMITS) == limiter
    for expected in (5, 6, 7, 8, 9, 9):
        limiter = raised(limiter, limiter.changed_at + RAISE_AFTER, LIMITS)
        assert limiter.limit == expected


def test_a_capacity_pool_is_zone_accelerator_and_kind_of_capacity() -> None:
    assert capacity_pool_of(a_spec()) == "us-central2-b/tpu-v5-lite-podslice/ON_DEMAND"
    assert capacity_pool_of(a_spec(capacity=Capacity(CapacityKind.SPOT))).endswith("/SPOT")
    assert capacity_pool_of(a_spec(capacity=Capacity(CapacityKind.RESERVATION, "mine"))).endswith("/mine")

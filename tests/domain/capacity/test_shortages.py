"""What a refusal says of a capacity pool: nothing of fewer hosts, everything of as many and more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import CLUSTER, MINUTE, NOW, a_record, a_shortage, a_slot, a_spec
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.observations import Absent, Observed
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import ClaimId
from tpu_slices.domain.reconciling.limiter import admit, fewest_held, learned, shortage_of
from tpu_slices.domain.records.awaited import PoolOperation
from tpu_slices.domain.records.limiters import Candidate, CapacityPool, ConcurrencyLimiter
from tpu_slices.domain.records.queues import capacity_pool_of

POOL = capacity_pool_of(a_spec())
LIMITS = Limits(operations=9)


def a_limiter(**shortages: Any) -> ConcurrencyLimiter:
    short = {POOL: a_shortage(**shortages)} if shortages else {}
    return ConcurrencyLimiter(cluster=CLUSTER, limit=9, changed_at=NOW, shortages=short)


def of(hosts: int, number: int = 0, namespace: str = "research") -> Candidate:
    return Candidate(
        slice_id=ClaimId(f"tpu-{number:03}"),
        namespace=namespace,
        operation=PoolOperation.CREATE,
        attempt=1,
        capacity_pool=POOL,
        since=NOW - MINUTE * (100 - number),
        hosts=hosts,
    )


def refused(limiter: ConcurrencyLimiter, hosts: int, *stocked: str) -> ConcurrencyLimiter:
    spec = replace(a_spec(), hosts=hosts)
    before = a_record(spec=spec, create_requested_at=NOW, slot=0)
    after = before.transitioned(NOW, Reason.STOCKOUT, "none left").with_claim(stocked=stocked)
    return learned(limiter, before, after, Observed(Absent()), NOW)


def test_a_refusal_of_16_hosts_holds_up_32_and_not_4() -> None:
    limiter = refused(a_limiter(), 16)
    probe = a_slot(0, capacity_pool=POOL, hosts=16)
    waiting = [of(32, 1), of(16, 2), of(4, 3), of(4, 4)]
    assert [each.hosts for each in admit(waiting, [probe], limiter, NOW, LIMITS)] == [4, 4]


def test_a_smaller_creation_that_runs_is_no_probe() -> None:
    limiter = a_limiter(hosts=16)
    assert admit([of(32)], [a_slot(0, capacity_pool=POOL, hosts=4)], limiter, NOW, LIMITS) == (of(32),)
    assert admit([of(32)], [a_slot(0, capacity_pool=POOL, hosts=64)], limiter, NOW, LIMITS) == ()


def test_who_needs_the_fewest_hosts_of_a_namespace_tries_first_where_capacity_ran_out() -> None:
    waiting = [of(32, 1), of(16, 2), of(64, 3)]
    assert admit(waiting, [], a_limiter(hosts=8), NOW, LIMITS) == (of(16, 2),)
    assert admit(waiting, [], a_limiter(), NOW, LIMITS)[0] == of(32, 1)


@given(st.lists(st.integers(1, 64), min_size=1))
def test_the_fewest_hosts_that_were_refused_are_remembered(sizes: list[int]) -> None:
    limiter = a_limiter()
    for hosts in sizes:
        limiter = refused(limiter, hosts)
    short = shortage_of(POOL, limiter, NOW)
    assert short is not None
    assert short.hosts == min(sizes)
    assert fewest_held(POOL, [a_slot(0, capacity_pool=POOL, hosts=64)], limiter, NOW, LIMITS) == min(sizes)


@pytest.mark.parametrize(
    ("zones", "left"),
    [((), {"us-central2-b", "us-central2-c"}), (("us-central2-c", "us-central2-d"), {"us-central2-b"})],
)
def test_an_answer_that_names_zones_with_stock_ends_what_is_remembered_of_them(
    zones: tuple[str, ...], left: set[str]
) -> None:
    elsewhere = capacity_pool_of(replace(a_spec(), zone="us-central2-c"))
    limiter = replace(a_limiter(), shortages={elsewhere: a_shortage()})
    assert {pool.partition("/")[0] for pool in refused(limiter, 4, *zones).shortages} == left


def test_other_hosts_in_a_zone_with_stock_may_still_be_short() -> None:
    other = CapacityPool("us-central2-c/tpu-v5p-slice/ON_DEMAND")
    limiter = replace(a_limiter(), shortages={other: a_shortage()})
    assert refused(limiter, 4, "us-central2-c").shortages.keys() == {other, POOL}


def test_a_pool_that_refuses_again_and_again_is_avoided_for_longer_up_to_half_an_hour() -> None:
    limiter, pauses = a_limiter(), []
    for _ in range(7):
        limiter = refused(limiter, 4)
        short = shortage_of(POOL, limiter, NOW)
        assert short is not None
        assert short.until is not None
        pauses.append((short.until - NOW) / MINUTE)
    for pause, least in zip(pauses, [2, 4, 8, 16, 30, 30, 30], strict=True):
        assert 0.8 * least <= pause <= 1.2 * least


def test_who_has_a_ladder_does_not_ask_before_that_and_who_has_none_does() -> None:
    limiter = refused(a_limiter(), 4)
    laddered = replace(of(4), laddered=True)
    assert admit([laddered], [], limiter, NOW, LIMITS) == ()
    assert admit([of(4)], [], limiter, NOW, LIMITS) == (of(4),)
    assert admit([laddered], [], limiter, NOW + 3 * MINUTE, LIMITS) == (laddered,)
    assert admit([replace(laddered, hosts=2)], [], limiter, NOW, LIMITS) == (replace(laddered, hosts=2),)


def test_chips_that_go_end_the_shortage_of_a_quota_and_of_nothing_else() -> None:
    stands = a_record(create_requested_at=NOW, slot=0, let_go="it is not needed")
    gone = stands.with_current(slot=None, create_requested_at=None)
    for reason, left in ((Reason.QUOTA_EXCEEDED, set()), (Reason.STOCKOUT, {POOL})):
        assert {*learned(a_limiter(reason=reason), stands, gone, Observed(Absent()), NOW).shortages} == left

"""Which operations may start: never too many, deletions first, and only probes where capacity recently ran out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import CLUSTER, MINUTE, NOW, a_record, a_shortage, a_slot, a_spec, unclaimed
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.observations import Absent, Creating, Observation, Observed, OperationSeen, Running
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import Capacity, CapacityKind, ClaimId
from tpu_slices.domain.reconciling.limiter import (
    LOWER_AGAIN_AFTER,
    PROBE_FOR,
    RAISE_AFTER,
    REFUSAL_PAUSE,
    SHORTAGE_MEMORY,
    admit,
    avoided_for,
    candidate_of,
    forgetting,
    free_numbers,
    has_ended,
    is_used,
    last_served,
    learned,
    lowered,
    raised,
    ran_out,
    shortage_of,
    slot_awaited,
)
from tpu_slices.domain.records.awaited import PoolOperation, SlotAwaited
from tpu_slices.domain.records.limiters import Candidate, CapacityPool, ConcurrencyLimiter, Slot
from tpu_slices.domain.records.queues import capacity_pool_of

POOLS = [CapacityPool("zone-a/v5e/ON_DEMAND"), CapacityPool("zone-b/v5e/ON_DEMAND"), CapacityPool("zone-a/v6e/SPOT")]
NAMESPACES = ["research", "vision", "speech"]
LIMITS = Limits(operations=9)


def a_limiter(**changes: Any) -> ConcurrencyLimiter:
    return ConcurrencyLimiter(**{"cluster": CLUSTER, "limit": 5, "changed_at": NOW, "shortages": {}, **changes})


def a_candidate(number: int = 0, **changes: Any) -> Candidate:
    fields: dict[str, Any] = {
        "slice_id": ClaimId(f"tpu-{number:03}"),
        "namespace": "research",
        "operation": PoolOperation.CREATE,
        "attempt": 1,
        "capacity_pool": POOLS[0],
        "since": NOW,
        "hosts": 4,
    }
    return Candidate(**{**fields, **changes})


def a_deletion(number: int = 0, **changes: Any) -> Candidate:
    return a_candidate(number, **{"operation": PoolOperation.DELETE, "capacity_pool": None, "hosts": 0, **changes})


creations = st.builds(
    a_candidate,
    st.integers(0, 500),
    namespace=st.sampled_from(NAMESPACES),
    capacity_pool=st.sampled_from(POOLS),
    since=st.integers(0, 60).map(lambda minutes: NOW - minutes * MINUTE),
)
deletions = st.builds(a_deletion, st.integers(501, 999), namespace=st.sampled_from(NAMESPACES))
candidates = st.lists(creations | deletions, max_size=30, unique_by=lambda candidate: candidate.slice_id)
running = st.dictionaries(st.integers(0, 12), st.tuples(st.sampled_from(POOLS), st.sampled_from(NAMESPACES))).map(
    lambda held: [a_slot(number, capacity_pool=pool, namespace=space) for number, (pool, space) in held.items()]
)
limiters = st.builds(
    a_limiter,
    limit=st.integers(1, 12),
    shortages=st.dictionaries(
        st.sampled_from(POOLS), st.integers(0, 30).map(lambda minutes: a_shortage(NOW - minutes * MINUTE))
    ),
    refused_at=st.none() | st.sampled_from([NOW, NOW - MINUTE]),
)


@given(candidates, running, limiters)
def test_no_more_run_than_limit_and_settings_allow(
    waiting: list[Candidate], slots: list[Slot], limiter: ConcurrencyLimiter
) -> None:
    admitted = admit(waiting, slots, limiter, NOW, LIMITS)
    assert len(admitted) <= max(0, min(limiter.limit, LIMITS.operations) - len(slots))
    assert set(admitted) <= set(waiting)
    assert len(set(admitted)) == len(admitted)


@given(running, limiters)
def test_the_numbers_of_free_slots_are_below_the_limit_and_not_taken(
    slots: list[Slot], limiter: ConcurrencyLimiter
) -> None:
    free = free_numbers(slots, limiter, NOW, LIMITS)
    assert not {*free} & {slot.number for slot in slots}
    assert {*free} <= {*range(min(limiter.limit, LIMITS.operations))}


@given(candidates, running, limiters)
def test_no_creation_starts_before_a_deletion_that_waits(
    waiting: list[Candidate], slots: list[Slot], limiter: ConcurrencyLimiter
) -> None:
    admitted = admit(waiting, slots, limiter, NOW, LIMITS)
    left = {each for each in waiting if each.operation is PoolOperation.DELETE} - {*admitted}
    assert not left or all(each.operation is PoolOperation.DELETE for each in admitted)


@given(st.lists(creations, max_size=30, unique_by=lambda candidate: candidate.slice_id), running)
def test_without_shortages_namespaces_with_fewest_slots_start_first_and_their_longest_waiting_slices(
    waiting: list[Candidate], slots: list[Slot]
) -> None:
    admitted = admit(waiting, slots, a_limiter(limit=9), NOW, LIMITS)
    assert len(admitted) == min(len(waiting), max(0, 9 - len(slots)))
    held, left = Counter(slot.namespace for slot in slots), [*waiting]
    for each in admitted:
        assert held[each.namespace] == min(held[other.namespace] for other in left)
        equals = [other for other in left if held[other.namespace] == held[each.namespace]]
        assert each == min(equals, key=lambda other: (other.since, other.slice_id))
        held[each.namespace] += 1
        left.remove(each)


def test_a_namespace_without_slots_comes_before_one_that_waits_longer() -> None:
    many = [a_candidate(number, since=NOW - 60 * MINUTE) for number in range(240)]
    other = a_candidate(999, namespace="vision")
    held = [a_slot(number) for number in range(4)]
    assert admit([*many, other], held, a_limiter(), NOW, LIMITS) == (other,)


def test_an_exhausted_capacity_pool_gets_one_probe_and_others_are_not_held_up() -> None:
    short = [a_candidate(number, since=NOW - 9 * MINUTE) for number in range(3)]
    others = [a_candidate(10 + number, capacity_pool=POOLS[1]) for number in range(3)]
    limiter = ran_out(a_limiter(), POOLS[0], a_shortage(NOW - MINUTE))
    admitted = admit([*short, *others], [], limiter, NOW, LIMITS)
    assert [candidate.capacity_pool for candidate in admitted] == [POOLS[0], POOLS[1], POOLS[1], POOLS[1]]
    assert admit(short, [a_slot(capacity_pool=POOLS[0])], limiter, NOW, LIMITS) == ()


def test_exhausted_capacity_pools_together_get_at_most_half_of_the_slots() -> None:
    pools = [CapacityPool(f"zone-{n}/v5e/ON_DEMAND") for n in range(5)]
    waiting = [a_candidate(number, capacity_pool=pool) for number, pool in enumerate(pools)]
    limiter = a_limiter(shortages=dict.fromkeys(pools, a_shortage()))
    assert len(admit(waiting, [], limiter, NOW, LIMITS)) == 2


def test_deletions_start_although_every_capacity_pool_is_short() -> None:
    limiter = a_limiter(shortages=dict.fromkeys(POOLS, a_shortage()))
    assert len(admit([a_deletion(number) for number in range(6)], [], limiter, NOW, LIMITS)) == 5


def test_a_shortage_is_forgotten_after_a_while() -> None:
    limiter = ran_out(a_limiter(), POOLS[0], a_shortage())
    assert shortage_of(POOLS[0], limiter, NOW + SHORTAGE_MEMORY - timedelta(seconds=1)) == a_shortage()
    assert shortage_of(POOLS[0], limiter, NOW + SHORTAGE_MEMORY) is None
    later = ran_out(limiter, POOLS[1], a_shortage(NOW + SHORTAGE_MEMORY))
    assert set(later.shortages) == {POOLS[1]}


CREATES = a_record(create_requested_at=NOW, slot=0)
OURS, OTHER = capacity_pool_of(a_spec()), POOLS[1]


@pytest.mark.parametrize(
    ("seen", "short"), [(Running(), {OTHER}), (Creating(), {OURS, OTHER}), (Absent(), {OURS, OTHER})]
)
def test_a_creation_that_succeeds_ends_the_shortage_of_its_capacity_pool(
    seen: Observation, short: set[CapacityPool]
) -> None:
    limiter = a_limiter(shortages={OURS: a_shortage(), OTHER: a_shortage()})
    ended = a_record(create_requested_at=NOW)
    assert {*learned(limiter, CREATES, ended, Observed(seen), NOW).shortages} == short


@pytest.mark.parametrize(
    ("reason", "again_at"),
    [
        (Reason.STOCKOUT, None),
        (Reason.RESOURCES_EXHAUSTED, None),
        (Reason.QUOTA_EXCEEDED, None),
        (Reason.RESERVATION_UNAVAILABLE, NOW + 2 * MINUTE),
        (Reason.RESERVATION_AWAITED, NOW + 2 * MINUTE),
    ],
)
def test_what_its_capacity_pool_cannot_provide_begins_a_shortage_and_a_reservation_is_left_alone_for_a_while(
    reason: Reason, again_at: datetime | None
) -> None:
    failed = CREATES.transitioned(NOW, reason, "none left").with_claim(retry_at=NOW + 2 * MINUTE)
    seen = Observed(Absent())
    assert learned(a_limiter(), CREATES, failed, seen, NOW).shortages == {
        OURS: a_shortage(
            reason=reason, what="tpu-v6e-slice 4x4", again_at=again_at, hosts=4, until=NOW + avoided_for(1, OURS)
        )
    }
    assert learned(a_limiter(), failed, failed, seen, NOW).shortages == {}


@pytest.mark.parametrize("reason", [Reason.TOO_MANY_OPERATIONS, Reason.INVALID_CONFIGURATION])
def test_what_is_no_matter_of_capacity_begins_no_shortage(reason: Reason) -> None:
    failed = CREATES.transitioned(NOW, reason, "no")
    assert learned(a_limiter(), CREATES, failed, Observed(Absent()), NOW).shortages == {}


def test_a_reservation_that_could_not_provide_hosts_is_tried_by_one_when_it_is_due_and_by_nobody_before() -> None:
    again_at = NOW + 2 * MINUTE
    limiter = ran_out(a_limiter(), POOLS[0], a_shortage(reason=Reason.RESERVATION_AWAITED, again_at=again_at))
    waiting = [a_candidate(number) for number in range(20)]
    assert admit(waiting, [], limiter, again_at - timedelta(seconds=1), LIMITS) == ()
    assert admit(waiting, [], limiter, again_at, LIMITS) == (waiting[0],)


def test_old_shortages_are_forgotten_and_nothing_else_changes() -> None:
    limiter = a_limiter(shortages={POOLS[0]: a_shortage(), POOLS[1]: a_shortage(NOW + MINUTE)})
    assert forgetting(limiter, NOW + SHORTAGE_MEMORY) == replace(
        limiter, shortages={POOLS[1]: a_shortage(NOW + MINUTE)}
    )
    assert forgetting(limiter, NOW) is limiter


@pytest.mark.parametrize(("limit", "half"), [(9, 4), (5, 2), (2, 1), (1, 1)])
def test_a_429_halves_the_limit_and_never_below_one(limit: int, half: int) -> None:
    assert lowered(a_limiter(limit=limit), NOW, LIMITS).limit == half


def test_a_429_halves_the_limit_that_is_in_force() -> None:
    assert lowered(a_limiter(limit=20), NOW, Limits(operations=6)).limit == 3


@given(st.lists(st.integers(0, 60 * 60), max_size=60))
def test_the_limit_is_halved_at_most_once_while_an_operation_can_run(refusals: list[int]) -> None:
    limiter, halved = a_limiter(limit=64), [NOW - LOWER_AGAIN_AFTER]
    for second in sorted(refusals):
        at = NOW + timedelta(seconds=second)
        before, limiter = limiter, lowered(limiter, at, Limits(operations=64))
        halved += [at] if limiter.limit < before.limit else []
        assert limiter.refused_at == at
    assert all(later - earlier >= LOWER_AGAIN_AFTER for earlier, later in pairwise(halved))


def test_operations_that_still_fill_gke_do_not_halve_the_limit_again_and_later_ones_do() -> None:
    limiter = a_limiter(limit=20)
    for minute in (0, 1, 2, 3, 35):
        limiter = lowered(limiter, NOW + minute * MINUTE, Limits(operations=20))
        assert limiter.limit == 10
    assert lowered(limiter, NOW + LOWER_AGAIN_AFTER, Limits(operations=20)).limit == 5


def test_after_a_429_nothing_starts_for_a_moment() -> None:
    limiter = lowered(a_limiter(), NOW, LIMITS)
    assert admit([a_deletion()], [], limiter, NOW + REFUSAL_PAUSE - timedelta(seconds=1), LIMITS) == ()
    assert admit([a_deletion()], [], limiter, NOW + REFUSAL_PAUSE, LIMITS) == (a_deletion(),)


def test_after_a_429_operations_start_one_by_one_until_gke_has_taken_them_for_a_while() -> None:
    limiter, waiting = a_limiter(refused_at=NOW), [a_candidate(number) for number in range(4)]
    first = NOW + REFUSAL_PAUSE
    assert len(admit(waiting, [], limiter, first, LIMITS)) == 1
    probe = a_slot(taken_at=first)
    assert admit(waiting, [probe], limiter, first + REFUSAL_PAUSE - timedelta(seconds=1), LIMITS) == ()
    assert len(admit(waiting, [probe], limiter, first + REFUSAL_PAUSE, LIMITS)) == 1
    assert len(admit(waiting, [probe], limiter, NOW + PROBE_FOR, LIMITS)) == 4


def test_the_limit_rises_by_one_after_a_quiet_while_up_to_the_setting() -> None:
    limiter = lowered(a_limiter(limit=8), NOW, LIMITS)
    assert raised(limiter, NOW + RAISE_AFTER - timedelta(seconds=1), LIMITS) == limiter
    for expected in (5, 6, 7, 8, 9, 9):
        limiter = raised(limiter, limiter.changed_at + RAISE_AFTER, LIMITS)
        assert limiter.limit == expected


def test_the_limit_does_not_rise_while_gke_rejects_operations() -> None:
    limiter = lowered(lowered(a_limiter(limit=8), NOW, LIMITS), NOW + 4 * MINUTE, LIMITS)
    assert raised(limiter, NOW + RAISE_AFTER, LIMITS).limit == 4
    assert raised(limiter, NOW + 4 * MINUTE + RAISE_AFTER, LIMITS).limit == 5


def seen(pool: str, *, creates: bool = True, ended: bool = False) -> OperationSeen:
    return OperationSeen(pool=pool, creates=creates, ended=ended)


@pytest.mark.parametrize(
    ("operations", "ended"),
    [
        ([seen("ours", ended=True)], True),
        ([seen("ours")], False),
        ([seen("ours"), seen("ours", ended=True)], True),
        ([seen("ours"), seen("ours", creates=False, ended=True)], False),
        ([seen("theirs"), seen("ours", creates=False)], True),
        ([], True),
    ],
    ids=["ended", "runs", "one of two ended", "another kind ended", "others run", "not listed"],
)
def test_an_operation_ended_as_the_list_shows_of_its_pool_and_kind(
    operations: list[OperationSeen], ended: bool
) -> None:
    claim = a_record(create_requested_at=NOW)
    slot = a_slot(0, slice_id=claim.maker, attempt=claim.attempt, taken_at=NOW)
    listed = [replace(each, pool=claim.pool) if each.pool == "ours" else each for each in operations]
    assert has_ended(slot, claim, listed) is has_ended(slot, unclaimed(claim), listed) is ended


def test_an_operation_waits_since_it_first_lacked_a_slot() -> None:
    awaited = slot_awaited(a_record(), PoolOperation.CREATE, 1, NOW)
    assert awaited == SlotAwaited(operation=PoolOperation.CREATE, attempt=1, since=NOW)
    record = a_record(slot_awaited=awaited)
    assert slot_awaited(record, PoolOperation.CREATE, 1, NOW + MINUTE).since == NOW
    assert slot_awaited(record, PoolOperation.CREATE, 2, NOW + MINUTE).since == NOW + MINUTE
    deletion = slot_awaited(record, PoolOperation.DELETE, 1, NOW + MINUTE)
    assert deletion.since == NOW + MINUTE
    for slice_ in (record, unclaimed(record)):
        assert candidate_of(slice_, deletion) == a_deletion(slice_id=record.maker, since=NOW + MINUTE)


def test_who_was_last_given_a_slot_is_known_of_those_who_still_have_one_apart_where_capacity_is_short() -> None:
    first, short = POOLS[:2]
    limiter = ran_out(ConcurrencyLimiter.of(CLUSTER, NOW), short, a_shortage())
    slots = [
        a_slot(0, namespace="research", capacity_pool=first, taken_at=NOW),
        a_slot(1, namespace="vision", capacity_pool=first, taken_at=NOW + MINUTE),
        a_slot(2, namespace="speech", capacity_pool=short, taken_at=NOW + 2 * MINUTE),
        a_slot(3, namespace="deleted", capacity_pool=None, taken_at=NOW + 3 * MINUTE),
    ]
    assert last_served(slots, limiter, NOW, short=False) == "vision"
    assert last_served(slots, limiter, NOW, short=True) == "speech"
    assert last_served(slots, limiter, NOW + SHORTAGE_MEMORY, short=False) == "speech"
    assert last_served([], limiter, NOW, short=True) == ""


def test_a_capacity_pool_is_zone_accelerator_and_kind_of_capacity() -> None:
    assert capacity_pool_of(a_spec()) == "us-central2-b/tpu-v6e-slice/ON_DEMAND"
    assert capacity_pool_of(a_spec(capacity=Capacity(CapacityKind.SPOT))).endswith("/SPOT")
    assert capacity_pool_of(a_spec(capacity=Capacity(CapacityKind.RESERVATION, "mine"))).endswith("/mine")


@pytest.mark.parametrize(
    ("listed", "used"),
    [
        ([OperationSeen(pool="tpu-other-0-aaaaaaaaaaaaa-1", creates=True, ended=False)], True),
        ([OperationSeen(pool="tpu-other-0-aaaaaaaaaaaaa-1", creates=True, ended=True)], False),
        ([OperationSeen(pool="tpu-other-0-aaaaaaaaaaaaa-1", creates=False, ended=False)], False),
        ([OperationSeen(pool="tpu-other-0-aaaaaaaaaaaaa-2", creates=True, ended=False)], False),
        ([], False),
    ],
    ids=["runs", "ended", "of another kind", "of another pool", "not listed"],
)
def test_a_slot_is_used_while_its_operation_runs(listed: list[OperationSeen], used: bool) -> None:
    assert is_used(a_slot(), listed) is used
    assert not is_used(a_slot(attempt=0), listed)


def test_a_creation_waits_since_it_was_asked_for_and_a_deletion_since_it_is_due() -> None:
    record = a_record(awaited_since=NOW - 5 * MINUTE)
    assert slot_awaited(record, PoolOperation.CREATE, 1, NOW).since == NOW - 5 * MINUTE
    assert slot_awaited(record, PoolOperation.DELETE, 1, NOW).since == NOW

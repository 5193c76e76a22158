"""What every `SliceStore` lists of the queues in which slices wait, for a slot or to be looked at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from tests.builders import CLUSTER, MINUTE, NOW, a_job, a_record, a_shortage, a_spec, an_attempt
from tests.contracts.stores import ELSEWHERE, Bench, slices
from tpu_slices.domain.model.slices import Capacity, CapacityKind, ClusterId, WorkloadUid
from tpu_slices.domain.records.awaited import PoolOperation, SlotAwaited
from tpu_slices.domain.records.limiters import CapacityPool
from tpu_slices.domain.records.queues import FIRST_QUEUES, SHORT_QUEUES, capacity_pool_of
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.ports.store import Change, Stored


def test_due_slices_of_a_cluster_come_longest_due_first_each_with_its_revision(bench: Bench) -> None:
    late, later, settled, future = slices(4)
    bench.create(
        replace(late, next_reconcile_at=NOW - 2 * MINUTE),
        replace(later, next_reconcile_at=NOW),
        replace(settled, next_reconcile_at=None),
        replace(future, next_reconcile_at=NOW + timedelta(microseconds=1)),
        a_record(job=a_job(cluster=ELSEWHERE), next_reconcile_at=NOW - 3 * MINUTE),
    )

    first, second = bench.store.due_slices(CLUSTER, NOW, 10)
    assert (first, second) == (bench.slice(late), bench.slice(later))
    assert bench.store.due_slices(CLUSTER, NOW, 1) == (first,)


def test_due_slices_of_a_namespace_come_longest_due_first(bench: Bench) -> None:
    late, later, settled = slices(3)
    bench.create(
        replace(later, next_reconcile_at=NOW),
        replace(late, next_reconcile_at=NOW - 2 * MINUTE),
        replace(settled, next_reconcile_at=None),
        a_record(job=a_job(namespace="vision", uid="uid-vision"), next_reconcile_at=NOW - 3 * MINUTE),
        a_record(job=a_job(cluster=ELSEWHERE), next_reconcile_at=NOW - 3 * MINUTE),
    )

    first, second = bench.store.due_slices(CLUSTER, NOW, 10, "research")
    assert (first, second) == (bench.slice(late), bench.slice(later))
    assert bench.store.due_slices(CLUSTER, NOW, 1, "research") == (first,)
    assert bench.store.due_slices(CLUSTER, NOW, 10, "nobody") == ()


def test_namespaces_with_due_slices_are_found_among_the_first_that_have_one_that_is_or_will_be_due(
    bench: Bench,
) -> None:
    times: dict[str, list[datetime | None]] = {
        "a": [None, NOW],
        "b": [NOW + MINUTE],
        "c": [NOW + MINUTE, NOW - MINUTE],
        "d": [None],
        "e": [NOW],
    }
    for namespace, due in times.items():
        for index, at in enumerate(due):
            uid = WorkloadUid(f"uid-{namespace}")
            bench.create(a_record(job=a_job(namespace=namespace, uid=uid, job_index=index), next_reconcile_at=at))
    bench.create(a_record(job=a_job(cluster=ELSEWHERE, namespace="f"), next_reconcile_at=NOW))

    assert bench.store.due_namespaces(CLUSTER, NOW, 10) == ("a", "c", "e")
    assert bench.store.due_namespaces(CLUSTER, NOW, 3) == ("a", "c")
    assert bench.store.due_namespaces(CLUSTER, NOW, 1) == ("a",)
    assert bench.store.due_namespaces(ClusterId("nobody"), NOW, 10) == ()


def waiting(number: int, operation: PoolOperation, minutes: int, **changes: Any) -> SliceRecord:
    """Return a slice that has waited for a slot for some minutes."""
    slot, shortage = changes.pop("slot", None), changes.pop("shortage", None)
    job = a_job(**{"job_index": number, "uid": WorkloadUid(f"uid-{number}"), **changes})
    since = NOW - minutes * MINUTE
    awaited = SlotAwaited(operation=operation, attempt=1, since=since, number=slot, shortage=shortage)
    return a_record(job=job, slot_awaited=awaited)


def test_deletions_that_wait_for_a_slot_come_longest_waiting_first(bench: Bench) -> None:
    first, second, third = (waiting(number, PoolOperation.DELETE, 10 - number) for number in range(3))
    bench.create(
        third,
        first,
        second,
        waiting(3, PoolOperation.DELETE, 20, slot=0),
        creates(4, 30),
        waiting(5, PoolOperation.DELETE, 30, cluster=ELSEWHERE),
        a_record(job=a_job(job_index=6)),
    )

    found = bench.store.deletions_awaiting_slot(CLUSTER, 10)
    assert [stored.value for stored in found] == [first, second, third]
    assert bench.store.deletions_awaiting_slot(CLUSTER, 2) == found[:2]
    bench.store.commit(Change(found[0], None))
    assert bench.store.deletions_awaiting_slot(CLUSTER, 1) == found[1:2]


OF_SPOT, RESERVED = Capacity(CapacityKind.SPOT), Capacity(CapacityKind.RESERVATION, "mine")


def creates(number: int, minutes: int, capacity: Capacity = OF_SPOT, **changes: Any) -> SliceRecord:
    """Return a slice whose creation has waited for a slot for some minutes."""
    return replace(waiting(number, PoolOperation.CREATE, minutes, **changes), spec=a_spec(capacity=capacity))


def found(stored: Iterable[Stored[SliceRecord]]) -> list[SliceRecord]:
    return [each.value for each in stored]


def test_creations_that_wait_for_a_slot_come_by_namespace_and_time_apart_from_those_that_wait_for_their_turn(
    bench: Bench,
) -> None:
    older, younger = creates(0, 10), creates(1, 9, RESERVED)
    other = creates(2, 60, namespace="vision")
    short, much_longer = creates(3, 70, shortage=a_shortage()), creates(4, 90, namespace="art", shortage=a_shortage())
    bench.create(
        younger,
        short,
        other,
        older,
        much_longer,
        creates(5, 99, slot=1),
        waiting(6, PoolOperation.DELETE, 99),
        creates(7, 99, cluster=ELSEWHERE),
    )

    def between(after: str, before: str = FIRST_QUEUES[1], most: int = 10) -> list[SliceRecord]:
        return found(bench.store.creations_awaiting_slot(CLUSTER, after, before, most))

    assert between("") == [older, younger, other]
    assert between("", most=1) == [older]
    assert between("research") == [other]
    assert between("vision") == []
    assert between(*SHORT_QUEUES) == [much_longer, short]
    assert between("~art", SHORT_QUEUES[1]) == [short]


def test_creations_of_a_queue_come_by_capacity_pool_and_time(bench: Bench) -> None:
    older, younger, reserved = creates(0, 10), creates(1, 9), creates(2, 60, RESERVED)
    others = creates(3, 70, namespace="vision"), creates(4, 80, shortage=a_shortage()), creates(5, 99, slot=1)
    bench.create(younger, reserved, older, *others, creates(6, 99, cluster=ELSEWHERE))
    spot, mine = (capacity_pool_of(a_spec(capacity=each)) for each in (OF_SPOT, RESERVED))

    def behind(after: str, most: int = 10) -> list[SliceRecord]:
        return found(bench.store.creations_in_queue(CLUSTER, "research", after, most))

    assert spot < mine
    assert behind("") == [older, younger, reserved]
    assert behind("", most=1) == [older]
    assert behind(spot) == [reserved]
    assert behind(mine) == []
    assert found(bench.store.creations_in_queue(CLUSTER, "~research", "", 10)) == [others[1]]


def test_creations_of_a_capacity_pool_come_longest_waiting_first_from_all_namespaces(bench: Bench) -> None:
    first, second, third = creates(0, 30, shortage=a_shortage()), creates(1, 20, namespace="art"), creates(2, 10)
    bench.create(second, third, first, creates(3, 60, RESERVED), creates(4, 99, slot=1))
    bench.create(waiting(5, PoolOperation.DELETE, 99), creates(6, 99, cluster=ELSEWHERE))
    pool = capacity_pool_of(a_spec(capacity=OF_SPOT))

    assert found(bench.store.creations_in_pool(CLUSTER, pool, 10)) == [first, second, third]
    assert found(bench.store.creations_in_pool(CLUSTER, pool, 1)) == [first]
    assert bench.store.creations_in_pool(CLUSTER, CapacityPool("nowhere"), 10) == ()


def test_who_has_hosts_of_a_reservation_is_found_by_its_capacity_pool(bench: Bench) -> None:
    of_hall = a_spec(capacity=Capacity(CapacityKind.RESERVATION, "hall-7"))
    stands = [
        a_record(job=a_job(job_index=each), spec=of_hall, current=an_attempt(ordered=of_hall, create_requested_at=NOW))
        for each in range(3)
    ]
    waits = a_record(job=a_job(job_index=3), spec=of_hall)
    other = a_record(job=a_job(job_index=4), current=an_attempt(ordered=a_spec(), create_requested_at=NOW))
    bench.create(*stands, waits, other, a_record(job=a_job(cluster=ELSEWHERE), spec=of_hall, current=stands[0].current))
    pool = capacity_pool_of(of_hall)

    assert bench.store.hosts_reserved(CLUSTER, pool) == 3 * of_hall.hosts
    assert {each.id for each in bench.store.users_of_reservation(CLUSTER, pool, 10)} == {each.id for each in stands}
    assert len(bench.store.users_of_reservation(CLUSTER, pool, 2)) == 2
    assert bench.store.hosts_reserved(CLUSTER, CapacityPool("nowhere")) == 0


def test_a_creation_that_gets_a_slot_or_waits_for_its_turn_leaves_its_queue(bench: Bench) -> None:
    record = creates(0, 10)
    bench.create(record)
    awaited = record.slot_awaited
    assert awaited is not None
    for after in (replace(awaited, shortage=a_shortage()), replace(awaited, number=3), None):
        bench.store.commit(Change(bench.slice(record), replace(record, slot_awaited=after)))
        assert bench.store.creations_awaiting_slot(CLUSTER, *FIRST_QUEUES, 10) == ()
        short = bench.store.creations_awaiting_slot(CLUSTER, *SHORT_QUEUES, 10)
        assert len(short) == (after is not None and after.number is None)


def test_an_unreadable_slice_does_not_hide_those_that_wait_for_a_slot_behind_it(bench: Bench) -> None:
    unreadable, sound = (waiting(number, PoolOperation.DELETE, 10 - number) for number in range(2))
    bench.create(unreadable, sound)
    bench.edit(unreadable, schema=99)

    assert [stored.value for stored in bench.store.deletions_awaiting_slot(CLUSTER, 1)] == [sound]

"""Slices that are due: namespaces take turns if there are more than a sweep requests."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.counted.counters import READS, Counts
from tests.bench.counted.metered import MeteredStore
from tests.builders import CLUSTER, MINUTE, a_job, a_record
from tests.world import World
from tpu_slices.domain.model.slices import ClaimId, SliceId, WorkloadUid
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows import due
from tpu_slices.flows.due import MOST_NAMESPACES, MOVED_ON_BY, PAGE, in_turn, request_due
from tpu_slices.flows.failures import Failures
from tpu_slices.ports.store import SliceStore


def put_due(world: World, namespace: str, count: int, minutes: int = 0) -> list[SliceRecord]:
    """Put slices that have been due for so long."""
    at, uid = world.clock.now() - minutes * MINUTE, WorkloadUid(f"uid-{namespace}")
    jobs = (a_job(namespace=namespace, uid=uid, job_index=index) for index in range(count))
    records = [replace(a_record(job=job), next_reconcile_at=at) for job in jobs]
    world.store.put(*records)
    return records


def requested(world: World) -> tuple[set[ClaimId | SliceId], Counts]:
    """Return what a sweep requests as due, and what it used."""
    used, calls = Counts(), list[str]()
    metered = cast("SliceStore", MeteredStore(world.store, used, calls))
    world.publisher.take_requests()
    count = request_due(CLUSTER, replace(world.deps, store=metered), Failures())
    found = {slice_ for _, slice_ in world.publisher.take_requests()}
    assert len(found) == count <= due.PAGE
    return found, used


def names(records: list[SliceRecord]) -> set[ClaimId | SliceId]:
    return {each.name for each in records}


@pytest.mark.slow
def test_a_slice_that_is_due_is_requested_in_the_same_sweep_whatever_number_of_another_namespace_is() -> None:
    world = World()
    put_due(world, "hog", 7600, minutes=30)
    honest = put_due(world, "research", 1)
    found, used = requested(world)
    assert names(honest) <= found
    assert len(found) == PAGE
    assert used[READS] <= 3 * PAGE


def test_a_page_that_is_not_full_is_read_once() -> None:
    world = World()
    hog, honest = put_due(world, "hog", 20, minutes=30), put_due(world, "research", 3)
    found, used = requested(world)
    assert found == names(hog) | names(honest)
    assert used[READS] == 23


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(due, "PAGE", 12)


@pytest.mark.usefixtures("small_pages")
def test_each_namespace_gets_its_share_its_earliest_first_and_few_get_all() -> None:
    world = World()
    old, older = put_due(world, "hog", 40, minutes=2), put_due(world, "more", 30, minutes=9)
    few, future = put_due(world, "few", 2), put_due(world, "research", 1, minutes=-1)
    found, _ = requested(world)
    assert names(few) <= found
    assert not names(future) & found
    assert [len(names(each) & found) for each in (old, older)] == [4, 6], "what few leave goes to who waits longest"


@pytest.mark.usefixtures("small_pages")
def test_within_a_namespace_the_earliest_come_first() -> None:
    world = World()
    put_due(world, "hog", 40, minutes=60)
    records = [
        replace(each, next_reconcile_at=world.clock.now() - number * MINUTE)
        for number, each in enumerate(put_due(world, "few", 20))
    ]
    for each in records:
        world.store.edit_slice(CLUSTER, each.id, next_reconcile_at=each.next_reconcile_at)
    found, _ = requested(world)
    assert names(records) & found == names(records[-6:])


@pytest.mark.usefixtures("small_pages")
def test_what_is_read_does_not_grow_with_the_number_of_namespaces() -> None:
    world = World()
    put_due(world, "hog", 40, minutes=2)
    for number in range(MOST_NAMESPACES + 50):
        put_due(world, f"tenant-{number:03}", 1)
    found, used = requested(world)
    assert len(found) == due.PAGE
    assert used[READS] <= due.PAGE + 2 * MOST_NAMESPACES + 2


@pytest.mark.usefixtures("small_pages")
def test_slices_that_were_requested_without_effect_make_room_for_others_of_their_namespace() -> None:
    world = World()
    stuck = put_due(world, "hog", 40, minutes=2)
    put_due(world, "few", 2, minutes=2)
    first, _ = requested(world)
    second, _ = requested(world)
    assert not first & second
    moved_on = [each for each in stuck if each.name in first]
    assert {world.records[each.name].next_reconcile_at for each in moved_on} == {world.clock.now() + MOVED_ON_BY}


QUEUES = st.lists(st.integers(0, 9), max_size=9)


@given(sizes=QUEUES, most=st.integers(1, 30))
def test_queues_share_what_there_is_room_for(sizes: list[int], most: int) -> None:
    queues = [[(number, place) for place in range(size)] for number, size in enumerate(sizes)]
    taken = in_turn(queues, most)
    of_each = [[each for each in taken if each[0] == number] for number in range(len(sizes))]
    assert len(taken) == min(most, sum(sizes))
    for queue, own in zip(queues, of_each, strict=True):
        assert own == queue[: len(own)], "its first ones"
        assert len(own) >= min(len(queue), most // len(queues)), "its share"
        if len(own) < len(queue):
            assert all(len(other) <= len(own) + 1 for other in of_each), "nobody has more who leaves some waiting"

"""What a sweep finds when it compares records with pools, when it does, and what it tells of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, cast

import pytest

from tests.builders import CLUSTER, MINUTE, NOW, hosts_changed
from tests.flows.swept import being_created, requested, serving
from tests.world import World
from tpu_slices.domain.model.facts import Family
from tpu_slices.domain.model.questions import ListQuestion
from tpu_slices.domain.model.reasons import SERVED, Phase, ReportReason
from tpu_slices.domain.model.slices import ClaimId, ClusterId, SliceId, WorkloadUid
from tpu_slices.domain.reconciling.inventory import CHECK_AGAIN_AFTER, INVENTORY_CHECK_EVERY
from tpu_slices.domain.records.heartbeats import RelayHeartbeat
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.flows.sweep import Swept, sweep
from tpu_slices.ports.errors import Temporary
from tpu_slices.wire.documents import Key, key, key_of
from tpu_slices_simulator.live import LiveWorkload

SECOND = timedelta(seconds=1)


@pytest.fixture
def world() -> World:
    return World()


def heartbeat(world: World) -> RelayHeartbeat:
    found = world.store.heartbeat(CLUSTER)
    assert found is not None
    return found.value


def due(world: World, at: datetime | None) -> None:
    """Let the next inventory check be due at this time."""
    world.store.put(replace(heartbeat(world), next_inventory_check_at=at))


def checked(world: World) -> bool:
    return sweep(CLUSTER, world.deps).checked is not None


def without_workload(world: World, jobset: LiveWorkload) -> None:
    world.store.remove_document(key(WorkloadRecord, CLUSTER, jobset.ref.owner.uid))


def test_a_sweep_that_has_nothing_to_do_says_so(world: World) -> None:
    serving(world)
    sweep(CLUSTER, world.deps)
    swept = sweep(CLUSTER, world.deps)
    assert (swept.requested, swept.asked, swept.checked, swept.failures) == (0, 0, None, ())
    assert swept.count is not None
    assert swept.count.cluster == CLUSTER


@pytest.mark.parametrize(("after", "is_checked"), [(-SECOND, True), (timedelta(0), True), (SECOND, False)])
def test_the_inventory_is_checked_from_the_time_on_that_the_last_check_set(
    world: World, after: timedelta, *, is_checked: bool
) -> None:
    due(world, NOW + after)
    assert checked(world) is is_checked
    assert not checked(world), "once"


def test_the_inventory_is_checked_at_once_where_no_relay_was_ever_heard(world: World) -> None:
    world.store.remove_document(key_of(heartbeat(world)))
    assert checked(world)
    assert heartbeat(world).next_inventory_check_at == NOW + INVENTORY_CHECK_EVERY


def differs(world: World, *families: Family) -> RelayHeartbeat:
    """Return the heartbeat of a relay that is heard, and has seen these families otherwise for a while."""
    now = world.clock.now()
    known = replace(heartbeat(world), received_at=now)
    for family in Family:
        known = known.with_compared(family, parts=(now - 60 * MINUTE if family in families else now,), asked_at=None)
    return known


def test_a_sweep_asks_for_lists_of_what_is_not_as_on_record_with_its_own_time_and_counts_them(world: World) -> None:
    serving(world)
    world.clock.advance(30 * MINUTE)
    for families in ([Family.HOSTS], [Family.WORKLOADS, Family.DEMAND], []):
        world.store.put(differs(world, *families))
        before = len(world.publisher.questions)
        assert sweep(CLUSTER, world.deps).asked == len(families)
        asked = [question for _, question in world.publisher.questions[before:]]
        assert asked == [ListQuestion(family=family, asked_at=world.clock.now()) for family in families]
        assert sweep(CLUSTER, world.deps).asked == 0, "it was asked moments ago"


def test_a_jobset_without_a_record_gets_one_in_whose_demand_its_slices_are(world: World) -> None:
    jobset = serving(world)
    without_workload(world, jobset)
    due(world, None)
    assert checked(world)
    found = world.store.workloads(CLUSTER, [jobset.ref.owner.uid])[jobset.ref.owner.uid].value
    assert set(found.demand) == {world.record(jobset).maker}


def test_a_ready_slice_whose_pool_is_gone_is_looked_at(world: World) -> None:
    jobset = serving(world)
    record = world.record(jobset)
    assert record.phase is Phase.READY
    world.backend.vanish(record.pool)
    due(world, None)
    requested(world)
    sweep(CLUSTER, world.deps)
    assert requested(world) == {record.maker}
    assert world.record(jobset).next_reconcile_at is not None


def test_a_jobset_whose_slice_went_while_no_sweep_came_through_is_told_after_the_next_check(world: World) -> None:
    """It was told to be READY, so that no report of it is due, and the change is too old to be looked for."""
    record = world.record(serving(world))
    sweep(CLUSTER, world.deps)
    world.publish(hosts_changed(slice_id=record.maker, attempt=record.attempt, usable=0, joined=0, sequence=10_000))
    world.deliver()
    world.clock.advance(2 * MINUTE)
    due(world, None)
    sweep(CLUSTER, world.deps)
    sweep(CLUSTER, world.deps)
    (*_, (_, told)) = world.publisher.reports
    assert told.report.reason is ReportReason.WAITING


def test_what_was_found_is_requested_although_others_write_the_jobset_that_was_told_wrong(world: World) -> None:
    lost, orphan = (world.record(serving(world, name)) for name in ("llama", "gemma"))
    sweep(CLUSTER, world.deps)
    world.publish(hosts_changed(slice_id=lost.maker, attempt=lost.attempt, usable=0, joined=0, sequence=10_000))
    world.deliver()
    world.clock.advance(2 * MINUTE)
    world.store.remove_document(key_of(orphan))
    due(world, None)
    requested(world)
    told_wrong = key(WorkloadRecord, CLUSTER, lost.owner.uid)
    world.store.meanwhile(*[partial(touch, world, told_wrong)] * 50)
    swept = sweep(CLUSTER, world.deps)
    assert (swept.failures, swept.recovered) == ((), 1)
    assert orphan.maker in requested(world)


@pytest.mark.parametrize("stale", [0, 1])
def test_a_check_goes_on_past_a_slice_that_others_write_and_comes_again_soon(world: World, stale: int) -> None:
    lost = [world.record(serving(world, name)) for name in ("llama", "gemma")]
    for each in lost:
        world.backend.vanish(each.pool)
    due(world, None)
    requested(world)
    world.store.meanwhile(*[partial(touch, world, key_of(lost[stale]))] * 50)
    swept = sweep(CLUSTER, world.deps)
    found = swept.checked
    assert found is not None
    other = lost[1 - stale]
    assert (swept.failures, found.complete, [before.name for before, _ in found.mended]) == ((), False, [other.name])
    assert world.store.slices(CLUSTER, [other.id])[other.id].value.next_reconcile_at is not None
    assert requested(world) == {each.maker for each in lost}
    assert heartbeat(world).next_inventory_check_at == world.clock.now() + CHECK_AGAIN_AFTER


def test_a_slice_whose_record_comes_back_during_a_check_is_no_orphan(world: World) -> None:
    record = world.record(serving(world))
    there = world.store.document(key_of(record)) or {}
    world.store.remove_document(key_of(record))
    due(world, None)
    world.store.meanwhile(*[partial(world.store.put_document, key_of(record), there)] * 50)
    found = sweep(CLUSTER, world.deps).checked
    assert found is not None
    assert (found.orphans, found.complete) == (0, False)


def test_a_check_during_which_the_relay_is_heard_fails_nothing_and_comes_again(world: World) -> None:
    record = world.record(serving(world))
    world.store.remove_document(key_of(record))
    due(world, None)
    beat = heartbeat(world)
    world.store.meanwhile(*[partial(touch, world, key_of(beat))] * 50)
    swept = sweep(CLUSTER, world.deps)
    assert (swept.failures, swept.recovered) == ((), 1)
    assert checked(world)


def touch(world: World, place: Key) -> None:
    world.store.put_document(place, world.store.document(place) or {})


def test_what_agrees_is_not_looked_at(world: World) -> None:
    serving(world)
    due(world, None)
    requested(world)
    assert checked(world)
    assert requested(world) == set()


def test_a_creation_that_still_runs_is_not_looked_at_and_one_that_ended_is(world: World) -> None:
    jobset = being_created(world, slices=1)
    requested(world)
    assert sweep(CLUSTER, world.deps).requested == 0
    assert requested(world) == set()
    world.operations_end()
    assert sweep(CLUSTER, world.deps).requested == 1
    assert requested(world) == {world.record(jobset).maker}


def failing(world: World) -> Swept:
    world.backend.unreadable[CLUSTER] = Temporary("later")
    return sweep(CLUSTER, world.deps)


def test_what_failed_is_counted_as_nothing(world: World) -> None:
    being_created(world, slices=1)
    due(world, None)
    swept = failing(world)
    assert (swept.requested, swept.asked, swept.checked) == (0, 0, None)
    assert {failure.about for failure in swept.failures} == {"slots", "inventory check"}


class AskedStore:
    """A store that remembers which slices and workloads were read by name."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.slices_read: list[ClaimId | SliceId] = []
        self.workloads_read: list[WorkloadUid] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def slices(self, cluster: ClusterId, ids: Collection[SliceId]) -> Any:
        self.slices_read += ids
        return self._store.slices(cluster, ids)

    def having(self, cluster: ClusterId, claims: Collection[ClaimId]) -> Any:
        self.slices_read += claims
        return self._store.having(cluster, claims)

    def workloads(self, cluster: ClusterId, uids: Collection[WorkloadUid]) -> Any:
        self.workloads_read += uids
        return self._store.workloads(cluster, uids)


def test_a_check_reads_nothing_by_name_that_it_has_or_that_is_settled(world: World) -> None:
    serving(world)
    lost = serving(world, "gemma")
    record = world.record(lost)
    world.publish(hosts_changed(slice_id=record.maker, attempt=record.attempt, usable=0, joined=0, sequence=10_000))
    world.deliver()
    assert world.record(lost).reason not in SERVED
    due(world, None)
    asked = AskedStore(world.store)
    assert sweep(CLUSTER, replace(world.deps, store=cast("Any", asked))).checked is not None
    assert asked.slices_read == [record.maker]  # for the report of its JobSet
    assert {*asked.workloads_read} == {lost.ref.owner.uid}

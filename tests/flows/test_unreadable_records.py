"""Records that cannot be read: they hide no others, and never count as absent."""

from __future__ import annotations

import pytest

from tests.builders import CLUSTER, MINUTE, an_occupant, hosts_changed
from tests.flows.swept import being_created, make_unreadable, make_workload_unreadable, repair, requested, serving
from tests.manifests import a_manifest
from tests.world import World
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.reconciling.inventory import INVENTORY_CHECK_EVERY
from tpu_slices.flows.receive import receive
from tpu_slices.flows.reconcile import reconcile
from tpu_slices.flows.sweep import sweep
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.documents import key, key_of
from tpu_slices_simulator.fakes.backend import Verb


@pytest.fixture
def world() -> World:
    return World()


def test_the_slots_of_other_slices_are_settled_beside_a_record_that_cannot_be_read(world: World) -> None:
    jobset = being_created(world, slices=2)
    unreadable, sound = world.record(jobset, 0), world.record(jobset, 1)
    make_unreadable(world, unreadable)
    world.operations_end()
    requested(world)

    assert sweep(CLUSTER, world.deps).failures == ()
    assert requested(world) == {sound.maker}
    assert str(key_of(unreadable)) in world.store.unreadable


def test_the_slot_of_a_record_that_cannot_be_read_is_not_freed(world: World) -> None:
    unreadable = world.record(being_created(world, slices=1))
    make_unreadable(world, unreadable)
    world.settle(minutes=60)
    assert [stored.value.slice_id for stored in world.store.slots(CLUSTER)] == [unreadable.maker]

    repair(world, unreadable.id)
    world.settle(minutes=20)
    assert world.store.slots(CLUSTER) == ()


@pytest.mark.slow
def test_a_record_that_cannot_be_read_does_not_stop_the_inventory_check(world: World) -> None:
    first, second, third = (serving(world, name) for name in ("first", "second", "third"))
    unreadable, lost, ended = world.record(first), world.record(second), world.record(third)
    make_unreadable(world, unreadable)
    world.store.remove_document(key_of(lost))
    world.ends_unreported(third)
    world.settle(minutes=60)

    assert world.records[lost.name].phase is Phase.READY
    assert world.records[ended.name].phase is Phase.GONE
    assert world.pools == sorted([unreadable.pool, lost.pool])


def test_the_pool_of_a_record_that_cannot_be_read_is_not_adopted(world: World) -> None:
    unreadable = world.record(serving(world))
    make_unreadable(world, unreadable)
    before = world.store.document(key_of(unreadable))
    world.clock.advance(INVENTORY_CHECK_EVERY)

    swept = sweep(CLUSTER, world.deps)

    assert (swept.recovered, swept.failures) == (0, ())
    assert world.store.document(key_of(unreadable)) == before


@pytest.mark.slow
def test_a_record_that_cannot_be_read_releases_nothing(world: World) -> None:
    jobset = serving(world)
    pool = world.record(jobset).pool
    make_workload_unreadable(world, jobset)
    world.settle(minutes=120)
    make_unreadable(world, world.record(jobset))
    world.settle(minutes=120)
    assert world.pools == [pool]
    assert world.backend.ordered(Verb.DELETE) == []


def test_an_orphan_of_a_jobset_whose_record_cannot_be_read_is_adopted_and_the_check_goes_on(world: World) -> None:
    first, second = serving(world, "first"), serving(world, "second")
    orphan, other = world.record(first), world.record(second)
    make_workload_unreadable(world, first)
    world.store.remove_document(key_of(orphan))
    world.store.remove_document(key_of(other))
    world.clock.advance(INVENTORY_CHECK_EVERY)

    swept = sweep(CLUSTER, world.deps)

    assert (swept.recovered, swept.failures) == (2, ())
    assert set(world.records) == {orphan.name, other.name}


def test_a_reconcile_of_a_record_that_cannot_be_read_is_a_permanent_error(world: World) -> None:
    jobset = serving(world)
    record = world.record(jobset)
    make_workload_unreadable(world, jobset)
    with pytest.raises(Permanent, match=r"workloads/demo.uid-llama-0: schema: 99"):
        reconcile(CLUSTER, record.name, world.deps)
    make_unreadable(world, record)
    with pytest.raises(Permanent, match=rf"slices/demo.{record.id}: schema: 99"):
        reconcile(CLUSTER, record.name, world.deps)


def test_a_slice_occupied_by_a_jobset_whose_record_cannot_be_read_is_kept(world: World) -> None:
    owner = serving(world)
    guest = world.guest_appears()
    pool = world.record(owner).pool
    world.binds(guest, world.record(owner).maker, 1)
    world.settle(minutes=1)
    make_workload_unreadable(world, guest)
    world.ends(owner)
    world.settle(minutes=30)
    assert world.pools == [pool]


def test_demand_of_a_jobset_is_recorded_beside_a_slice_that_cannot_be_read(world: World) -> None:
    jobset = being_created(world, slices=1)
    unreadable = world.record(jobset)
    make_unreadable(world, unreadable)
    world.edits(jobset, a_manifest(slices=2))
    world.clock.advance(MINUTE)
    world.cluster_lives()
    world.deliver()

    demand = world.store.workloads(CLUSTER, [jobset.ref.owner.uid])[jobset.ref.owner.uid].value.demand
    assert set(demand.values()) == {world.clock.now()}
    assert world.record(jobset, 1).phase is Phase.PROVISIONING


def test_an_unreadable_heartbeat_is_replaced_by_the_next_one(world: World) -> None:
    serving(world)
    place = key(type(world.store.heartbeat(CLUSTER).value), CLUSTER)  # type: ignore[union-attr]  # it was sent
    world.store.put_document(place, {"schema": 99})
    assert sweep(CLUSTER, world.deps).failures == ()
    world.settle(minutes=1)
    stored = world.store.heartbeat(CLUSTER)
    assert stored is not None
    assert stored.value.received_at is not None


def test_a_slice_recorded_for_another_cluster_is_left_alone(world: World) -> None:
    record = world.record(serving(world))
    document = world.store.document(key_of(record)) or {}
    world.store.put_document(key_of(record), {**document, "cluster": "elsewhere"})
    with pytest.raises(Permanent, match="claimed_by: must follow from cluster, owner"):
        reconcile(CLUSTER, record.name, world.deps)
    world.settle(minutes=60)
    assert world.pools == [record.pool]


def test_a_count_is_recorded_although_the_workload_of_a_job_on_the_hosts_cannot_be_read(world: World) -> None:
    host, guest = serving(world, "host"), world.jobset_appears("guest", absent=True)
    world.settle(minutes=1)
    make_workload_unreadable(world, guest)
    record = world.record(host)
    there = an_occupant(owner=guest.ref.owner)
    sequence = record.current.hosts.sequence + 1
    receive(hosts_changed(slice_id=record.maker, occupants=(there,), sequence=sequence), CLUSTER, world.deps)
    assert world.record(host).current.hosts.occupants == (there,)
    assert world.record(host).claimed_by == record.claimed_by

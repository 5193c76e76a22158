"""What a test of the sweep does to a world, and asks of it."""

from __future__ import annotations

from tests.builders import CLUSTER
from tests.world import World
from tpu_slices.domain.model.slices import ClaimId, SliceId
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.wire.documents import key_of
from tpu_slices_simulator.live import LiveWorkload


def serving(world: World, name: str = "llama", slices: int = 1) -> LiveWorkload:
    jobset = world.jobset_appears(name, slices=slices)
    world.settle(minutes=10, until=lambda: len(jobset.bound) == slices)
    world.settle(minutes=2)
    return jobset


def being_created(world: World, slices: int) -> LiveWorkload:
    jobset = world.jobset_appears(slices=slices)
    world.cluster_lives()
    world.deliver()
    return jobset


def make_unreadable(world: World, record: SliceRecord) -> None:
    world.store.edit_slice(CLUSTER, record.id, schema=99)


def make_workload_unreadable(world: World, jobset: LiveWorkload) -> None:
    place = key_of(world.store.workloads(CLUSTER, [jobset.ref.owner.uid])[jobset.ref.owner.uid].value)
    world.store.put_document(place, {**(world.store.document(place) or {}), "schema": 99})


def repair(world: World, id_: SliceId) -> None:
    world.store.edit_slice(CLUSTER, id_, schema=1)


def requested(world: World) -> set[ClaimId | SliceId]:
    return {slice_ for _, slice_ in world.publisher.take_requests()}

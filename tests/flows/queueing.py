"""Slices that have slots, and that wait for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.builders import (
    CLUSTER,
    MINUTE,
    NOW,
    a_job,
    a_jobset,
    a_record,
)
from tests.world import ENDED, World
from tpu_slices.domain.model.slices import ClaimId, WorkloadUid
from tpu_slices.domain.reconciling.limiter import slot_awaited
from tpu_slices.domain.records.awaited import PoolOperation, Shortage
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows.reconcile import reconcile


def queued(
    world: World, number: int, namespace: str = "research", shortage: Shortage | None = None, **changes: Any
) -> SliceRecord:
    """Put a slice that waits for its creation's slot, the lower the number the longer.

    `shortage`: for which it says that it waits for its turn.
    """
    job = a_job(job_index=number, namespace=namespace, uid=WorkloadUid(f"uid-{namespace}-{number}"))
    record = a_record(job=job, **changes)
    awaited = slot_awaited(record, PoolOperation.CREATE, 1, NOW - (300 - number) * MINUTE / 10)
    record = replace(record, slot_awaited=replace(awaited, shortage=shortage))
    world.store.put(record, a_jobset(namespace=namespace, uid=record.owner.uid, demand={record.maker: NOW}))
    return record


def running(world: World, count: int = 5, name: str = "busy") -> list[SliceRecord]:
    """Let creations run, each with its slot."""
    jobset = world.jobset_appears(name, slices=count)
    world.cluster_lives()
    world.deliver()
    return [world.record(jobset, index) for index in range(count)]


def ends(world: World, record: SliceRecord) -> None:
    """Let a creation end, and the slice be reconciled."""
    world.backend.finish(world.records[record.name].pool)
    reconcile(CLUSTER, record.name, world.deps, ENDED)


def ends_unseen(world: World, record: SliceRecord) -> None:
    """Let a creation end, and nothing be requested yet."""
    world.backend.finish(record.pool)
    world.publisher.take_requests()


def slots(world: World) -> dict[int, ClaimId]:
    return {stored.value.number: stored.value.slice_id for stored in world.store.slots(CLUSTER)}


def handed_on_to(world: World, record: SliceRecord) -> int | None:
    awaited = world.records[record.name].slot_awaited
    return awaited.number if awaited else None

"""Edits of slices by operators: find slices by name, change their records, and request a reconcile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

from tpu_slices.domain.model.reasons import LIMITED, Phase
from tpu_slices.domain.model.slices import ClaimId, ClusterId, SliceId, is_claim_id, is_slice_id
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.flows.retrying import retry_on_conflict
from tpu_slices.ports.deps import IntakeDeps
from tpu_slices.ports.errors import Permanent
from tpu_slices.ports.store import Change, Names, SliceStore

Edit = Callable[[SliceRecord], SliceRecord]


def find(cluster: ClusterId, name: str, store: SliceStore) -> tuple[SliceRecord, ...]:
    """Return the slices with this name: slice id, node pool, `namespace/job`, or `namespace/workload` for a workload's.

    By the id of a claim also those that it had before and that still stand; by a node pool's name only what has it.
    GONE ones only if there are no others. Raise Permanent if there is none, or if that of this id cannot be read.
    """
    if is_slice_id(name) and (stored := store.slices(cluster, [name]).get(name)):
        return (stored.value,)
    if is_claim_id(name) and (having := store.having(cluster, [name]).get(name)):
        return _with_earlier(having.value, store)
    found = tuple(stored.value for stored in store.every_slice(cluster) if name in names(stored.value))
    kept = tuple(record for record in found if record.phase is not Phase.GONE)
    if not found:
        raise Permanent(f'slice "{name}" not found in cluster {cluster}: see `slices list --cluster {cluster} --all`')
    return kept or found


def names(record: SliceRecord) -> Iterator[str]:
    """Yield `namespace/job` of each Job that has a slice, `namespace/workload`, and the name of an adopted pool."""
    job, shared_by = record.job, record.spec.jobs if record.spec is not None else 1
    for index in range(job.job_index, job.job_index + shared_by):
        yield f"{job.owner.namespace}/{job.owner.job_name(job.replicated_job, index)}"
    yield f"{job.owner.namespace}/{job.owner.name}"
    if record.legacy_pool is not None and record.attempt == 0:
        yield record.legacy_pool


def _with_earlier(record: SliceRecord, store: SliceStore) -> tuple[SliceRecord, ...]:
    """Return a slice and, if it is a claim's, those that this had before and that still stand."""
    earlier = store.slices(record.cluster, record.claim.earlier) if record.claim.earlier else {}
    return (record, *(stored.value for stored in earlier.values()))


def find_workload(cluster: ClusterId, name: str, store: SliceStore) -> WorkloadRecord | None:
    """Return the workload named `namespace/name` or `kind/namespace/name` that has not ended, or None.

    Raise Permanent if there are several of that name.
    """
    live = (stored.value for stored in store.live_workloads(cluster))
    found = [each for each in live if name in (each.owner.full_name, f"{each.owner.kind}/{each.owner.full_name}")]
    if len(found) > 1:
        kinds = " or ".join(sorted(f"{each.owner.kind}/{each.owner.full_name}" for each in found))
        raise Permanent(f"several workloads have the name {name}: say {kinds}")
    return found[0] if found else None


def hold(note: str | None, by: str, now: datetime) -> Edit:
    """Return the edit that holds a slice, so that nothing is created or deleted for it; who holds it first, does."""

    def held(record: SliceRecord) -> SliceRecord:
        record = record if record.hold else replace(record, hold=True, held_by=by, held_since=now)
        return record if note is None else replace(record, note=note)

    return held


def resume(record: SliceRecord) -> SliceRecord:
    return replace(record, hold=False, held_by="", held_since=None)


def release(record: SliceRecord) -> SliceRecord:
    return replace(record, release_requested=True)


def force_release(record: SliceRecord, now: datetime) -> SliceRecord:
    """Return the record released without asking the relay who runs on it; the note says so."""
    if record.release_forced:
        return record
    note = f"Release forced at {now:%Y-%m-%d %H:%M} UTC. {record.note}".rstrip()
    return replace(record, release_requested=True, release_forced=True, note=note)


def edit(cluster: ClusterId, slice_: ClaimId | SliceId, change: Edit, deps: IntakeDeps) -> bool:
    """Edit a slice's record and request a reconcile; return False if the record is so already or does not exist."""

    def once() -> bool:
        stored = deps.store.together(cluster, Names.of(slice_)).slice
        if stored is None or change(stored.value) == stored.value:
            return False
        deps.store.commit(Change(stored, replace(change(stored.value), next_reconcile_at=deps.clock.now())))
        return True

    changed = retry_on_conflict(once, deps.clock)
    if changed:
        deps.publisher.request_reconcile(cluster, [slice_])
    return changed


def wake(cluster: ClusterId, deps: IntakeDeps) -> int:
    """Request a reconcile of every slice that is not settled, as after a pause; return their number."""
    kept = (stored.value for stored in deps.store.kept_slices(cluster))
    unsettled = [each.name for each in kept if each.next_reconcile_at is not None or each.reason in LIMITED]
    deps.publisher.request_reconcile(cluster, unsettled)
    return len(unsettled)

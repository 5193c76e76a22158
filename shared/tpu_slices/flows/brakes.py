"""Stops the releases of slices whose workloads are missing, if there are too many, until an operator confirms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.reconciling.brake import enough, found, stops_told, too_many, why_kept, why_not_bought
from tpu_slices.domain.records.brakes import Brake, Stop
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.flows import edits
from tpu_slices.flows.budget import Counted, count
from tpu_slices.flows.retrying import retry_on_conflict
from tpu_slices.ports.deps import IntakeDeps, ReconcileDeps
from tpu_slices.ports.store import Change, Stored


def stopped(
    record: SliceRecord, workload: WorkloadRecord | None, deps: ReconcileDeps
) -> tuple[SliceRecord, str | None]:
    """Return a slice with the end that nobody confirmed, if it had one, and why its release is stopped, or None.

    If there are too many such ends with this one, the releases of its namespace or of the cluster are stopped.
    """
    if record.unclaimed:
        return record, _kept_with_its_claim(record, workload, deps)
    if found(record, workload, deps.clock.now(), None) is None:
        return record, None
    stored, now, namespace = deps.store.brake(record.cluster), deps.clock.now(), record.owner.namespace
    brake = stored.value if stored else Brake.released(record.cluster)
    end = found(record, workload, now, brake)
    assert end is not None
    new = int(record.unconfirmed_end is None)
    if brake.on(namespace) is None and (stop := _pulled(brake, namespace, new, now, deps)) is not None:
        end, pulled = replace(end, counted=False), brake.pulled(namespace, stop)
    elif end.counted and brake.on(None) is None and (stop := _pulled(brake, None, new, now, deps)) is not None:
        pulled = brake.pulled(None, stop)
    else:
        pulled = brake
    if pulled is not brake:
        deps.store.commit(Change(stored, pulled))
    return record.with_changes(unconfirmed_end=end), why_kept(pulled, namespace, end.found_at)


def _kept_with_its_claim(record: SliceRecord, workload: WorkloadRecord | None, deps: ReconcileDeps) -> str | None:
    """Return why a slice that no claim has is kept: its claim alone counts as an end."""
    if workload is None or workload.state is not WorkloadState.MISSING or record.release_requested:
        return None
    stored = deps.store.brake(record.cluster)
    return why_kept(stored.value, record.owner.namespace, workload.state_since) if stored is not None else None


def _pulled(brake: Brake, namespace: str | None, new: int, now: datetime, deps: ReconcileDeps) -> Stop | None:
    """Return the stop that so many ends make, with `new` ones that are not saved yet; None if they are not too many.

    These are counted as READY still; if they were not, the others count as one less.
    """
    cluster, store = brake.cluster, deps.store
    since = brake.counted_since(namespace, now)
    ended = store.unconfirmed_ends(cluster, since, namespace) + new
    if not too_many(ended, 0):
        return None
    live = store.ready_count(cluster, enough(ended) + new, namespace) - new
    if not too_many(ended, live):
        return None
    chips = store.chips_bought(cluster, namespace)
    return Stop(since=since, stopped_at=now, ended=ended, live=live, chips=chips)


@dataclass(frozen=True, slots=True)
class Limited:
    """What may be bought while releases are stopped."""

    why: str | None
    """Why a slice may not be bought; None: it may."""
    chips: Counted
    """What that rests on."""


def limited(
    record: SliceRecord, stored: Stored[Brake] | None, settings: ClusterSettings, deps: ReconcileDeps
) -> Limited | None:
    """Return whether a slice may be bought; None: no releases are stopped where it is."""
    brake, namespace = stored.value if stored else None, record.owner.namespace
    if brake is None or record.spec is None or not brake.stops(namespace):
        return None
    chips = count(record, settings, deps, always=True)
    return Limited(why_not_bought(brake, namespace, record.spec.chips, chips.held) if chips.held else None, chips)


def confirm(cluster: ClusterId, deps: IntakeDeps, namespace: str | None = None) -> tuple[str, ...]:
    """Let the releases of a namespace go on, or all of them, and request them; return what was stopped."""

    def once() -> tuple[str, ...]:
        stored = deps.store.brake(cluster)
        messages = tuple(stops_told(stored.value, namespace)) if stored else ()
        if stored and messages:
            deps.store.commit(Change(stored, stored.value.confirmed(namespace, deps.clock.now())))
        return messages

    messages = retry_on_conflict(once, deps.clock)
    if messages:
        edits.wake(cluster, deps)
    return messages

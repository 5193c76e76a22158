"""The orders that the backend gets about the attempts of a slice, what it sees, and the questions to the relay."""

from __future__ import annotations

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.observations import Absent, Cause, PoolObservations
from tpu_slices.domain.model.questions import HostsQuestion
from tpu_slices.domain.reconciling.decisions import CloseHosts, OpenHosts
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.ports.deps import ReconcileDeps


def order_of(record: SliceRecord, attempt: int, settings: ClusterSettings) -> PoolOrder:
    """Return the order about one attempt of a slice."""
    known = record.numbered(attempt)
    made_as = record.made_as if known is None or known is record.current else known.ordered or record.spec
    return PoolOrder(
        cluster_path=settings.path,
        cluster_gke_id=settings.gke_id,
        slice_id=record.id,
        attempt=attempt,
        legacy_pool=record.legacy_pool if attempt == 0 else None,
        job=record.job,
        spec=made_as,
        settings=record.pinned_settings or settings.pools,
        operation=known.operation if known else None,
        ours_since=known.ours_since if known else None,
        asks_work=known is record.current and _work_is_unknown(record),
    )


def _work_is_unknown(record: SliceRecord) -> bool:
    """Return whether the record does not say what the vendor does to the pool, if it works on it."""
    known = record.current.returning
    return known is None or known.over_at is not None or known.cause not in {Cause.UPGRADE, Cause.REPAIR}


def observed(record: SliceRecord, settings: ClusterSettings, deps: ReconcileDeps) -> PoolObservations:
    """Return the observations of every pool that may exist; an attempt that was never requested has none."""
    current = (
        Absent()
        if record.current.create_requested_at is None
        else deps.backend.look(order_of(record, record.attempt, settings))
    )
    terminating = {
        earlier.number: deps.backend.look(order_of(record, earlier.number, settings)) for earlier in record.terminating
    }
    return PoolObservations(current, terminating)


def question_of(action: CloseHosts | OpenHosts, record: SliceRecord) -> HostsQuestion:
    """Return the question to the relay that closes the hosts of an attempt, or opens them."""
    known = record.numbered(action.attempt)
    asked = known.hosts.asked if known is not None else None
    assert asked is not None, "it was saved with its number"
    return HostsQuestion(
        slice_id=record.id,
        attempt=action.attempt,
        number=action.number,
        asked_at=asked.at,
        close=isinstance(action, CloseHosts),
        legacy_pool=record.legacy_pool if action.attempt == 0 and not record.owner.kind.declares else None,
        evict_by=action.evict_by if isinstance(action, CloseHosts) else None,
    )

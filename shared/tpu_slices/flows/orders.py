"""The orders that the backend gets about a slice, what it sees, and the questions to the relay."""

from __future__ import annotations

from dataclasses import replace

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.observations import Absent, Cause, Observed
from tpu_slices.domain.model.questions import HostsQuestion
from tpu_slices.domain.model.slices import SliceSpec
from tpu_slices.domain.reconciling.decisions import CloseHosts, OpenHosts
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.ports.deps import ReconcileDeps


def order_of(record: SliceRecord, settings: ClusterSettings) -> PoolOrder:
    """Return the order about a slice."""
    current = record.current
    return PoolOrder(
        cluster_path=settings.path,
        cluster_gke_id=settings.gke_id,
        slice_id=record.maker,
        attempt=current.number,
        legacy_pool=record.legacy_pool if current.number == 0 else None,
        job=record.named_for,
        spec=_keyed(record),
        settings=record.pinned_settings or settings.pools,
        operation=current.operation,
        ours_since=current.ours_since,
        made_by=current.made_by,
        asks_work=_work_is_unknown(record),
    )


def _keyed(record: SliceRecord) -> SliceSpec | None:
    """Return what its pool is, with the key that its hosts ought to carry now; of one that crosses, its own name."""
    spec = record.made_as
    if spec is not None and spec.crosses:
        return replace(spec, key=record.id)
    return replace(spec, key=record.key) if spec is not None and record.key else spec


def _work_is_unknown(record: SliceRecord) -> bool:
    """Return whether the record does not say what the vendor does to the pool, if it works on it."""
    known = record.current.returning
    return known is None or known.over_at is not None or known.cause not in {Cause.UPGRADE, Cause.REPAIR}


def observed(record: SliceRecord, settings: ClusterSettings, deps: ReconcileDeps) -> Observed:
    """Return what the vendor shows of a slice's pool; one that was never requested is absent."""
    if record.current.create_requested_at is None:
        return Observed(Absent())
    return Observed(deps.backend.look(order_of(record, settings)))


def question_of(action: CloseHosts | OpenHosts, record: SliceRecord) -> HostsQuestion:
    """Return the question to the relay that closes the hosts of a slice, or opens them."""
    asked = record.current.hosts.asked
    assert asked is not None, "it was saved with its number"
    return HostsQuestion(
        slice_id=record.maker,
        attempt=action.attempt,
        number=action.number,
        asked_at=asked.at,
        close=isinstance(action, CloseHosts),
        key=action.key if isinstance(action, OpenHosts) else "",
        legacy_pool=record.legacy_pool if action.attempt == 0 and not record.owner.kind.declares else None,
        evict_by=action.evict_by if isinstance(action, CloseHosts) else None,
    )

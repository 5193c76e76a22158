"""The orders that the backend, and the questions that the relay, gets about the attempts of a slice."""

from __future__ import annotations

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.decisions import CloseHosts, OpenHosts
from tpu_slices.domain.model.facts import HostsQuestion
from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.ports.backend import PoolOrder


def order_of(record: SliceRecord, attempt: int, settings: ClusterSettings) -> PoolOrder:
    """Return the order about one attempt of a slice."""
    operations = {record.attempt: record.operation, **{each.attempt: each.operation for each in record.terminating}}
    return PoolOrder(
        cluster_path=settings.path,
        cluster_gke_id=settings.gke_id,
        slice_id=record.id,
        attempt=attempt,
        legacy_pool=record.legacy_pool if attempt == 0 else None,
        job=record.job,
        spec=record.spec,
        settings=record.pinned_settings or settings.pools,
        operation=operations.get(attempt),
    )


def question_of(action: CloseHosts | OpenHosts, record: SliceRecord) -> HostsQuestion:
    """Return the question to the relay that closes the hosts of an attempt, or opens them."""
    return HostsQuestion(
        slice_id=record.id,
        attempt=action.attempt,
        asked_at=action.asked_at,
        close=isinstance(action, CloseHosts),
        legacy_pool=record.legacy_pool if action.attempt == 0 and not record.owner.kind.declares else None,
        evict_by=action.evict_by if isinstance(action, CloseHosts) else None,
    )

"""The orders that the backend gets about the attempts of a slice."""

from __future__ import annotations

from tpu_slices.domain.model.clusters import ClusterSettings
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

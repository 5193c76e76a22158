"""Records what the relay reports of TPUNodeGroups, and tells it how far each is."""

from __future__ import annotations

from datetime import datetime

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import Answer, SliceDeclared, WorkloadChanged
from tpu_slices.domain.model.node_groups import NodesGone
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import ClaimId, ClusterId, Owner, WorkloadJob, claim_id
from tpu_slices.domain.reconciling.case import Known
from tpu_slices.domain.reconciling.demand import declared
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.reporting.node_groups import status_of
from tpu_slices.ports.deps import IntakeDeps, ReconcileDeps
from tpu_slices.ports.publisher import NodeGroupUpdate
from tpu_slices.ports.store import Change, Together


def declared_by(owner: Owner, cluster: ClusterId) -> ClaimId:
    """Return the slice that a TPUNodeGroup declares."""
    return claim_id(WorkloadJob.declared(cluster, owner))


def node_group_told(
    fact: SliceDeclared | WorkloadChanged | Answer,
    told_at: datetime,
    settings: ClusterSettings,
    read: Together,
    deps: IntakeDeps,
) -> None:
    """Record a TPUNodeGroup and its slice, and request a reconcile, which tells how far the slice is."""
    id_ = declared_by(fact.workload.owner, settings.cluster)
    known, stored = read.workloads.get(fact.workload.owner.uid), read.having.get(id_)
    change = declared(fact, known.value if known else None, stored.value if stored else None, told_at, settings)
    if change is None:
        return
    slices = (Change(stored, record) for record in change.slices.values())
    deps.store.commit(Change(known, change.workload), *slices)
    deps.publisher.request_reconcile(settings.cluster, [id_])


def tell_node_group(record: SliceRecord, known: Known, deps: ReconcileDeps) -> None:
    """Announce the status of the TPUNodeGroup that a slice is of, if it is of one.

    Each decision announces it, news or not: one that was lost is made up for by the next. That of an adopted slice
    stays as TPU operator wrote it until its hosts are counted.
    """
    if record.owner.kind.declares and record.reason is not Reason.ADOPTED and not record.unclaimed:
        status = status_of(record, known.workloads.get(record.owner.uid))
        update = NodeGroupUpdate(owner=record.owner, slice_id=record.maker, status=status, at=deps.clock.now())
        deps.publisher.announce_node_group(record.cluster, update)


def tell_gone(record: SliceRecord, settings: ClusterSettings, deps: ReconcileDeps) -> None:
    """Ask the relay of a self-managed cluster to forget the nodes of a pool that is gone for good."""
    if settings.self_managed:
        deps.publisher.ask(record.cluster, [NodesGone(slice_id=record.maker, attempt=record.attempt)])

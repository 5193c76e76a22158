"""Adopts the node pools of TPU Provisioner, or the slices of TPU operator, when somebody migrates a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.observations import Unreadable
from tpu_slices.domain.model.slices import ClaimId, ClusterId, WorkloadUid, claim_id, slice_id
from tpu_slices.domain.reconciling.adoption import Adoption, LiveWorkload, job_named, placeholders, plan_adoptions
from tpu_slices.domain.reconciling.group_adoption import OperatorGroup, confirmed_adoption, planned_adoption
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.flows.node_groups import declared_by
from tpu_slices.flows.orders import order_of
from tpu_slices.flows.retrying import retry_on_conflict
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.store import Change, Found, Stored, moved


@dataclass(frozen=True, slots=True)
class AdoptionPlan:
    """The outcome for each pool that another provisioner made, and the writes that bring it about."""

    adoptions: tuple[Adoption, ...]
    changes: tuple[tuple[Change, ...], ...]
    """Those of each workload, to be written together: no claim may have two slices."""


def survey(cluster: ClusterId, workloads: Sequence[LiveWorkload], deps: ReconcileDeps) -> AdoptionPlan:
    """Return what `adopt` would do. Permanent: unknown cluster. Temporary: GKE or the store cannot be read."""
    settings = _settings(cluster, deps)
    pools, parents = deps.backend.legacy_pools(settings), _parents(workloads, settings, deps)
    jobs = [job_named(pool.job, cluster, each.ref, each.requests) for pool in pools for each in workloads]
    claims = {claim_id(job) for job in jobs if job is not None}
    having, adopted = deps.store.having(cluster, claims), deps.store.slices(cluster, [slice_id(it, 0) for it in claims])
    records = {id_: stored.value for id_, stored in having.items()} | {
        stored.value.maker: stored.value for stored in adopted.values()
    }
    adoptions = plan_adoptions(pools, workloads, records, settings, deps.clock.now())
    return _plan(adoptions, workloads, having, parents, deps)


def adopt(cluster: ClusterId, workloads: Sequence[LiveWorkload], deps: ReconcileDeps) -> AdoptionPlan:
    """Adopt every pool that can be adopted; repeating this is harmless. Raises like `survey`."""
    return _carried_out(lambda: survey(cluster, workloads, deps), cluster, deps)


def survey_groups(cluster: ClusterId, groups: Sequence[OperatorGroup], deps: ReconcileDeps) -> AdoptionPlan:
    """Return what `adopt_groups` would do. Permanent: unknown cluster. Temporary: something cannot be read."""
    settings = _settings(cluster, deps)
    now = deps.clock.now()
    ids = [declared_by(group.ref.owner, cluster) for group in groups]
    live = [LiveWorkload(ref=group.ref, state=group.state, requests=()) for group in groups]
    parents = _parents(live, settings, deps)
    having = deps.store.having(cluster, ids)
    planned = (
        planned_adoption(group, having[id_].value if id_ in having else None, settings, now)
        for group, id_ in zip(groups, ids, strict=True)
    )
    adoptions = tuple(_confirmed(each, settings, deps) for each in planned)
    return _plan(adoptions, live, having, parents, deps)


def adopt_groups(cluster: ClusterId, groups: Sequence[OperatorGroup], deps: ReconcileDeps) -> AdoptionPlan:
    """Adopt the slices of TPU operator's that can be adopted; repeating this is harmless. Raises like `survey_groups`.

    TPU operator must not run, nor may the relay hold the groups before this is done.
    """
    return _carried_out(lambda: survey_groups(cluster, groups, deps), cluster, deps)


def _confirmed(planned: Adoption, settings: ClusterSettings, deps: ReconcileDeps) -> Adoption:
    if planned.record is None:
        return planned
    seen = deps.backend.look(order_of(planned.record, settings))
    if isinstance(seen, Unreadable):
        raise Temporary(seen.message)
    return confirmed_adoption(planned, seen)


def _carried_out(survey: Callable[[], AdoptionPlan], cluster: ClusterId, deps: ReconcileDeps) -> AdoptionPlan:
    def once() -> AdoptionPlan:
        plan = survey()
        for changes in plan.changes:
            deps.store.commit(*changes)
        return plan

    plan = retry_on_conflict(once, deps.clock)
    deps.publisher.request_reconcile(
        cluster, [adoption.record.name for adoption in plan.adoptions if adoption.record is not None]
    )
    return plan


def _parents(
    workloads: Sequence[LiveWorkload], settings: ClusterSettings, deps: ReconcileDeps
) -> Found[WorkloadUid, WorkloadRecord]:
    """Return the records of workloads: read before what their claims have, which they guard."""
    return deps.store.workloads(settings.cluster, [workload.ref.owner.uid for workload in workloads])


def _settings(cluster: ClusterId, deps: ReconcileDeps) -> ClusterSettings:
    settings = deps.store.settings(cluster)
    if settings is None:
        raise Permanent(f'no settings for cluster "{cluster}": write them with `slices configure`')
    return settings


def _plan(
    adoptions: tuple[Adoption, ...],
    workloads: Sequence[LiveWorkload],
    having: Mapping[ClaimId, Stored[SliceRecord]],
    parents: Found[WorkloadUid, WorkloadRecord],
    deps: ReconcileDeps,
) -> AdoptionPlan:
    """Return the plan; it writes a workload with its slices, so that each slice has one that can be asked about."""
    stored = {uid: each.value for uid, each in parents.items()}
    records = placeholders(adoptions, workloads, stored, deps.clock.now())
    adopted = [adoption.record for adoption in adoptions if adoption.record is not None]
    changes = (
        (
            Change(parents.get(record.owner.uid), record),
            *(
                change
                for each in adopted
                if each.owner.uid == record.owner.uid
                for change in moved(having.get(each.last_claim), each)
            ),
        )
        for record in records
    )
    return AdoptionPlan(adoptions, tuple(changes))

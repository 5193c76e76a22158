"""Adopts the node pools of TPU Provisioner, when an operator migrates a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import ClusterId, slice_id
from tpu_slices.domain.reconciling.adoption import Adoption, LiveWorkload, job_named, placeholders, plan_adoptions
from tpu_slices.flows.retrying import retry_on_conflict
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.errors import Permanent
from tpu_slices.ports.store import Change


@dataclass(frozen=True, slots=True)
class AdoptionPlan:
    """The outcome for each pool that TPU Provisioner made, and the writes that bring it about."""

    adoptions: tuple[Adoption, ...]
    changes: tuple[Change, ...]


def survey(cluster: ClusterId, workloads: Sequence[LiveWorkload], deps: ReconcileDeps) -> AdoptionPlan:
    """Return what `adopt` would do. Permanent: unknown cluster. Temporary: GKE or the store cannot be read."""
    settings = deps.store.settings(cluster)
    if settings is None:
        raise Permanent(f'no settings for cluster "{cluster}": write them with `slices configure`')
    return _survey(settings, workloads, deps)


def adopt(cluster: ClusterId, workloads: Sequence[LiveWorkload], deps: ReconcileDeps) -> AdoptionPlan:
    """Adopt every pool that can be adopted; repeating this is harmless. Raises like `survey`."""

    def once() -> AdoptionPlan:
        plan = survey(cluster, workloads, deps)
        for change in plan.changes:
            deps.store.commit(change)
        return plan

    plan = retry_on_conflict(once, deps.clock)
    deps.publisher.request_reconcile(
        cluster, [adoption.record.id for adoption in plan.adoptions if adoption.record is not None]
    )
    return plan


def _survey(settings: ClusterSettings, workloads: Sequence[LiveWorkload], deps: ReconcileDeps) -> AdoptionPlan:
    """Return the plan; it writes JobSets before slices, so that every slice has a JobSet that can be asked about."""
    cluster, now = settings.cluster, deps.clock.now()
    pools = deps.backend.legacy_pools(settings)
    jobs = [job_named(pool.job, cluster, each.ref, each.requests) for pool in pools for each in workloads]
    known = deps.store.slices(cluster, {slice_id(job) for job in jobs if job is not None})
    adoptions = plan_adoptions(
        pools,
        workloads,
        {id_: stored.value for id_, stored in known.items()},
        settings,
        now,
    )
    parents = deps.store.workloads(cluster, [jobset.ref.owner.uid for jobset in workloads])
    records = placeholders(adoptions, workloads, {uid: stored.value for uid, stored in parents.items()}, now)
    changes = [Change(parents.get(record.owner.uid), record) for record in records]
    changes += [
        Change(known.get(adoption.record.id), adoption.record) for adoption in adoptions if adoption.record is not None
    ]
    return AdoptionPlan(adoptions, tuple(changes))

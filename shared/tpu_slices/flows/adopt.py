"""Taking over what TPU Provisioner made: asked for by a person, once, while a cluster moves over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import ClusterId, slice_id
from tpu_slices.domain.reconciling.adoption import Heir, LiveJobSet, guardians, inherit, job_named
from tpu_slices.flows.retrying import again
from tpu_slices.ports.deps import Ports
from tpu_slices.ports.errors import Permanent
from tpu_slices.ports.store import Change


@dataclass(frozen=True, slots=True)
class Estate:
    """What becomes of each pool that TPU Provisioner made, and the writes that make it so."""

    heirs: tuple[Heir, ...]
    changes: tuple[Change, ...]


def survey(cluster: ClusterId, jobsets: Sequence[LiveJobSet], ports: Ports) -> Estate:
    """Say what `adopt` would do; Permanent: the cluster is not known. Temporary: GKE or the store cannot be read."""
    settings = ports.store.settings(cluster)
    if settings is None:
        raise Permanent(f'no settings for cluster "{cluster}": write them with `slices configure`')
    return _survey(settings, jobsets, ports)


def adopt(cluster: ClusterId, jobsets: Sequence[LiveJobSet], ports: Ports) -> Estate:
    """Take over every pool that can be; doing it twice is harmless. Raises as `survey`."""

    def once() -> Estate:
        estate = survey(cluster, jobsets, ports)
        for change in estate.changes:
            ports.store.commit(change)
        return estate

    estate = again(once, ports.clock)
    ports.bus.nudge(cluster, [heir.record.id for heir in estate.heirs if heir.record is not None])
    return estate


def _survey(settings: ClusterSettings, jobsets: Sequence[LiveJobSet], ports: Ports) -> Estate:
    """Lay the pools beside the JobSets; these are written first, so that no slice is without one to ask about."""
    cluster, now = settings.cluster, ports.clock.now()
    pools = ports.backend.inheritance(settings)
    jobs = [job_named(pool.job, cluster, each.ref, each.requests) for pool in pools for each in jobsets]
    known = ports.store.slices(cluster, {slice_id(job) for job in jobs if job is not None})
    heirs = inherit(
        pools,
        jobsets,
        {id_: stored.value for id_, stored in known.items()},
        settings,
        now,
    )
    parents = ports.store.jobsets(cluster, [jobset.ref.uid for jobset in jobsets])
    records = guardians(heirs, jobsets, {uid: stored.value for uid, stored in parents.items()}, now)
    changes = [Change(parents.get(record.uid), record) for record in records]
    changes += [Change(known.get(heir.record.id), heir.record) for heir in heirs if heir.record is not None]
    return Estate(heirs, tuple(changes))

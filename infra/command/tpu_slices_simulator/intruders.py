"""What others do in a simulation that is not theirs to do: pods of strangers, static pools, edits of records."""

from __future__ import annotations

from dataclasses import replace

from relay.objects import PoolKey
from tpu_slices.domain.model.slices import SliceId
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.wire.documents import COLLECTIONS, SCHEMA
from tpu_slices_simulator import objects
from tpu_slices_simulator.scene import Scene
from tpu_slices_simulator.story import Kind

LONGEST = 30
"""Minutes that a stranger stays, or an edit."""
UNREADABLE = 99
"""A schema of no release."""


class Intruders:
    def __init__(self, simulation: Scene) -> None:
        self._of = simulation
        self._leave: dict[str, int] = {}
        """By stranger's pod, when it goes."""
        self.edited: dict[SliceId, int] = {}
        """By slice whose record cannot be read, until when it cannot."""

    def act(self, minute: int) -> None:
        self._strangers(minute)
        self._static_pools()
        self._edits(minute)

    def calm_down(self) -> None:
        """Let all that was done be undone."""
        for uid in sorted(self._leave.keys() & self._of.cluster.strangers.keys()):
            self._of.cluster.stranger_goes(uid)
        for slice_ in list(self.edited):
            self._repairs(slice_)

    def repeat(self, minute: int) -> None:
        """Know, after the database was set back, which records cannot be read again: each is repaired in its time."""
        store, cluster = self._of.store, self._of.settings.cluster
        known, self.edited = self.edited, {}
        for place in store.places():
            document = store.document(place) if place.collection == COLLECTIONS[SliceRecord] else None
            if document is not None and document.get("schema") == UNREADABLE:
                slice_ = SliceId(place.id.removeprefix(f"{cluster}."))
                self.edited[slice_] = known.get(slice_, minute + 1)

    def _strangers(self, minute: int) -> None:
        """Let pods come that say they are of the Job that a pool is for, from another namespace; they go again."""
        sim = self._of
        for uid in [uid for uid in sim.cluster.strangers if minute >= self._leave[uid]]:
            sim.cluster.stranger_goes(uid)
        for pool in list(sim.backend.pools.values()) if Kind.STRANGERS in sim.on else ():
            if pool.order is None or not sim.strikes(Kind.STRANGERS, minute, pool.name):
                continue
            job, key = pool.order.job, PoolKey(pool.order.slice_id, pool.order.attempt)
            workload, nodes = sim.cluster.workloads.get(job.owner.uid), sorted(sim.cluster.nodes_of(key))
            if workload is None or not nodes:
                continue
            template = objects.template_of(workload.manifest, job.replicated_job)
            forged = replace(job.owner, namespace="strangers")
            for rank in range(sim.chance.between(1, len(nodes), "strangers", pool.name, minute)):
                uid = f"stranger-{pool.name}-{minute}-{rank}"
                place = (job.replicated_job, job.job_index, rank)
                self._leave[uid] = minute + sim.chance.between(1, LONGEST, "leaves", uid)
                sim.cluster.stranger_comes(objects.pod_of(template, forged, place, uid, nodes[rank]))

    def _static_pools(self) -> None:
        """Let leaders that wait find hosts that are nobody's slice."""
        for pod in list(self._of.cluster.pods.values()) if Kind.LEADERS_ON_STATIC_POOLS in self._of.on else ():
            if pod.node is None and self._of.strikes(Kind.LEADERS_ON_STATIC_POOLS, self._of.minute, pod.uid):
                self._of.cluster.binds_outside(pod, f"static-{pod.uid}")

    def _edits(self, minute: int) -> None:
        sim = self._of
        for slice_ in [slice_ for slice_, until in self.edited.items() if minute >= until]:
            self._repairs(slice_)
        if Kind.RECORDS_EDITED in sim.on:
            for slice_ in [record.id for record in sim.records.values()]:
                if sim.strikes(Kind.RECORDS_EDITED, minute, slice_):
                    self.edited[slice_] = minute + sim.chance.between(1, LONGEST, "repaired", slice_, minute)
                    sim.store.edit_slice(sim.settings.cluster, slice_, schema=UNREADABLE)

    def _repairs(self, slice_: SliceId) -> None:
        del self.edited[slice_]
        self._of.store.edit_slice(self._of.settings.cluster, slice_, schema=SCHEMA)

"""Looks at the gangs of a simulated world: none runs in part, and none holds slices for ever."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from tests.simulation.promises import Promise, broken
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices_simulator.live import LiveWorkload, Pod
from tpu_slices_simulator.simulation import Simulation
from tpu_slices_simulator.story import Kind

SLACK = timedelta(minutes=30)
"""In which slices go that are let go, whatever is slow."""
ELSEWHERE = {
    Kind.STOCKOUT,
    Kind.QUOTA,
    Kind.RESERVATION_USED_UP,
    Kind.CREATIONS_FAIL,
    Kind.GKE_FULL,
    Kind.OPERATIONS_SLOW,
}
"""What keeps slices from being made, and not from being let go."""


class Gangs:
    """Raises Broken if a gang starts in part, or holds slices for too long."""

    def __init__(self, world: Simulation) -> None:
        self._world = world
        self._held: Counter[WorkloadUid] = Counter()
        """By workload, for how many minutes some of its slices have stood unused while others did not."""
        self._stuck: Counter[WorkloadUid] = Counter()
        """For how many of these minutes another could not be made, as its record says."""
        world.cluster.opens = self._is_let_go

    def _is_let_go(self, pod: Pod) -> None:
        """Check that all slices of a pod's gang stand as it is let go; not while a relay cannot see what there is."""
        workload, world = pod.jobset, self._world
        if any(relay.is_blind for relay in world.cluster.relays):
            return
        lacking = [index for index in self._claims(workload) if not self._stands(workload, index)]
        if lacking:
            broken(Promise.NO_HALF_GANG, f"{pod.uid} of {workload.ref.owner.name} is let go without {lacking}", world)

    def each_minute(self) -> None:
        """Check that no slices are held for too long, while nothing keeps them from being let go."""
        world = self._world
        kept = bool(world.on.keys() - ELSEWHERE) or world.operators.paused is not None or world.story.flapping
        limits = world.settings.limits
        for uid, workload in world.workloads.items():
            if not self._holds(workload):
                self._held.pop(uid, None)
                self._stuck.pop(uid, None)
            elif not kept and not world.operators.held:
                self._held[uid] += 1
                self._stuck[uid] += self._is_stuck(workload)
                too_long = timedelta(minutes=self._held[uid]) > limits.gang_hold_at_most + SLACK
                if too_long or timedelta(minutes=self._stuck[uid]) > limits.gang_hold_for + SLACK:
                    broken(Promise.NO_HOARD, f"{workload.ref.owner.name} holds slices, and lacks others", world)

    def _holds(self, workload: LiveWorkload) -> bool:
        claims = self._claims(workload)
        if workload.state is not WorkloadState.ACTIVE or workload.bound or not claims:
            return False
        stand = [self._stands(workload, index) for index in claims]
        return any(stand) and not all(stand)

    def _is_stuck(self, workload: LiveWorkload) -> bool:
        records = (each for each in self._world.records.values() if each.owner == workload.ref.owner)
        return any(each.wanted and each.phase in {Phase.WAITING, Phase.BLOCKED} for each in records)

    def _claims(self, workload: LiveWorkload) -> list[int]:
        return [index for index in range(workload.slices) if workload.gang_of(index)]

    def _stands(self, workload: LiveWorkload, index: int) -> bool:
        """Return whether a Job's leader is somewhere, or has ended, or all hosts of a slice with its key are ready."""
        cluster = self._world.cluster
        pods = [pod for pod in cluster.pods.values() if pod.jobset is workload and pod.index == index]
        if any(pod.node is not None or pod.ended for pod in pods):
            return True
        key = workload.key_of(index, self._world.settings.cluster)
        hosts = [node.seen for node in cluster.nodes.values() if node.seen.key == key]
        pools = {host.pool for host in hosts}
        return any(
            sum(host.usable for host in hosts if host.pool == pool) >= max(host.expected or 1 for host in hosts)
            for pool in pools
        )

"""Looks at a simulated world when nothing has gone wrong for a while, and when all has ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain

from relay.objects import Pool, PoolKey
from tests.builders import a_spec
from tests.simulation.promises import Promise, broken
from tests.simulation.standing import by_id, claim_of, operations, ours, slice_of
from tests.simulation.stocked import is_asked_for
from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.observations import Busy
from tpu_slices.domain.model.reasons import Phase, Reason, ReportReason
from tpu_slices.domain.model.slices import PoolName, WorkloadUid, pool_name
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.reporting.gangs import GATHERS
from tpu_slices.ports.publisher import WorkloadUpdate
from tpu_slices_simulator.live import LiveWorkload
from tpu_slices_simulator.simulation import Simulation
from tpu_slices_simulator.story import Kind
from tpu_slices_simulator.system import MINUTE

SWEEPS = 3
"""In which a deletion is requested: two, and the one that found the pool unwanted."""


LONG = 60
"""Minutes that a slice which nobody wants may stand while nothing goes wrong."""
WAITS = {ReportReason.PROVISIONING, ReportReason.WAITING, ReportReason.BLOCKED, *GATHERS}


class Calm:
    """Raises Broken if something does not hold that must hold by then."""

    def __init__(self, world: Simulation) -> None:
        self._world = world
        self._unwanted: Counter[PoolName] = Counter()
        """By pool that nobody wants, for how many minutes nothing kept it."""
        self._began = (0, 0, 0)
        """The minute in which the end of the calm began; how many requests and commits there were."""
        self._lingering: Counter[PoolName] = Counter()
        """By pool that nobody wants, after how many sweeps its deletion was not requested though there was a slot."""

    def each_minute(self) -> None:
        """Check whose pods are where, and that nothing stands for long that is not wanted, if nothing keeps it."""
        world = self._world
        self._keep_to_their_hosts()
        full = operations(world) >= world.settings.limits.operations
        kept = full or bool(world.on) or world.operators.paused is not None or world.story.flapping
        known = by_id(world.records.values())
        standing = {pool.name: pool for pool in ours(world)}
        self._unwanted = Counter({name: count for name, count in self._unwanted.items() if name in standing})
        for pool in standing.values():
            record = known.get(slice_of(pool))
            if record is None or self._is_wanted(record):
                self._unwanted.pop(pool.name, None)
            elif not (kept or record.hold or isinstance(pool.seen, Busy)):
                self._unwanted[pool.name] += 1
                if self._unwanted[pool.name] > LONG:
                    broken(Promise.WANTED, f"{pool.name} stands, and nobody wants it: {record.reason}", world)

    def _keep_to_their_hosts(self) -> None:
        cluster = self._world.cluster
        for pool in ours(self._world):
            pods = cluster.users_of(pool.order.slice_id, pool.order.attempt) if pool.order else []
            keys = {pod.key for pod in pods if pod.key and not cluster.never_ends(pod)}
            if len(keys) > 1:
                broken(Promise.OWN_HOSTS, f"{pool.name} has pods of {' and '.join(sorted(keys))}", self._world)

    def _is_wanted(self, record: SliceRecord) -> bool:
        """Return whether the workload of the claim that has a slice is active, or a live pod is on its hosts."""
        own = self._world.workloads.get(record.owner.uid)
        needed = own is not None and own.state is WorkloadState.ACTIVE and not record.unclaimed
        users = self._world.cluster.users_of(record.maker, record.attempt)
        spare = is_asked_for(record, self._world.settings)
        return needed or spare or any(pod.jobset.state is WorkloadState.ACTIVE for pod in users)

    def in_calm(self) -> None:
        """Check what must hold when nothing has gone wrong for a while."""
        world = self._world
        active = [each for each in world.workloads.values() if each.state is WorkloadState.ACTIVE]
        unserved = [each.ref.owner.name for each in active if self._has_room(each, active) and not each.served]
        used = {name.rpartition("-")[0] for name in world.cluster.used_nodes()}
        known = by_id(world.records.values())
        kept = {Reason.WARM, Reason.SPARE}
        warm = {pool.name for pool in ours(world) if (it := known.get(slice_of(pool))) and it.reason in kept}
        idle = sorted({*world.backend.pools} - used - warm)
        if unserved or idle:
            broken(Promise.CONVERGES, f"without slices: {unserved}; used by nobody: {idle}", self._world)

        self._knows_users()

    def _has_room(self, workload: LiveWorkload, active: Sequence[LiveWorkload]) -> bool:
        """Return whether all that are active fit into the limits of chips that count for a workload."""
        policy, namespace = self._world.settings.policy, workload.ref.owner.namespace
        own = [each for each in active if each.ref.owner.namespace == namespace]
        limits = ((policy.chips_per_cluster, active), (policy.allowed(namespace).chips_per_namespace, own))
        return all(most is None or sum(map(self._most_chips, those)) <= most for most, those in limits)

    def _knows_users(self) -> None:
        world, known = self._world, by_id(self._world.records.values())
        for pool in ours(world):
            record = known.get(slice_of(pool))
            if record is None or record.reason is Reason.USED_BY_OTHERS:
                continue
            for pod in world.cluster.users_of(record.maker, record.attempt):
                claim = claim_of(pod, record.cluster)
                if pod.jobset.state is WorkloadState.ACTIVE and not pod.rank and record.claimed_by != claim:
                    broken(Promise.KNOWN_USERS, f"the Job of {claim} is on {pool.name}, which {record.name} has", world)

    def begins(self) -> None:
        """Note what is to be compared with the end of the calm."""
        world = self._world
        self._began = world.minute, len(world.publisher.requests), len(world.store.commits)

    def costs_little(self) -> None:
        """Check that a slice which does not change costs next to nothing."""
        world, (minute, requests, commits) = self._world, self._began
        minutes, since = world.minute - minute, world.clock.now() - (world.minute - minute) * MINUTE
        records = by_id(world.records.values())
        stable = {
            name: it for it in records.values() for name in (it.id, it.claimed_by) if it.transitions[-1].at < since
        }
        for (_, name), looks in Counter(world.publisher.requests[requests:]).items():
            if name in stable and looks > (minutes if _waits(stable[name]) else minutes / 3) + 1:
                broken(Promise.BOUNDED_COST, f"{name} is looked at {looks} times in {minutes} minutes", world)
        for change in chain.from_iterable(world.store.commits[commits:]):
            if isinstance(change.after, SliceRecord) and change.after.id in stable and not _waits(change.after):
                broken(Promise.BOUNDED_COST, f"{change.after.name} is {change.after.reason}, and is written", world)

    def _most_chips(self, workload: LiveWorkload) -> int:
        """Return the most chips that a workload holds: each Job those that it asks for, or those of the pool it is on.

        A group runs on the shape that it had before it was edited; it holds that as long as one of its pods runs,
        whether its leader does or not.
        """
        shapes = (Topology.parse(request.topology or "").chips for request in workload.requests if workload.asks)
        chips = dict.fromkeys(range(workload.slices), max((a_spec().chips, *shapes)))
        for pod in (*self._world.cluster.pods.values(), *self._world.cluster.followers.values()):
            if pod.jobset is workload and pod.node in self._world.cluster.nodes:
                on = self._world.cluster.nodes[pod.node].pool
                chips[pod.index] = max(chips.get(pod.index, 0), self._chips_of(on))
        return sum(chips.values())

    def _chips_of(self, on: Pool) -> int:
        """Return the chips of a pool on whose nodes a pod is; those of a slice of these stories, if it is gone."""
        pool = self._world.backend.pools.get(pool_name(*on)) if isinstance(on, PoolKey) else None
        return pool.order.spec.chips if pool and pool.order and pool.order.spec else a_spec().chips

    def reports(self) -> None:
        """Check, in calm, that each JobSet's report, as the relay shows it, says what it has.

        What was announced in minutes that the database lost stays shown until the workload changes: nobody knows of it.
        """
        if self._world.was_set_back_at is not None:
            return
        shown: dict[WorkloadUid, WorkloadUpdate] = {}
        for _, update in self._world.publisher.reports:
            last = shown.get(update.owner.uid)
            if last is None or not update.came_late(last.count, last.at):
                shown[update.owner.uid] = update
        for uid, workload in self._world.workloads.items():
            report = shown[uid].report if uid in shown else None
            waits = report is not None and report.reason in WAITS
            if workload.state is WorkloadState.ACTIVE and waits is workload.served:
                seen = f"{workload.ref.owner.name} is served: {workload.served}, and {report}"
                broken(Promise.TRUE_REPORTS, seen, self._world)

    def after_a_sweep(self) -> None:
        """Check, when nothing is wanted any more, that what stands is being deleted as soon as there are slots.

        The slot of an operation that has ended is free once a sweep has seen that; in the end none may be left.
        """
        if Kind.NEWS_LOST in self._world.on:
            return  # that nothing is wanted any more is found by repetition, or the inventory check
        taken = max(operations(self._world), len(self._world.store.slots(self._world.settings.cluster)))
        known = by_id(self._world.records.values())
        for pool in ours(self._world):
            record = known.get(slice_of(pool))
            warm = record is not None and record.reason is Reason.WARM
            waits = pool.operation is None and taken < self._world.settings.limits.operations and not warm
            self._lingering[pool.name] = self._lingering[pool.name] + 1 if waits else 0
            if self._lingering[pool.name] > SWEEPS:
                broken(Promise.NO_LEAK, f"{pool.name} stands, and nobody has requested its deletion", self._world)

    def when_all_ended(self) -> None:
        """Check what must hold a while after the last workload has ended."""
        kept = [record.id for record in self._world.records.values() if record.phase is not Phase.GONE]
        slots = self._world.store.slots(self._world.settings.cluster)
        if self._world.pools or kept or slots:
            broken(Promise.NO_LEAK, f"pools {self._world.pools}, slices {kept}, {len(slots)} slots", self._world)


def _waits(record: SliceRecord) -> bool:
    return record.phase not in {Phase.READY, Phase.GONE}

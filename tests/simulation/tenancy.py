"""Looks, minute by minute, at what the tenants of a simulated world have of it, and at what they cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain
from typing import Any, cast

from tests.bench.counted.counters import READS
from tests.bench.counted.metered import MeteredStore
from tests.simulation.promises import Promise, broken
from tests.simulation.standing import by_id, ours, slice_of
from tpu_slices_simulator.simulation import Simulation

AT_A_TIME = 2
"""How many slices may stand for the Jobs of one name: what one life of it gave back, and what the next one has."""
DELIVERED = ("_receive", "_reconcile", "_reconcile_with", "_follow", "_sweep")
"""What is called with a message."""
MESSAGES = "messages"


class Tenancy:
    """Raises Broken if a tenant has more than it may, or costs more than its story says."""

    def __init__(self, world: Simulation) -> None:
        self._world = world
        self._counts: Counter[str] = Counter()
        self._before: Counter[str] = Counter()
        """What was counted when the minutes began that a story says the costs of."""
        plain = not (world.story.faults or world.story.crosses or world.story.operated or world.story.flapping)
        self._undisturbed = plain and world.story.policy_off is None and world.story.set_back is None
        if world.story.costs is not None:
            self._listen()

    def _listen(self) -> None:
        """Count what is delivered, and each read of the store."""
        world, counts = self._world, self._counts
        store = MeteredStore(world.deps.store, counts, [])  # type: ignore[arg-type]  # the simulation's own
        world.deps = replace(world.deps, store=cast("Any", store))
        for name in DELIVERED:
            setattr(world, name, self._counted(getattr(world, name)))

    def _counted(self, handle: Any) -> Any:
        def counted(*message: Any) -> Any:
            self._counts[MESSAGES] += 1
            return handle(*message)

        return counted

    def each_minute(self) -> None:
        """Check what holds at the end of each minute."""
        self._keep_within_limits()
        self._begin_in_time()
        if self._undisturbed:
            self._pile_up_nothing()
        if self._world.story.costs is not None:
            self._cost_what_was_said()

    def _keep_within_limits(self) -> None:
        """Check what runs for each namespace, where its pods come to no hosts but those that were bought for it."""
        world, story = self._world, self._world.story
        if story.crosses or story.policy_off is not None or story.set_back is not None:
            return
        chips: Counter[str] = Counter()
        known = by_id(world.records.values())
        for pool in ours(world):
            record = known.get(slice_of(pool))
            pods = world.cluster.users_of(record.maker, record.attempt) if record is not None else []
            for namespace in {pod.jobset.ref.owner.namespace for pod in pods}:
                chips[namespace] += record.made_as.chips if record is not None and record.made_as else 0
        for namespace, run in chips.items():
            most = story.settings.policy.allowed(namespace).chips_per_namespace
            if most is not None and run > most:
                broken(Promise.NO_OVERRUN, f"{namespace} runs on {run} chips of {most}", world)

    def _begin_in_time(self) -> None:
        world = self._world
        for plot in world.story.jobsets:
            if plot.begins_within is None or world.minute != plot.at + plot.begins_within:
                continue
            uid = world.users.workloads[plot.id].ref.owner.uid
            own = [record for record in world.records.values() if record.owner.uid == uid]
            if not own or any(record.current.create_requested_at is None for record in own):
                broken(Promise.FAIR_TURNS, f"{plot.id} waits after {plot.begins_within} minutes", world)

    def _pile_up_nothing(self) -> None:
        world, known = self._world, by_id(self._world.records.values())
        records = [known[slice_of(pool)] for pool in ours(world) if slice_of(pool) in known]
        jobs = Counter(f"{each.owner.full_name} {each.job.replicated_job} {each.job.job_index}" for each in records)
        for job, count in jobs.items():
            if count > AT_A_TIME:
                broken(Promise.NO_PILE, f"{count} slices stand for {job}", world)

    def _cost_what_was_said(self) -> None:
        world, costs = self._world, self._world.story.costs
        assert costs is not None
        if world.minute == costs.since:
            self._before = self._total()
        if world.minute == costs.until:
            used, minutes = self._total() - self._before, costs.until - costs.since
            for what, most in ((MESSAGES, costs.messages), (READS, costs.reads), ("writes", costs.writes)):
                if used[what] > most * minutes:
                    broken(Promise.BOUNDED_COST, f"{used[what]} {what} in {minutes} minutes, of {most} each", world)

    def _total(self) -> Counter[str]:
        """Return what was counted so far."""
        told = self._world.publisher
        to_relay = len(told.updates) + len(told.reports) + len(told.questions)
        writes = sum(1 for _ in chain.from_iterable(self._world.store.commits))
        return self._counts + Counter({MESSAGES: to_relay, "writes": writes})

"""What one tenant can cost: counted on the world in memory, whose clock only this advances, second by second."""

from __future__ import annotations

from datetime import timedelta

from tests.bench.counted.counters import Counts
from tests.bench.counted.meter import MeteredWorld
from tests.builders import settings
from tpu_slices.domain.model.clusters import Allowed, Policy
from tpu_slices.domain.model.reasons import Reason
from tpu_slices_simulator.live import LiveWorkload

SECOND, A_MINUTE = timedelta(seconds=1), 60
CHIPS = 16
"""The limit of a namespace: one slice."""


class Tenants:
    """A cluster in which a namespace may have one slice."""

    def __init__(self) -> None:
        self.world = MeteredWorld(settings(policy=Policy(everyone=Allowed(chips_per_namespace=CHIPS))))
        self.world.minutes(2)
        self._seconds = 0

    def has(self, name: str, slices: int, namespace: str = "research") -> LiveWorkload:
        """Let a JobSet appear, and time pass until one of its slices stands and all others are refused."""
        jobset = self.world.jobset_appears(name, slices=slices, namespace=namespace)
        self.world.minutes(2)
        self.world.operations_end()
        self.world.minutes(8)
        return jobset

    def refused(self) -> int:
        return sum(record.reason is Reason.CHIP_LIMIT_REACHED for record in self.world.records.values())

    def idle(self, minutes: int) -> Counts:
        """Return what so many minutes use in which nobody does anything."""
        with self.world.used() as used:
            self.world.minutes(minutes)
        return used

    def flips(self, jobset: LiveWorkload, seconds: int) -> Counts:
        """Return what so many seconds use in each of which a JobSet is suspended or resumed.

        No pod of it comes to a host meanwhile: controllers and scheduler take longer than that.
        """
        world = self.world
        world.cluster.schedules = False
        with world.used() as used:
            for _ in range(seconds):
                (world.resumes if self._seconds % 2 else world.suspends)(jobset)
                self._seconds += 1
                world.look(tick=self._seconds % A_MINUTE == 0)
                if self._seconds % A_MINUTE == 0:
                    world.operations_end()
                world.clock.advance(SECOND)
        return used

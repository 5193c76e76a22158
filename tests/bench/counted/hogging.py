"""How long a JobSet waits behind 200 of another namespace: counted on the world in memory, as a queue is.

All name reservations of their own, or none does. GKE ends each creation after 5 to 10 minutes, whatever it is of.
"""

from __future__ import annotations

import zlib
from datetime import timedelta

from tests.bench.counted.queue import Case, Course
from tests.builders import MINUTE, a_request, settings
from tpu_slices.domain.model.clusters import Allowed, ClusterSettings, Limits, Policy
from tpu_slices.domain.model.facts import TemplateRequest
from tpu_slices_simulator.live import LiveWorkload

MANY = 200
LEAST, SPREAD = 5 * MINUTE, 300
"""How long the shortest creation lasts, and by how many seconds others last longer at most."""
_RESERVATION = "cloud.google.com/reservation-name"


class Hogged(Course):
    """MANY JobSets of one namespace that wait, and one of another that comes last."""

    def __init__(self, operations: int, *, own: bool) -> None:
        super().__init__(Case(jobsets=MANY, operations=operations))
        self._own = own

    def served_after(self) -> timedelta:
        """Return how long after it came the creation of the honest JobSet's slice began."""
        honest = self._come()
        came = self.world.clock.now()
        self.run(lambda: self.world.record(honest).current.create_requested_at is not None)
        return self.world.clock.now() - came

    def _come(self) -> LiveWorkload:
        world = self.world
        for number in range(MANY):
            world.jobset_appears(f"hog-{number:03}", request=self._request(f"r-{number:03}"), namespace="hog")
        self._published()
        honest = world.jobset_appears("honest", namespace="honest")
        self._published()
        self._happened()
        return honest

    def _published(self) -> None:
        world = self.world
        world.cluster.creates_pods()
        world.clock.advance(timedelta(seconds=1))
        world.publishes_one_by_one()
        world.look(tick=False)
        self._follow()

    def _request(self, reservation: str) -> TemplateRequest:
        named = ((_RESERVATION, reservation),) if self._own else ()
        return a_request(node_selector=(*a_request().node_selector, *named))

    def _settings(self) -> ClusterSettings:
        everyone = Allowed(reservations=("*",))
        return settings(limits=Limits(operations=self._case.operations), policy=Policy(everyone=everyone))

    def _lasts(self, pool: str) -> timedelta:
        return LEAST + timedelta(seconds=zlib.crc32(pool.partition("-")[2].encode()) % SPREAD)

"""JobSets that wait for a reservation in the simulated world."""

from __future__ import annotations

from datetime import timedelta

from tests.builders import a_request, settings
from tests.world import World
from tpu_slices.domain.model.clusters import Allowed, ClusterSettings, Limits, Policy
from tpu_slices.domain.model.reasons import Reason
from tpu_slices_simulator.fakes.backend import Call, Verb
from tpu_slices_simulator.fakes.reservations import FakeReservation
from tpu_slices_simulator.live import LiveWorkload

HOUR = timedelta(hours=1)
HALL = "hall-7"
HOSTS = 4
"""Of each slice."""


def of_everyone(operations: int = 5) -> ClusterSettings:
    return settings(policy=Policy(everyone=Allowed(reservations=("*",))), limits=Limits(operations=operations))


def a_world(*reservations: FakeReservation, operations: int = 5) -> World:
    """Return a world in which these reservations may be read."""
    world = World(of_cluster=of_everyone(operations))
    world.reservations.has(*reservations)
    return world


def appear(
    world: World, count: int, name: str = HALL, namespaces: tuple[str, ...] = ("research",), prefix: str = "job"
) -> list[LiveWorkload]:
    """Let JobSets of one slice of HOSTS hosts in a reservation appear, their namespaces in turn."""
    named = ("cloud.google.com/reservation-name", name)
    request = a_request(replicas=1, node_selector=(*a_request().node_selector, named))
    return [
        world.jobset_appears(f"{prefix}-{number}", request=request, namespace=namespaces[number % len(namespaces)])
        for number in range(count)
    ]


def creations(world: World) -> list[Call]:
    return [call for call in world.backend.calls if call.verb is Verb.CREATE]


def reasons(world: World) -> set[Reason]:
    return {record.reason for record in world.records.values()}


def most_reads_in_an_hour(world: World) -> int:
    """Return the most looks at reservations within any hour."""
    reads = world.reservations.reads
    return max((sum(at <= each < at + HOUR for each in reads) for at in reads), default=0)

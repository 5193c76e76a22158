"""No text that goes to the people of a namespace names a workload of another one: no Event, and no object."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from relay.events import event, over, summary
from relay.mirror.objects import object_of
from tests.builders import MINUTE, NOW, an_occupant, settings
from tests.domain.cases import in_use
from tests.journeys.mirror.test_what_it_shows import MirroredWorld
from tests.journeys.serving import own_slice
from tests.simulation.drawn import story_of
from tests.simulation.played import Watched
from tpu_slices.domain.model.facts import Occupant
from tpu_slices.domain.reconciling.deletion import Evidence, assess
from tpu_slices.domain.reconciling.occupancy import Users
from tpu_slices.domain.records.heartbeats import RelayHeard
from tpu_slices.domain.records.hosts import Departure
from tpu_slices.domain.records.mirror import mirrored


def told(world: Watched) -> Iterator[tuple[str, str]]:
    """Yield all that was told to each namespace: Events, and what the mirror would show."""
    for update in world.publisher.updates:
        made = event(update, None)
        yield made["metadata"]["namespace"], made["message"]
    for _, report in world.publisher.reports:
        for made in filter(None, (over(report), summary(report))):
            yield made["metadata"]["namespace"], f"{made['message']} {made['metadata']['annotations']}"
    cluster = world.settings.cluster
    slices = [each.value for each in world.store.every_slice(cluster)]
    workloads = [each.value for each in world.store.live_workloads(cluster)]
    for shown in (*map(mirrored, slices), *map(mirrored, workloads)):
        if shown.digest:
            yield shown.namespace, str(object_of(shown, NOW)["status"])


@pytest.mark.parametrize("seed", [7, 8, 13])
def test_in_whatever_story_nobody_reads_the_name_of_another_namespaces_workload(seed: int) -> None:
    world = Watched(story_of(seed))
    world.play()
    names = {(each.ref.owner.namespace, each.ref.owner.full_name) for each in world.workloads.values()}
    wrong = {
        (namespace, text)
        for namespace, text in told(world)
        for owner, name in names
        if owner != namespace and name in text
    }
    assert wrong == set()


def test_a_slice_that_a_job_of_another_namespace_gets_is_shown_there_alone() -> None:
    world = MirroredWorld()
    world.settle(minutes=2)
    llama, gemma = world.jobset_appears("llama"), world.jobset_appears("gemma", namespace="vision")
    world.cluster_lives()
    world.deliver()
    world.operations_end()
    for jobset, other in ((llama, gemma), (gemma, llama)):
        jobset.bound.add(0)
        world.binds(jobset, own_slice(other), attempt=1)
    world.settle(minutes=1)
    of_llama, of_gemma = world.record(gemma).id, world.record(llama).id
    assert of_llama.startswith(own_slice(llama))
    assert {f"-research/{of_llama}", f"-vision/{of_gemma}"} <= set(world.objects.writes)


def their(name: str) -> Occupant:
    return an_occupant(name, namespace="vision")


@pytest.mark.parametrize(
    ("users", "whose"),
    [
        (Users((their("secret"),), ()), "a workload of another namespace runs on its hosts"),
        (Users((an_occupant("own"), their("secret")), ()), "research/own, a workload of another namespace runs"),
        (Users((), (Departure(user=their("secret"), at=NOW),)), "a workload of another namespace ran on its hosts"),
    ],
)
def test_who_keeps_a_slice_from_being_deleted_is_named_to_their_own_namespace_alone(users: Users, whose: str) -> None:
    heard = RelayHeard(last_at=NOW, since=NOW - 60 * MINUTE)
    found = assess(in_use().current, Evidence(users=users, relay=heard, namespace="research"), NOW, settings().limits)
    assert found.message.startswith(whose)
    assert "secret" not in found.message

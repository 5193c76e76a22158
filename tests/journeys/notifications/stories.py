"""Worlds whose namespace `research` has targets, and what they are notified of."""

from __future__ import annotations

from tests.builders import MINUTE, settings
from tests.journeys.hosts.test_pods_that_do_not_run import NO_IMAGE
from tests.journeys.serving import STOCKOUT, serving
from tests.world import World
from tpu_slices.domain.model.clusters import CatalogueSettings
from tpu_slices.domain.model.notifications import NOTIFY, Notification, NotificationRule, Occasion
from tpu_slices_simulator.live import LiveWorkload, Pod

PRICE = {
    "accelerator": "tpu-v6e-slice",
    "region": "us-central2",
    "kind": "on_demand",
    "usd_per_chip_hour": "2.00",
    "read": "2026-11-30",
    "source": "our contract",
}
SLACK = NotificationRule(waiting_after=20 * MINUTE)


def notifying(**rules: NotificationRule) -> World:
    """Return a world in which `research` has these targets, or one called slack, and a chip costs 2 dollars an hour."""
    catalogue = CatalogueSettings(prices=(tuple(PRICE.items()),))
    return World(of_cluster=settings(notifications={"research": rules or {"slack": SLACK}}, catalogue=catalogue))


def waiting(world: World, name: str = "llama", annotation: str = "", namespace: str = "research") -> LiveWorkload:
    """Let a JobSet appear where capacity is out of stock."""
    world.backend.refuses_creations = STOCKOUT
    jobset = world.jobset_appears(name, namespace=namespace)
    annotates(world, jobset, annotation)
    return jobset


def annotates(world: World, jobset: LiveWorkload, annotation: str) -> None:
    """Let its user say whom to notify."""
    jobset.manifest = {**jobset.manifest, "metadata": {"annotations": {NOTIFY: annotation}}}
    world.cluster.changes(jobset)


def wedged(world: World) -> tuple[LiveWorkload, Pod]:
    """Let a JobSet run of whose pods one has no image."""
    _, jobset = serving(world=world)
    pod = next(iter(world.cluster.followers.values()))
    pod.status, pod.since = NO_IMAGE, world.clock.now()
    world.cluster.saw(pod)
    return jobset, pod


def runs(world: World, pod: Pod) -> None:
    """Let a pod run, or run again."""
    pod.status, pod.since = {}, world.clock.now()
    world.cluster.saw(pod)


def occasions(world: World) -> list[Occasion]:
    return [each.occasion for each in world.publisher.notifications]


def the_only(world: World) -> Notification:
    [found] = world.publisher.notifications
    return found

"""A slice on the local GKE whose labels somebody replaces by a call to it; only the store is not the real one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import NOW
from tests.contracts.local_gke import LocalGke, local_gke
from tests.contracts.stores import REAL
from tests.world import World
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices_simulator.fakes.backend import Trouble, Verb
from tpu_slices_simulator.live import LiveWorkload

pytestmark = REAL


class OnGke(World):
    """Its hosts are the Nodes of the local GKE, with the labels that they have there."""

    def __init__(self, place: LocalGke) -> None:
        super().__init__(of_cluster=place.cluster)
        self.place = place
        self.deps = replace(self.deps, backend=place.backend)

    def lives(self, minutes: int) -> None:
        for _ in range(minutes):
            self.place.wait(timedelta(minutes=1) - (self.place.now() - self.clock.now()))
            self._nodes_follow()
            self.steps()
            self.clock.advance(max(timedelta(0), self.place.now() - self.clock.now()))
            self.sweeps()

    def _nodes_follow(self) -> None:
        there = self.place.nodes()
        for name in [name for name in self.cluster.nodes if name not in there]:
            for pod in [pod for pod in self.cluster.pods.values() if pod.node == name]:
                self.cluster.removes_pod(pod.jobset, pod.index)
            self.cluster.loses_node(name)
        for name, node in there.items():
            metadata = {**node["metadata"], "uid": f"uid-{name}", "resourceVersion": "1", "annotations": {}}
            if name not in self.cluster.nodes:
                self.cluster.joins({**node, "metadata": metadata})
            known = self.cluster.nodes[name].raw["metadata"]["labels"]
            labels = {**dict.fromkeys(known), **metadata["labels"]}
            if labels != known or node["status"] != self.cluster.nodes[name].raw["status"]:
                patch = {"metadata": {"labels": labels}, "status": node["status"]}
                self.cluster.changes_node(self.cluster.nodes[name], patch)


@pytest.fixture
def world() -> Iterator[OnGke]:
    with local_gke(NOW.timestamp()) as place:
        yield OnGke(place)


def serving(world: OnGke) -> LiveWorkload:
    jobset = world.jobset_appears()
    world.lives(4)
    assert world.record(jobset).reason is Reason.READY
    assert jobset.bound == {0}
    return jobset


def test_labels_that_are_replaced_under_a_job_are_put_back_and_the_pool_goes_when_it_ends(world: OnGke) -> None:
    jobset = serving(world)
    pool = world.record(jobset).pool
    nodes = dict(world.place.nodes())
    world.place.replace_labels(pool)
    assert not any("google.com/tpu-slice-id" in node["metadata"]["labels"] for node in world.place.nodes().values())
    world.lives(30)
    record = world.record(jobset)
    assert (record.reason, jobset.bound) == (Reason.READY, {0})
    assert Reason.LABELS_REPLACED in {each.reason for each in record.transitions}
    assert world.place.nodes().keys() == nodes.keys()
    for node in world.place.nodes().values():
        assert node["metadata"]["labels"]["google.com/tpu-slice-id"] == record.maker
        assert node["metadata"]["labels"]["team"] == "a"
    world.ends(jobset)
    world.lives(5)
    assert world.record(jobset).phase is Phase.GONE
    assert world.place.nodes() == {}


def test_a_pool_whose_labels_may_not_be_put_back_serves_its_job_and_goes_when_it_ends(world: OnGke) -> None:
    jobset = serving(world)
    world.place.replace_labels(world.record(jobset).pool)
    world.place.trouble(Trouble.FORBIDDEN, Verb.RELABEL)
    world.lives(90)
    assert (world.record(jobset).reason, jobset.bound) == (Reason.LABELS_REPLACED, {0})
    world.ends(jobset)
    world.lives(20)
    assert world.record(jobset).phase is Phase.GONE
    assert world.place.nodes() == {}

"""The examples that train, on the local stack: in a queue, with the accounts of a training environment."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.examples.cluster import Cluster, Json
from tests.examples.stories import PRIORITIES, TRAINERS, renamed, running

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


def created(cluster: Cluster, workload: str) -> list[str]:
    """Return the slices that were created for a workload, without what is another in every run."""
    return [pool.rsplit("-", 2)[0] for pool in cluster.calls("CreateNodePool") if pool.startswith(f"tpu-{workload}-")]


@pytest.mark.parametrize("example", TRAINERS, ids=lambda example: example.stem)
def test_an_example_that_trains_runs_on_its_slices_which_are_released(cluster: Cluster, example: Path) -> None:
    own, name = cluster.within("training"), yaml.safe_load(example.read_text())["metadata"]["name"]
    own.until_over(name)
    uid = own.get("jobsets", name)["metadata"]["uid"]
    own.until(lambda: not own.items("nodes", f"google.com/tpu-slice-owner-uid={uid}"))


def test_the_uploader_gets_no_slice_and_ends_with_the_training(cluster: Cluster) -> None:
    own = cluster.within("training")
    own.until_over("data-parallel")
    assert sorted(created(own, "data-parallel")) == ["tpu-data-parallel-0", "tpu-data-parallel-1"]
    own.until(lambda: own.items("pods", "jobset.sigs.k8s.io/replicatedjob-name=tensorboard") == [])


def test_a_preempted_training_restarts_on_the_same_slice_and_it_does_not_count(cluster: Cluster) -> None:
    own = cluster.within("training-spot")

    def status() -> Json:
        found: Json = own.get("jobsets", "training-spot").get("status") or {}
        return found

    first = own.until(lambda: own.running() if len(own.running()) == 2 else [])
    own.press("preempt", "training-spot")
    own.until(lambda: len({*own.running()} - {*first}) == 2)
    assert status()["restarts"] == 1
    assert status().get("restartsCountTowardsMax", 0) == 0
    own.kubectl("delete", "jobset", "training-spot")
    own.until(lambda: own.pools("training-spot") == [])
    assert created(own, "training-spot") == ["tpu-training-spot-0"]


def test_of_two_that_wait_the_one_of_higher_priority_gets_its_slice_first(cluster: Cluster) -> None:
    own = cluster.within("priorities")
    own.until_over("priority-low")
    high, low = "tpu-priority-high-0", "tpu-priority-low-0"
    assert created(own, "priority") in ([high], [high, low]), "it is handed over, or another is made"
    own.until(lambda: own.pools("priority") == [])


def test_one_of_lower_priority_gives_its_slice_back_and_runs_again_later(cluster: Cluster) -> None:
    own = cluster.within("preempted")
    leaves, urgent = (f"jobset.sigs.k8s.io/jobset-name={name}" for name in ("leaves", "urgent"))
    own.until(lambda: own.running(leaves))
    own.create([renamed(running(PRIORITIES)[1], "urgent")])
    own.until(lambda: own.running(urgent))
    assert own.get("jobsets", "leaves")["spec"]["suspend"]
    own.end_pods(urgent)
    own.until(lambda: own.running(leaves))
    own.end_pods(leaves)
    own.until_over("leaves")
    once = ["tpu-leaves-0"]
    assert created(own, "leaves") in (once, [*once, *once]), "it is handed over and back, or another is made"
    own.until(lambda: own.pools("leaves") + own.pools("urgent") == [])

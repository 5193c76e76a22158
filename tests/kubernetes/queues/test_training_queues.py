"""The queue of a training environment: its flavors, of what stands and of what may be bought, and its priorities."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.infra.environments.configuration.configured import outputs_of
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.queues.queued import ACCELERATOR, TOPOLOGY, Json, Team, a_cluster
from tests.kubernetes.queues.training import SMALL, environment
from tpu_standins.kubernetes.programs import Programs
from tpu_standins.prerequisites import Tools

pytestmark = [
    pytest.mark.emulators,
    pytest.mark.enable_socket,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed"),
]

STATIC, SPOT, BOUGHT = "tpu-v4-podslice-2x2x4", "tpu-v4-podslice-2x2x4-spot", "provisioned"
V4 = {ACCELERATOR: "tpu-v4-podslice", TOPOLOGY: "2x2x4"}
ON_SPOT: Json = {
    "selector": V4 | {"cloud.google.com/gke-spot": "true"},
    "tolerations": [{"key": "cloud.google.com/gke-spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"}],
}


@pytest.fixture(scope="module")
def cluster(programs: Programs, tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with a_cluster(programs, tools, tmp_path_factory.mktemp("training")) as one:
        yield one


POOLS: Json = {"a": {"type": "v4-32"}, "s": {"type": "v4-32", "capacity": "spot"}}
"""What stands: a slice of 16 chips, and one of spot."""


@pytest.fixture(scope="module")
def team(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    outputs = outputs_of(tmp_path_factory.mktemp("infrastructure"), tpu_pools=POOLS)
    with environment(cluster, tmp_path_factory.mktemp("configuration"), outputs):
        yield Team(cluster, "tpu-training", "tpu-training")


def test_what_fits_a_static_slice_takes_its_quota_and_the_rest_that_of_the_provisioner(team: Team) -> None:
    jobsets: dict[str, Json] = {
        "fits": {"selector": V4},
        "fits-too": {"selector": V4},
        "fits-none": {"selector": SMALL, "hosts": 2},
        "spot": ON_SPOT,
    }
    flavors = {}
    for name, pod in jobsets.items():
        team.submit(name, **pod)
        flavors[name] = team.flavor(name)
    assert flavors == {"fits": STATIC, "fits-too": BOUGHT, "fits-none": BOUGHT, "spot": SPOT}
    team.submit("three", jobs=3, selector=V4)
    team.waits("three", f"insufficient unused quota for google.com/tpu in flavor {BOUGHT}, 8 more needed")
    team.remove(*jobsets, "three")


def test_pods_get_the_labels_and_tolerations_of_their_flavor(team: Team) -> None:
    """They ask for the same hosts as before: GKE makes hosts with these labels."""
    team.submit("fits", selector=V4)
    team.runs("fits")
    spec = team.pods("fits")[0]["spec"]
    assert spec["nodeSelector"] == V4
    assert {"key": "google.com/tpu", "operator": "Exists", "effect": "NoSchedule"} in spec["tolerations"]
    team.remove("fits")


def test_one_that_runs_leaves_for_one_of_higher_priority_and_comes_back_after_it(team: Team) -> None:
    team.submit("low", jobs=3, priority="low", selector=SMALL)
    team.runs("low", 12)
    team.submit("high", jobs=2, priority="high", selector=SMALL)
    team.runs("high", 8)
    team.evicted("low", "Preempted")
    team.waits("low", "insufficient unused quota")
    team.succeeds("high")
    team.runs("low", 12)
    team.remove("low", "high")


def test_those_that_wait_come_by_priority_and_those_without_one_last(team: Team) -> None:
    team.submit("running", jobs=4, priority="veryhigh", selector=SMALL)
    team.runs("running", 16)
    waiting = {"without": "", "low": "low", "medium": "medium"}
    for name, priority in waiting.items():
        team.submit(name, jobs=3, priority=priority, selector=SMALL)
        team.waits(name, "insufficient unused quota")
    for before, next_ in (("running", "medium"), ("medium", "low"), ("low", "without")):
        team.succeeds(before)
        team.runs(next_, 12)
    team.remove("running", *waiting)

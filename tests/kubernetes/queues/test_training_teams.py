"""What a training environment's queues take from a workload: without its pods in time, and for another team's share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.infra.environments.configuration.configured import outputs_of
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.queues.queued import Json, Team, a_cluster
from tests.kubernetes.queues.training import SMALL, environment
from tpu_standins.kubernetes.programs import Programs
from tpu_standins.prerequisites import Tools

pytestmark = [
    pytest.mark.emulators,
    pytest.mark.enable_socket,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed"),
]

TEAMS: Json = {"vision": {}, "speech": {"weight": 2}}


@pytest.fixture(scope="module")
def cluster(programs: Programs, tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with a_cluster(programs, tools, tmp_path_factory.mktemp("teams")) as one:
        yield one


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Json:
    """What the infrastructure tells where no slice stands."""
    return outputs_of(tmp_path_factory.mktemp("infrastructure"), num_tpu_pools=0)


def test_one_whose_pods_are_not_ready_in_time_leaves_its_quota_to_the_next(
    cluster: Cluster, outputs: Json, tmp_path: Path
) -> None:
    with environment(cluster, tmp_path, outputs, patience="1s"):
        team = Team(cluster, "tpu-training", "tpu-training")
        team.submit("never-ready", jobs=4, selector=SMALL)
        team.evicted("never-ready", "PodsReadyTimeout")
        team.submit("next", jobs=4, selector=SMALL)
        team.evicted("next", "PodsReadyTimeout")
        team.remove("never-ready", "next")


def test_a_team_uses_what_others_leave_and_gives_it_back_by_weight(
    cluster: Cluster, outputs: Json, tmp_path: Path
) -> None:
    with environment(cluster, tmp_path, outputs, teams=TEAMS, cohort=True):
        vision, speech = Team(cluster, "vision", "tpu-training"), Team(cluster, "speech", "tpu-training")
        for name in ("v0", "v1", "v2", "v3"):
            vision.submit(name, selector=SMALL)
            vision.runs(name)
        for name in ("s0", "s1"):
            speech.submit(name, selector=SMALL)
            speech.runs(name)
        assert sum(vision.holds(name, "Admitted") for name in ("v0", "v1", "v2", "v3")) == 2
        speech.remove("s0", "s1")
        for name in ("v0", "v1", "v2", "v3"):
            vision.runs(name)
        vision.remove("v0", "v1", "v2", "v3")

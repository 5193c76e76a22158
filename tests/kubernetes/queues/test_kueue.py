"""The example's queue with Kueue as its project installs it: JobSets wait for quota, and say so through kubectl."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml

from infra.local.plan import REPOSITORY
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.queues.queued import EXAMPLE, QUEUE_LABEL, Json, Team, a_cluster, applied, with_kueue
from tpu_standins.kubernetes.programs import Programs
from tpu_standins.prerequisites import Tools

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

QUEUES: list[Json] = list(yaml.safe_load_all((REPOSITORY / "examples" / "kueue" / "queues.yaml").read_text()))
LACKING = "insufficient unused quota for google.com/tpu in flavor v5e, 16 more needed"


@pytest.fixture(scope="module")
def cluster(programs: Programs, tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with a_cluster(programs, tools, tmp_path_factory.mktemp("queues")) as one, with_kueue(one):
        applied(one, *QUEUES)
        yield one


@pytest.fixture
def team(cluster: Cluster) -> Iterator[Team]:
    one = Team(cluster)
    yield one
    one.clear()


def rows(cluster: Cluster, plural: str) -> list[list[str]]:
    """Return the rows that kubectl shows, without the first column and the last."""
    return [line.split()[1:-1] for line in cluster.kubectl("get", plural, "--no-headers").out.splitlines()]


def test_the_second_waits_for_quota_says_why_and_starts_when_the_first_ends(team: Team) -> None:
    team.submit("first")
    team.runs("first")
    team.submit("second")
    team.waits("second", LACKING)
    assert LACKING in team.cluster.kubectl("describe", "workloads").out
    assert rows(team.cluster, "workloads") == [["team-a", "research", "True"], ["team-a"]]
    team.succeeds("first")
    team.runs("second")
    team.succeeds("second")
    team.remove("first", "second")


def test_a_jobset_of_a_queue_is_created_suspended_and_one_of_none_is_not(team: Team) -> None:
    asked = json.dumps(EXAMPLE | {"metadata": EXAMPLE["metadata"] | {"annotations": {}}})
    dry = ("create", "--dry-run=server", "-o", "jsonpath={.spec.suspend}", "-f", "-")
    assert team.cluster.kubectl(*dry, stdin=asked).out == "true"
    assert team.cluster.kubectl(*dry, stdin=asked.replace(QUEUE_LABEL, "example.com/queue")).out in ("", "false")


def test_a_jobset_of_a_queue_that_does_not_exist_says_so(team: Team) -> None:
    lost = Team(team.cluster, queue="nowhere")
    lost.submit("lost")
    lost.waits("lost", "LocalQueue nowhere doesn't exist")
    lost.remove("lost")


def test_a_queue_that_is_drained_evicts_and_holds_until_it_is_opened(team: Team) -> None:
    """As the training environment's builds drain it before they destroy it."""
    team.submit("drained")
    team.runs("drained")
    queue = ("patch", "clusterqueue", "research", "--type=merge", "-p")
    assert team.cluster.kubectl(*queue, '{"spec": {"stopPolicy": "HoldAndDrain"}}').code == 0
    team.evicted("drained", "ClusterQueueStopped")
    team.waits("drained", "ClusterQueue research is inactive")
    assert team.cluster.kubectl(*queue, '{"spec": {"stopPolicy": "None"}}').code == 0
    team.runs("drained")
    team.remove("drained")

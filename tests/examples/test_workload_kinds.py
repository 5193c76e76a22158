"""The examples of workloads that are no JobSets, on the local stack with a real control plane."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from infra.local.cluster_choice import Built
from infra.local.demo.http import get_json
from infra.local.kubernetes.programs import Programs
from infra.local.plan import REPOSITORY, Plan
from infra.local.prerequisites import Tools
from infra.local.stack import running
from tests.examples import refused
from tests.examples.cluster import FAST, PATIENCE, Cluster, seed

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.timeout(300)]

EXAMPLES = REPOSITORY / "examples"


@pytest.fixture(scope="module")
def cluster(programs: Programs, tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    state = tmp_path_factory.mktemp("kinds")
    plan = Plan(state=state, sweep_seconds=1, cluster=Built(programs), gke_arguments=FAST)
    with running(plan, seed) as stack:
        yield Cluster(stack.addresses, tools)


def until(holds: Callable[[], bool], cluster: Cluster) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, cluster.kubectl("get", "events", "--sort-by=.lastTimestamp")
        time.sleep(0.5)


def pools(cluster: Cluster, workload: str) -> list[str]:
    """Return the slices of a workload that have a node pool, as far as they are the same in every run."""
    found: list[str] = [pool["name"] for pool in get_json(f"{cluster.addresses.buttons}/pools")["pools"]]
    return sorted(pool.rsplit("-", 2)[0] for pool in found if pool.startswith(f"tpu-{workload}-"))


def ready_groups(cluster: Cluster) -> int:
    ready: int = (cluster.get("leaderworkerset", "serve").get("status") or {}).get("readyReplicas", 0)
    return ready


def scale(cluster: Cluster, groups: int) -> None:
    cluster.kubectl("scale", "leaderworkerset", "serve", f"--replicas={groups}")


def test_each_group_serves_on_a_slice_of_its_own_which_goes_with_it(cluster: Cluster) -> None:
    cluster.kubectl("apply", "-f", str(EXAMPLES / "leader-worker-set.yaml"))
    until(lambda: ready_groups(cluster) == 2, cluster)
    assert pools(cluster, "serve") == ["tpu-serve-0", "tpu-serve-1"]
    until(lambda: "2 of 2 slices ready" in cluster.kubectl("describe", "leaderworkerset", "serve"), cluster)
    cluster.kubectl("delete", "leaderworkerset", "serve")
    until(lambda: pools(cluster, "serve") == [], cluster)


def test_a_group_that_is_scaled_away_releases_its_slice_and_the_other_stays(cluster: Cluster) -> None:
    # The first group is alone when it is placed: two that wait at once may exchange their slices.
    one = (EXAMPLES / "leader-worker-set.yaml").read_text().replace("replicas: 2", "replicas: 1")
    cluster.kubectl("apply", "-f", "-", text=one)
    until(lambda: ready_groups(cluster) == 1, cluster)
    first = cluster.get("pod", "serve-0")["metadata"]["uid"]
    scale(cluster, 2)
    until(lambda: ready_groups(cluster) == 2, cluster)
    scale(cluster, 1)
    until(lambda: pools(cluster, "serve") == ["tpu-serve-0"], cluster)
    assert cluster.get("pod", "serve-0")["metadata"]["uid"] == first
    cluster.kubectl("delete", "leaderworkerset", "serve")
    until(lambda: pools(cluster, "serve") == [], cluster)


def test_an_indexed_job_by_itself_runs_on_a_slice_that_ends_with_it(cluster: Cluster) -> None:
    cluster.kubectl("apply", "-f", str(EXAMPLES / "indexed-job.yaml"))
    until(lambda: pools(cluster, "indexed") == ["tpu-indexed-0"], cluster)
    until(lambda: (cluster.get("job", "indexed").get("status") or {}).get("succeeded") == 2, cluster)
    until(lambda: pools(cluster, "indexed") == [], cluster)
    (only,) = [each for each in cluster.slices("list", "--all")["slices"] if "indexed" in each["id"]]
    assert only["transitions"][-1]["reason"] == "Released"


@pytest.mark.parametrize("name", ["impossible-shape", "more-pods-than-hosts", "not-allowed"])
def test_a_refused_jobset_is_told_live_what_the_plan_says_and_gets_no_pool(cluster: Cluster, name: str) -> None:
    (example,) = (each for each in refused.EXAMPLES if each.stem == name)
    cluster.kubectl("apply", "-f", str(example))
    _, message = refused.answer_of(example)
    told = message.removeprefix("replicatedJob workers: ")

    def events() -> list[str]:
        found = cluster.get("events", f"--field-selector=involvedObject.kind=JobSet,involvedObject.name={name}")
        return [each["message"] for each in found["items"]]

    until(lambda: any(told in said for said in events()), cluster)
    assert pools(cluster, name) == []
    cluster.kubectl("delete", "-f", str(example))  # else its leader may be bound to another's slice of its shape

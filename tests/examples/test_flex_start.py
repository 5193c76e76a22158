"""The example of flex-start on the local stack: an empty pool, filled, taken back under its Job, filled again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from urllib.request import Request

import pytest
import yaml

from infra.local.demo.http import OPENER, get_json
from infra.local.plan import REPOSITORY, Plan
from infra.local.prerequisites import Tools
from infra.local.stack import running
from tests.examples.cluster import FAST, PATIENCE, Cluster, Json, seed, until_over

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.timeout(300)]

BY_HAND = ("--fill-seconds", "100000")


@pytest.fixture(scope="module")
def cluster(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    state = tmp_path_factory.mktemp("flex-start")
    with running(Plan(state=state, sweep_seconds=1, gke_arguments=(*FAST, *BY_HAND)), seed) as stack:
        yield Cluster(stack.addresses, tools)


def example() -> Json:
    """Return the example, whose pods run so long that their hosts can be taken back meanwhile."""
    jobset: Json = yaml.safe_load((REPOSITORY / "examples" / "flex-start.yaml").read_text())
    pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    pod["metadata"]["annotations"]["local.kubelet/run-seconds"] = "20"
    return jobset


def reasons(cluster: Cluster) -> list[str]:
    """Return the reasons that the only slice has had, oldest first."""
    found = cluster.slices("list", "--all")["slices"]
    return [each["reason"] for each in found[0]["transitions"]] if found else []


def until(holds: Callable[[], bool], cluster: Cluster) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, reasons(cluster)
        time.sleep(0.5)


def press(cluster: Cluster, button: str) -> None:
    (pool,) = get_json(f"{cluster.addresses.buttons}/pools")["pools"]
    body = json.dumps({"pool": pool["name"]}).encode()
    OPENER.open(Request(f"{cluster.addresses.buttons}/hosts/{button}", body, method="POST"), timeout=5).close()


def leader_runs(cluster: Cluster) -> bool:
    pods = cluster.get("pods", "-l", "batch.kubernetes.io/job-completion-index=0")["items"]
    return [pod["status"].get("phase") for pod in pods] == ["Running"]


def test_a_job_whose_hosts_are_taken_back_waits_for_the_same_pool_and_runs_again(cluster: Cluster) -> None:
    cluster.kubectl("apply", "-f", "-", text=json.dumps(example()))
    until(lambda: reasons(cluster)[-1:] == ["AwaitingFlexStart"], cluster)
    until(lambda: "waiting for flex-start capacity" in cluster.kubectl("describe", "jobset", "flex-start"), cluster)
    press(cluster, "fill")
    until(lambda: reasons(cluster)[-1:] == ["Ready"] and leader_runs(cluster), cluster)
    press(cluster, "end")
    until(lambda: reasons(cluster)[-1:] == ["AwaitingFlexStart"], cluster)
    press(cluster, "fill")
    until_over(cluster, "flex-start")
    until(lambda: reasons(cluster)[-1:] == ["Released"], cluster)
    calls = [call["method"] for call in get_json(f"{cluster.addresses.buttons}/calls")["calls"] if call["code"] == "OK"]
    assert (calls.count("CreateNodePool"), calls.count("DeleteNodePool")) == (1, 1)
    assert not {"PoolBroken", "HostsNotUsable", "Stockout"} & {*reasons(cluster)}

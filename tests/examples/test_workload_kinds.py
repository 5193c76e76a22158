"""The examples of workloads that are no JobSets, and refused JobSets, on the local stack."""

from __future__ import annotations

import pytest

from tests.examples import refused
from tests.examples.cluster import Cluster

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


def ready_groups(cluster: Cluster, name: str) -> int:
    ready: int = (cluster.get("leaderworkerset", name).get("status") or {}).get("readyReplicas", 0)
    return ready


def scale(cluster: Cluster, groups: int) -> None:
    """Scale the set, and wait until it serves on as many slices."""
    cluster.kubectl("scale", "leaderworkerset", "scaled", f"--replicas={groups}")
    slices = [f"tpu-scaled-{index}" for index in range(groups)]
    cluster.until(lambda: ready_groups(cluster, "scaled") == groups)
    cluster.until(lambda: cluster.slices_with_pool("scaled") == slices)


def test_each_group_serves_on_a_slice_of_its_own_which_goes_with_it(cluster: Cluster) -> None:
    own = cluster.within("groups")
    own.until(lambda: ready_groups(own, "serve") == 2)
    assert own.slices_with_pool("serve") == ["tpu-serve-0", "tpu-serve-1"]
    own.until(lambda: "2 of 2 slices ready" in own.kubectl("describe", "leaderworkerset", "serve"))
    own.kubectl("delete", "leaderworkerset", "serve")
    own.until(lambda: own.pools("serve") == [])


def test_a_group_that_is_scaled_away_releases_its_slice_and_the_other_stays(cluster: Cluster) -> None:
    own = cluster.within("scaled-groups")
    own.until(lambda: ready_groups(own, "scaled") == 1)
    first = own.get("pod", "scaled-0")["metadata"]["uid"]
    scale(own, 2)
    scale(own, 1)
    assert own.get("pod", "scaled-0")["metadata"]["uid"] == first
    own.kubectl("delete", "leaderworkerset", "scaled")
    own.until(lambda: own.pools("scaled") == [])


def test_an_indexed_job_by_itself_runs_on_a_slice_that_ends_with_it(cluster: Cluster) -> None:
    own = cluster.within("indexed-job")
    own.until(lambda: (own.get("job", "indexed").get("status") or {}).get("succeeded") == 2)
    own.until(lambda: own.pools("indexed") == [])
    assert [pool.rsplit("-", 2)[0] for pool in own.calls("CreateNodePool") if "-indexed-" in pool] == ["tpu-indexed-0"]
    (only,) = [each for each in own.slices("list", "--all")["slices"] if "-indexed-" in each["id"]]
    assert only["transitions"][-1]["reason"] == "Released"


@pytest.mark.parametrize("name", ["impossible-shape", "more-pods-than-hosts", "not-allowed"])
def test_a_refused_jobset_is_told_live_what_the_plan_says_and_gets_no_pool(cluster: Cluster, name: str) -> None:
    own = cluster.within("refused")
    (example,) = (each for each in refused.EXAMPLES if each.stem == name)
    own.kubectl("apply", "-f", str(example))
    _, message = refused.answer_of(example)
    told = message.removeprefix("replicatedJob workers: ")

    def events() -> list[str]:
        found = own.get("events", f"--field-selector=involvedObject.kind=JobSet,involvedObject.name={name}")
        return [each["message"] for each in found["items"]]

    own.until(lambda: any(told in said for said in events()))
    assert own.pools(name) == []

"""The examples of workloads that are no JobSets, and refused JobSets, on the local stack."""

from __future__ import annotations

import pytest

from tests.examples import answers
from tests.examples.cluster import POOL, Cluster
from tests.examples.stories import REFUSED

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


def ready_groups(cluster: Cluster, name: str) -> int:
    ready: int = (cluster.get("leaderworkersets", name).get("status") or {}).get("readyReplicas", 0)
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
    own.until(lambda: any("2 of 2 slices ready" in said for said in own.said_of("LeaderWorkerSet", "serve")))
    own.kubectl("delete", "leaderworkerset", "serve")
    own.until(lambda: own.pools("serve") == [])


def test_a_group_that_is_scaled_away_releases_its_slice_and_the_other_stays(cluster: Cluster) -> None:
    own = cluster.within("scaled-groups")
    own.until(lambda: ready_groups(own, "scaled") == 1)
    first = own.get("pods", "scaled-0")["metadata"]["uid"]
    scale(own, 2)
    scale(own, 1)
    assert own.get("pods", "scaled-0")["metadata"]["uid"] == first
    own.kubectl("delete", "leaderworkerset", "scaled")
    own.until(lambda: own.pools("scaled") == [])


def test_an_indexed_job_by_itself_runs_on_a_slice_that_ends_with_it(cluster: Cluster) -> None:
    own = cluster.within("indexed-job")
    own.until(lambda: (own.get("jobs", "indexed").get("status") or {}).get("succeeded") == 2)
    own.until(lambda: own.pools("indexed") == [])
    (created,) = [pool for pool in own.calls("CreateNodePool") if pool.startswith("tpu-indexed-")]
    (only,) = [each for each in own.slices("list", "--all")["slices"] if created.startswith(each["id"])]
    assert only["transitions"][-1]["reason"] == "Released"


def test_a_job_without_indexes_runs_on_one_host_and_its_next_pod_too_which_goes_with_the_job(cluster: Cluster) -> None:
    own = cluster.within("one-host-job")
    own.until(lambda: len(own.running()) == 1)
    (pool,) = own.pools("one-host")
    (first,) = own.items("pods")
    assert own.get("nodes", first["spec"]["nodeName"])["metadata"]["labels"][POOL] == pool
    own.until(lambda: any("1 of 1 slices ready" in said for said in own.said_of("Job", "one-host")))
    own.kubectl("delete", "pod", first["metadata"]["name"])
    own.until(lambda: [uid for uid in own.running() if uid != first["metadata"]["uid"]])
    assert own.pools("one-host") == [pool]
    own.end_pods()
    own.until(lambda: (own.get("jobs", "one-host").get("status") or {}).get("succeeded") == 1)
    own.until(lambda: own.pools("one-host") == [])
    assert [each for each in own.calls("CreateNodePool") if each.startswith("tpu-one-host-")] == [pool]


def test_workers_fill_the_slice_of_a_group_whose_leader_has_no_chips_and_is_elsewhere(cluster: Cluster) -> None:
    own = cluster.within("leaders-without-tpu")
    own.until(lambda: ready_groups(own, "routed") == 2)
    assert own.slices_with_pool("routed") == ["tpu-routed-0", "tpu-routed-1"]
    pools = {node["metadata"]["name"]: node["metadata"]["labels"].get(POOL, "") for node in own.items("nodes")}
    where = {each["metadata"]["name"]: pools[each["spec"]["nodeName"]] for each in own.items("pods")}
    for group in ("routed-0", "routed-1"):
        (slice_,) = {where[f"{group}-{worker}"] for worker in range(1, 5)}
        assert slice_.startswith(f"tpu-{group}-")
        assert where[group] not in own.pools("routed")
    own.until(lambda: any("2 of 2 slices ready" in said for said in own.said_of("LeaderWorkerSet", "routed")))
    own.kubectl("delete", "leaderworkerset", "routed")
    own.until(lambda: own.pools("routed") == [])


def test_refused_jobsets_are_told_live_what_the_plan_says_and_get_no_pool(cluster: Cluster) -> None:
    own = cluster.within("refused")
    for name in REFUSED:
        (example,) = (each for each in answers.REFUSED if each.stem == name)
        _, message = answers.answer_of(example)
        until_told(own, name, message.removeprefix("replicatedJob workers: "))
        assert [pool for pool in own.calls("CreateNodePool") if pool.startswith(f"tpu-{name}-")] == []


def until_told(cluster: Cluster, jobset: str, what: str) -> None:
    cluster.until(lambda: any(what in said for said in cluster.said_of("JobSet", jobset)))

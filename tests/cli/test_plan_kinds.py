"""`slices plan` for Jobs by themselves, LeaderWorkerSets, and their leader pods."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
import yaml

from tests.cli.conftest import RESEARCH, Slices
from tests.relay.objects import container, group_pod, job, job_pod, leader_worker_set
from tpu_slices.domain.model.facts import IDLE_HOSTS
from tpu_slices_simulator.objects import pinned

Json = dict[str, Any]
GROUP_EXCLUSIVE = {"leaderworkerset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"}


def answered(slices: Slices, obj: Json, code: int = 0) -> Json:
    result = slices("plan", "-f", "-", "--cluster", RESEARCH, "-o", "json", input=yaml.safe_dump(obj))
    assert result.exit_code == code, result.output
    answer: Json = json.loads(result.stdout)
    return answer


def places(answer: Json) -> list[tuple[str, str, int]]:
    return [(each["kind"], each["name"], each["job_index"]) for each in answer["slices"]]


def test_an_indexed_job_gets_one_slice(slices: Slices) -> None:
    (only,) = answered(slices, job())["slices"]
    assert (only["kind"], only["name"], only["hosts"], only["chips"]) == ("Job", "tune", 4, 16)


def test_each_group_gets_a_slice(slices: Slices) -> None:
    assert places(answered(slices, leader_worker_set(groups=2))) == [
        ("LeaderWorkerSet", "serve", 0),
        ("LeaderWorkerSet", "serve", 1),
    ]


def test_a_leader_pod_is_planned_as_that_of_its_workload(slices: Slices) -> None:
    assert places(answered(slices, {**pinned(job_pod(), "u-job")})) == [("Job", "tune", 0)]
    group = hashlib.sha1(b"research/serve-3", usedforsecurity=False).hexdigest()
    assert places(answered(slices, {**pinned(group_pod(3), group)})) == [("LeaderWorkerSet", "serve", 3)]


def test_a_leader_pod_that_nothing_pinned_is_refused_as_its_workload_is(slices: Slices) -> None:
    (planned,) = answered(slices, job_pod(), code=3)["slices"]
    assert planned["refused"]["reason"] == "PodsNotPinned"


def test_a_leader_pod_that_is_not_created_yet_is_planned_as_the_cluster_would_make_it(slices: Slices) -> None:
    manifest = job_pod()
    del manifest["metadata"]["uid"]
    assert places(answered(slices, manifest)) == [("Job", "tune", 0)]


@pytest.mark.parametrize(
    ("obj", "why"),
    [
        (job(spec={"completionMode": "NonIndexed"}), "set spec.completionMode to Indexed"),
        (leader_worker_set(subGroupPolicy={"subGroupSize": 2}), "subGroupPolicy makes slices of subgroups"),
        (leader_worker_set(leaderTemplate={"spec": {"containers": [container(0)]}}), "requests no google.com/tpu"),
        (leader_worker_set(leaderTemplate={"spec": {"containers": [container(8)]}}), "request other hardware"),
    ],
    ids=["without indexes", "subgroups", "a leader without chips", "a leader with other chips"],
)
def test_what_is_no_slice_is_skipped_with_the_remedy(slices: Slices, obj: Json, why: str) -> None:
    answer = answered(slices, obj)
    assert answer["slices"] == []
    (skipped,) = answer["skipped"]
    assert (skipped["reason"], why in skipped["message"]) == ("NotServed", True)


def test_workers_that_fit_no_host_are_refused_before_anything_is_bought(slices: Slices) -> None:
    amounts = {"google.com/tpu": "4", "memory": "9Ti"}
    worker = leader_worker_set()["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    large = {"spec": worker["spec"] | {"containers": [container(resources={"requests": amounts, "limits": amounts})]}}
    answer = answered(slices, leader_worker_set(leaderTemplate=worker, workerTemplate=large), code=3)
    assert {each["refused"]["message"][:40] for each in answer["slices"]} == {
        "pod template: memory: a pod requests 921"
    }


def test_pods_that_nothing_keeps_together_are_warned_of(slices: Slices) -> None:
    of_job, _ = answered(slices, job())["warnings"]  # the other one: they do not find each other
    assert "it is refused, unless you create a JobSet instead, with the annotation" in of_job
    (of_groups,) = answered(slices, leader_worker_set())["warnings"]
    assert "leaderworkerset.sigs.k8s.io/exclusive-topology: cloud.google.com/gke-nodepool" in of_groups
    assert of_groups.startswith("LeaderWorkerSet ")
    assert "it is refused, unless you create the LeaderWorkerSet with the annotation" in of_groups
    exclusive = leader_worker_set()
    exclusive["metadata"]["annotations"] = GROUP_EXCLUSIVE
    assert answered(slices, exclusive)["warnings"] == []
    fewer = job(hosts=1)
    fewer["spec"]["template"].setdefault("metadata", {})["annotations"] = {IDLE_HOSTS: "true"}
    (idle,) = answered(slices, fewer)["warnings"]
    assert idle.startswith("Job tune: parallelism, completions: the Job has 1 and 1, and a slice of tpu-v4-podslice")

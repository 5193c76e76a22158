"""`slices plan` for Jobs by themselves, LeaderWorkerSets, and their leader pods."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
import yaml

from tests.cli.conftest import RESEARCH, Slices
from tests.relay.objects import (
    container,
    group_pod,
    job,
    job_of_one_pod,
    job_pod,
    leader_worker_set,
    only_pod,
    worker_pod,
)
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
        (job(spec={"completionMode": "NonIndexed"}), "set completionMode to Indexed"),
        (job_of_one_pod(spec={"completions": 2}), "needs completions and parallelism 1"),
        (leader_worker_set(subGroupPolicy={"subGroupSize": 2}), "subGroupPolicy makes slices of subgroups"),
        (leader_worker_set(leaderTemplate={"spec": {"containers": [container(8)]}}), "request other hardware"),
    ],
    ids=["without indexes", "several pods one after the other", "subgroups", "a leader with other chips"],
)
def test_what_is_no_slice_is_skipped_with_the_remedy(slices: Slices, obj: Json, why: str) -> None:
    answer = answered(slices, obj)
    assert answer["slices"] == []
    (skipped,) = answer["skipped"]
    assert (skipped["reason"], why in skipped["message"]) == ("NotServed", True)


def test_a_job_without_indexes_of_one_pod_gets_one_slice_and_so_does_its_pod(slices: Slices) -> None:
    (only,) = answered(slices, job_of_one_pod())["slices"]
    assert (only["kind"], only["name"], only["hosts"], only["chips"]) == ("Job", "tune", 1, 8)
    assert places(answered(slices, {**pinned(only_pod(), "u-job")})) == [("Job", "tune", 0)]


def apart(size: int = 5, exclusive_by: str = "") -> Json:
    """Return a LeaderWorkerSet whose leader requests no chips; `exclusive_by`: a label."""
    groups = leader_worker_set(groups=2, size=size, leaderTemplate={"spec": {"containers": [container(0)]}})
    groups["metadata"]["annotations"] = dict.fromkeys(GROUP_EXCLUSIVE, exclusive_by) if exclusive_by else {}
    return groups


def test_groups_whose_leaders_have_no_chips_get_slices_of_their_workers(slices: Slices) -> None:
    answer = answered(slices, apart())
    assert [(each["hosts"], each["chips"]) for each in answer["slices"]] == [(4, 16), (4, 16)]
    group = hashlib.sha1(b"research/serve-1", usedforsecurity=False).hexdigest()
    assert places(answered(slices, {**pinned(worker_pod(1), group)})) == [("LeaderWorkerSet", "serve", 1)]


@pytest.mark.parametrize(
    ("obj", "why"),
    [
        (apart(4), "leaderWorkerTemplate.size: it is 4, its leader requests no google.com/tpu, and a slice of"),
        (apart(4), "set it to 5"),
        (apart(6), "set it to 5"),
        (apart(1), "leaderWorkerTemplate.size: it is 1"),
        (
            apart(exclusive_by="cloud.google.com/gke-nodepool"),
            "which requests no google.com/tpu and is on none of the hosts of this slice",
        ),
        (apart(exclusive_by="kubernetes.io/hostname"), "remove the annotation"),
        (apart(exclusive_by="example.com/rack"), "remove the annotation"),
    ],
)
def test_workers_that_do_not_fill_a_slice_or_have_to_be_where_their_leader_is_are_refused(
    slices: Slices, obj: Json, why: str
) -> None:
    refused = [each["refused"] for each in answered(slices, obj, code=3)["slices"]]
    assert {each["reason"] for each in refused} == {"DoesNotFit"}
    assert all(why in each["message"] for each in refused)


def test_workers_may_have_to_be_in_the_zone_of_their_leader(slices: Slices) -> None:
    in_zone = apart(exclusive_by="topology.kubernetes.io/zone")
    assert [each["hosts"] for each in answered(slices, in_zone)["slices"]] == [4, 4]


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

"""`slices plan` of files with Kueue's queues: what a queue's flavor gives to its workloads counts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.applied.asking import a_job, a_jobset, answer, groups, invalid, pod_of
from tests.cli.conftest import Slices

ACCELERATOR, TOPOLOGY = "cloud.google.com/gke-tpu-accelerator", "cloud.google.com/gke-tpu-topology"
SPOT = "cloud.google.com/gke-spot"
SHAPE = {ACCELERATOR: "tpu-v5-lite-podslice", TOPOLOGY: "4x4"}
TAINTED: Any = {"nodeTaints": [{"key": "team", "value": "b", "effect": "NoSchedule"}]}


def kueue(kind: str, name: str, spec: Any, **metadata: Any) -> Any:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def queues(*flavors: Any, queue: str = "team-a", namespace: str = "research") -> list[Any]:
    """Return a LocalQueue with a ClusterQueue of these flavors, in their order."""
    offered = [
        {"name": each["metadata"]["name"], "resources": [{"name": "google.com/tpu", "nominalQuota": 16}]}
        for each in flavors
    ]
    groups = [{"coveredResources": ["google.com/tpu"], "flavors": offered}]
    return [
        *flavors,
        kueue("ClusterQueue", "research", {"resourceGroups": groups}),
        kueue("LocalQueue", queue, {"clusterQueue": "research"}, namespace=namespace),
    ]


def flavor(name: str, labels: Any = None, **spec: Any) -> Any:
    return kueue("ResourceFlavor", name, {"nodeLabels": labels or {}, **spec})


def queued(selector: Any, queue: str | None = "team-a") -> Any:
    jobset = a_jobset()
    jobset["metadata"] |= {"namespace": "research", "labels": {"kueue.x-k8s.io/queue-name": queue} if queue else {}}
    jobset["metadata"]["annotations"] = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"}
    pod_of(jobset)["nodeSelector"] = dict(selector)
    return jobset


def shapes(found: Any) -> list[tuple[Any, Any]]:
    return [(each["hosts"], each["refused"] and each["refused"]["reason"]) for each in found["slices"]]


def test_the_labels_of_a_flavor_are_selectors_of_the_jobsets_of_its_queue(slices: Slices) -> None:
    found = answer(slices, queued({}), *queues(flavor("v5e", SHAPE)))
    assert (shapes(found), found["warnings"]) == ([(4, None)], [])


def test_without_its_queue_a_jobset_selects_what_it_says(slices: Slices) -> None:
    assert shapes(answer(slices, queued({}), code=3)) == [(None, "ImpossibleShape")]
    elsewhere = queues(flavor("v5e", SHAPE), namespace="vision")
    assert shapes(answer(slices, queued({}), *elsewhere, code=3)) == [(None, "ImpossibleShape")]


def test_the_default_queue_of_a_namespace_has_the_jobsets_that_name_none(slices: Slices) -> None:
    assert shapes(answer(slices, queued({}, queue=None), *queues(flavor("v5e", SHAPE), queue="default"))) == [(4, None)]


def test_the_tolerations_of_a_flavor_are_its_pods(slices: Slices) -> None:
    spot = {"key": SPOT, "operator": "Equal", "value": "true", "effect": "NoSchedule"}
    wanting = answer(slices, queued(SHAPE), *queues(flavor("spot", {SPOT: "true"})), code=3)
    assert "does not tolerate" in wanting["slices"][0]["refused"]["message"]
    found = answer(slices, queued(SHAPE), *queues(flavor("spot", {SPOT: "true"}, tolerations=[spot])))
    assert found["slices"][0]["node_pool"]["config"]["spot"]


def test_the_first_flavor_that_suits_the_selectors_is_planned(slices: Slices) -> None:
    other = flavor("v6e", {**SHAPE, ACCELERATOR: "tpu-v6e-slice"})
    found = answer(slices, queued({ACCELERATOR: SHAPE[ACCELERATOR]}), *queues(other, flavor("v5e", SHAPE)))
    assert (shapes(found), found["warnings"]) == ([(4, None)], [])


def test_that_another_flavor_may_be_given_is_a_warning(slices: Slices) -> None:
    found = answer(slices, queued({}), *queues(flavor("v5e", SHAPE), flavor("small", {**SHAPE, TOPOLOGY: "2x4"})))
    (warning,) = found["warnings"]
    assert shapes(found) == [(4, None)]
    assert "planned for the flavor v5e: ClusterQueue research may admit it to small, too" in warning


@pytest.mark.parametrize(
    ("only", "why"),
    [
        pytest.param(flavor("v4", {ACCELERATOR: "tpu-v4-podslice"}), f"the pods select {ACCELERATOR}: ", id="labels"),
        pytest.param(
            flavor("v5e", **TAINTED),
            "the pods do not tolerate the nodeTaints of v5e: add a toleration",
            id="a taint",
        ),
    ],
)
def test_that_no_flavor_suits_is_a_warning(slices: Slices, only: Any, why: str) -> None:
    (warning,) = answer(slices, queued(SHAPE), *queues(only))["warnings"]
    assert f"ClusterQueue research never admits it: {why}" in warning


def test_pods_that_do_not_tolerate_a_flavor_are_planned_by_its_labels(slices: Slices) -> None:
    found = answer(slices, queued({}), *queues(flavor("v5e", SHAPE, **TAINTED)))
    (warning,) = found["warnings"]
    assert shapes(found) == [(4, None)]
    assert "never admits it" in warning


def test_selectors_that_agree_with_a_flavor_are_not_blamed_for_its_taints(slices: Slices) -> None:
    other = flavor("v4", {ACCELERATOR: "tpu-v4-podslice"})
    (warning,) = answer(slices, queued(SHAPE), *queues(other, flavor("v5e", SHAPE, **TAINTED)))["warnings"]
    assert "do not tolerate the nodeTaints of v5e: " in warning


def test_a_flavor_that_no_file_has_is_not_judged(slices: Slices) -> None:
    found = answer(slices, queued(SHAPE), *queues(flavor("v5e"))[1:])
    assert (shapes(found), found["warnings"]) == ([(4, None)], [])


def test_an_object_of_kueue_without_anything_ends_no_plan(slices: Slices) -> None:
    empty = [kueue(kind, "team-a", None) for kind in ("ResourceFlavor", "ClusterQueue", "LocalQueue")]
    assert shapes(answer(slices, queued(SHAPE), *empty)) == [(4, None)]


def test_a_malformed_queue_is_blamed_in_place_of_its_jobset(slices: Slices) -> None:
    v5e, cluster_queue, local = queues(flavor("v5e", SHAPE))
    del cluster_queue["spec"]["resourceGroups"][0]["flavors"][0]["name"]
    message = invalid(slices, queued(SHAPE), v5e, cluster_queue, local)
    assert message == "LocalQueue team-a, or what it leads to: name is missing"


def test_nothing_of_the_same_file_is_said_to_be_missing(slices: Slices) -> None:
    jobset = queued(SHAPE)
    pod_of(jobset)["volumes"] = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "settings", "configMap": {"name": "settings"}},
    ]
    of_same_file = [
        {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "research"}}
        for kind, name in (("PersistentVolumeClaim", "data"), ("ConfigMap", "settings"))
    ]
    found = answer(slices, jobset, *of_same_file)
    assert (shapes(found), found["warnings"]) == ([(4, None)], [])


def test_a_job_of_a_queue_is_given_the_same(slices: Slices) -> None:
    service, job = a_job(hosts=4)
    job["metadata"] |= {"namespace": "research", "labels": {"kueue.x-k8s.io/queue-name": "team-a"}}
    del job["spec"]["template"]["spec"]["nodeSelector"]
    service["metadata"]["namespace"] = "research"
    assert shapes(answer(slices, service, job, *queues(flavor("v5e", SHAPE)))) == [(4, None)]


def test_a_leader_worker_set_has_to_say_its_slices_itself(slices: Slices) -> None:
    whole = groups()
    whole["metadata"] |= {"namespace": "research", "labels": {"kueue.x-k8s.io/queue-name": "team-a"}}
    del whole["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["nodeSelector"]
    found = answer(slices, whole, *queues(flavor("v5e", SHAPE)), code=3)
    assert shapes(found) == [(None, "ImpossibleShape")] * 2

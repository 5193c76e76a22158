"""Every object that requests TPU and gets no slice is told why, by what its controller does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.relay.objects import Json
from tpu_slices.domain.model.vendors import COMPUTE_ENGINE
from tpu_slices.wire.tpu_objects import requests_chips, why_not_served

CONTAINER: Json = {"name": "main", "resources": {"limits": {"google.com/tpu": 4}}}
POD: Json = {"containers": [CONTAINER]}
TEMPLATE: Json = {"spec": POD}


def an_object(api_version: str, kind: str, spec: Json, **metadata: Any) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "llama", **metadata}, "spec": spec}


def owned_by(api_version: str, kind: str) -> Json:
    return {"ownerReferences": [{"apiVersion": api_version, "kind": kind, "name": "owner", "controller": True}]}


@pytest.mark.parametrize(
    ("obj", "why"),
    [
        pytest.param(
            an_object("batch/v1", "Job", {"completionMode": "Indexed", "template": TEMPLATE}),
            "plan the Job",
            id="an Indexed Job",
        ),
        pytest.param(an_object("batch/v1", "Job", {"template": TEMPLATE}), "set completionMode to Indexed", id="a Job"),
        pytest.param(
            an_object("batch/v1", "CronJob", {"jobTemplate": {"spec": {"template": TEMPLATE}}}),
            "the Jobs that it creates get slices",
            id="a CronJob",
        ),
        *(
            pytest.param(an_object("apps/v1", kind, {"template": TEMPLATE}), "come and go one by one", id=kind)
            for kind in ("Deployment", "ReplicaSet", "StatefulSet")
        ),
        pytest.param(
            an_object("v1", "ReplicationController", {"template": TEMPLATE}), "one by one", id="a ReplicationController"
        ),
        pytest.param(an_object("apps/v1", "DaemonSet", {"template": TEMPLATE}), "nothing to do", id="a DaemonSet"),
        pytest.param(an_object("v1", "Pod", POD), "add Pod to serve in the cluster's settings", id="a Pod"),
        pytest.param(
            an_object(
                "leaderworkerset.x-k8s.io/v1",
                "LeaderWorkerSet",
                {"leaderWorkerTemplate": {"leaderTemplate": {"spec": {"containers": []}}, "workerTemplate": TEMPLATE}},
            ),
            "plan the LeaderWorkerSet",
            id="a LeaderWorkerSet",
        ),
        pytest.param(
            an_object("ray.io/v1", "RayCluster", {"workerGroupSpecs": [{"template": TEMPLATE}]}),
            "KubeRay",
            id="a RayCluster",
        ),
        pytest.param(
            an_object("ray.io/v1", "RayJob", {"rayClusterSpec": {"headGroupSpec": {"template": TEMPLATE}}}),
            "KubeRay",
            id="a RayJob",
        ),
        pytest.param(
            an_object("ray.io/v1", "RayService", {"rayClusterConfig": {"workerGroupSpecs": [{"template": TEMPLATE}]}}),
            "KubeRay",
            id="a RayService",
        ),
        pytest.param(
            an_object("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {"template": TEMPLATE}}}),
            "use a JobSet, or a TrainJob",
            id="a PyTorchJob",
        ),
        pytest.param(
            an_object(
                "trainer.kubeflow.org/v1alpha1",
                "TrainJob",
                {"trainer": {"resourcesPerNode": {"requests": {"google.com/tpu": "4"}}}},
            ),
            "the JobSet that Kubeflow Trainer makes of it",
            id="a TrainJob",
        ),
        pytest.param(
            an_object(
                "pathways-job.pathways.domain/v1",
                "PathwaysJob",
                {"workers": [{"type": "ct5p-hightpu-4t", "topology": "2x2x2", "numSlices": 2}]},
            ),
            "the JobSet that its controller creates",
            id="a PathwaysJob",
        ),
        pytest.param(
            an_object(
                "disaggregatedset.x-k8s.io/v1",
                "DisaggregatedSet",
                {"roles": [{"name": "decode", "spec": {"leaderWorkerTemplate": {"workerTemplate": TEMPLATE}}}]},
            ),
            "the LeaderWorkerSets that its controller makes",
            id="a DisaggregatedSet",
        ),
        pytest.param(
            an_object("example.com/v1", "Trainer", {"roles": [{"template": TEMPLATE}]}),
            "no slice is made for its kind",
            id="an unknown kind",
        ),
    ],
)
def test_each_kind_is_told_what_to_do(obj: Json, why: str) -> None:
    told = why_not_served(obj)
    assert told is not None
    assert told.startswith(f"{obj['kind']} llama gets no slice: ")
    assert why in told


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        pytest.param(
            owned_by("ray.io/v1", "RayCluster"),
            "Pod llama of RayCluster owner gets no slice: KubeRay",
            id="of a RayCluster",
        ),
        pytest.param(
            owned_by("batch/v1", "Job"),
            "Pod llama of Job owner gets no slice: its pods have no completion index",
            id="of a Job",
        ),
        pytest.param(
            {**owned_by("batch/v1", "Job"), "labels": {"batch.kubernetes.io/job-completion-index": "1"}},
            "Pod llama of Job owner gets no slice: the Job's pod of completion index 0",
            id="of an Indexed Job",
        ),
        pytest.param(
            {**owned_by("apps/v1", "StatefulSet"), "labels": {"leaderworkerset.sigs.k8s.io/name": "group"}},
            "Pod llama of LeaderWorkerSet group gets no slice: its group's leader",
            id="of a LeaderWorkerSet",
        ),
        pytest.param(
            {**owned_by("batch/v1", "Job"), "labels": {"jobset.sigs.k8s.io/jobset-name": "set"}},
            "Pod llama belongs to JobSet set",
            id="of a JobSet",
        ),
    ],
)
def test_a_pod_is_told_by_what_controls_it(metadata: Json, told: str) -> None:
    assert (why_not_served(an_object("v1", "Pod", POD, **metadata)) or "").startswith(told)


def test_nodes_of_gkes_own_provisioners_are_told_as_such() -> None:
    pod = {**POD, "nodeSelector": {"cloud.google.com/compute-class": "v6e"}}
    assert why_not_served(an_object("apps/v1", "Deployment", {"template": {"spec": pod}})) == (
        'Deployment llama gets no slice: cloud.google.com/compute-class: its pods select "v6e", so GKE itself '
        "provisions the nodes"
    )


def test_in_a_self_managed_cluster_nothing_is_left_to_gke() -> None:
    pod = {**POD, "nodeSelector": {"cloud.google.com/compute-class": "v6e"}}
    why = why_not_served(an_object("apps/v1", "Deployment", {"template": {"spec": pod}}), COMPUTE_ENGINE)
    assert why == (
        "Deployment llama gets no slice: its pods come and go one by one, and a slice is created and deleted as a "
        "whole: create a TPUNodeGroup, and select its hosts with cloud.google.com/tpu-node-group-name, or, if each pod "
        "takes a whole host, add Deployment to serve in the cluster's settings"
    )


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "llama"}}, id="a Service"),
        pytest.param(an_object("apps/v1", "Deployment", {"template": {"spec": {"containers": [{}]}}}), id="no limits"),
        pytest.param(
            an_object("v1", "Pod", {"containers": [{"resources": {"limits": {"google.com/tpu": "0"}}}]}), id="0 chips"
        ),
        pytest.param(
            {**an_object("v1", "Node", {}), "status": {"capacity": {"google.com/tpu": "4"}}}, id="a Node with chips"
        ),
        pytest.param(an_object("v1", "ResourceQuota", {"hard": {"requests.google.com/tpu": 8}}), id="a quota"),
        pytest.param({"apiVersion": None, "kind": None, "metadata": None, "spec": [None, 1, "x"]}, id="nonsense"),
    ],
)
def test_what_requests_no_chips_is_not_told(obj: Json) -> None:
    assert not requests_chips(obj)
    assert why_not_served(obj) is None


def test_an_object_that_refers_to_itself_is_read_once() -> None:
    spec: dict[str, Any] = {"template": TEMPLATE}
    spec["again"] = [spec]
    assert requests_chips(an_object("apps/v1", "Deployment", spec))

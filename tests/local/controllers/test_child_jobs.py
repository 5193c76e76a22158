from hashlib import sha1
from typing import Any

from infra.local.cluster.controllers.child_jobs import child_job, labels_of
from infra.local.cluster.objects import Object
from tests.local.controllers.cluster import EXCLUSIVE, JOBSET, POOL, Cluster, jobset, replicated_job


def stored(*replicated: Object, **spec: Any) -> Object:
    """Return a JobSet as the API server stores it, with defaults and a UID."""
    return Cluster().objects.create("jobsets", jobset("train", *replicated, **spec))


def test_labels_place_a_job_in_its_replicated_job_its_group_and_the_jobset() -> None:
    jobs = [replicated_job("a", 2), replicated_job("b", 3) | {"groupName": "g"}]
    made = stored(*jobs, replicated_job("c", 4) | {"groupName": "g"})
    labels = labels_of(made, made["spec"]["replicatedJobs"][2], 1)

    assert {key.removeprefix(JOBSET): value for key, value in labels.items()} == {
        "jobset-name": "train",
        "jobset-uid": made["metadata"]["uid"],
        "replicatedjob-name": "c",
        "replicatedjob-replicas": "4",
        "restart-attempt": "0",
        "global-replicas": "9",
        "job-index": "1",
        "job-global-index": "6",
        "job-key": sha1(b"default/train-c-1").hexdigest(),
        "group-name": "g",
        "group-replicas": "7",
        "job-group-index": "4",
    }


def test_job_and_pods_carry_the_labels_which_are_annotations_too() -> None:
    made = stored(coordinator={"replicatedJob": "slice", "jobIndex": 1})
    replicated = made["spec"]["replicatedJobs"][0]
    job = child_job(made, replicated, 0)
    labels = labels_of(made, replicated, 0)

    for metadata in (job["metadata"], job["spec"]["template"]["metadata"]):
        assert labels.items() <= metadata["labels"].items()
        assert labels.items() <= metadata["annotations"].items()
        assert metadata["annotations"][EXCLUSIVE] == POOL
        assert EXCLUSIVE not in metadata["labels"]
    assert labels[JOBSET + "coordinator"] == "train-slice-1-0.train"
    assert job["spec"]["template"]["spec"]["subdomain"] == "train"
    assert job["spec"]["suspend"] is False


def test_the_topology_of_a_replicated_job_wins_over_the_jobsets() -> None:
    replicated = replicated_job()
    replicated["template"]["metadata"] = {"annotations": {EXCLUSIVE: "rack"}}
    made = stored(replicated)
    job = child_job(made, made["spec"]["replicatedJobs"][0], 0)

    assert job["spec"]["template"]["metadata"]["annotations"][EXCLUSIVE] == "rack"


def test_the_node_selector_strategy_asks_for_nodes_labelled_for_the_job() -> None:
    made = stored()
    made["metadata"]["annotations"]["alpha.jobset.sigs.k8s.io/node-selector"] = "true"
    spec = child_job(made, made["spec"]["replicatedJobs"][0], 1)["spec"]["template"]["spec"]

    assert spec["nodeSelector"]["alpha.jobset.sigs.k8s.io/namespaced-job"] == "default_train-slice-1"
    assert spec["tolerations"][-1]["key"] == "alpha.jobset.sigs.k8s.io/no-schedule"


def test_without_hostnames_there_is_no_service_and_no_subdomain() -> None:
    cluster = Cluster()
    cluster.apply("jobsets", jobset(network={"enableDNSHostnames": False}))
    assert cluster.names("services") == []
    assert "subdomain" not in cluster.pods()[0]["spec"]

    cluster.apply("jobsets", jobset("named", network={"subdomain": "ring"}))
    assert cluster.names("services") == ["ring"]
    assert cluster.objects.get("services", "default", "ring")["spec"]["clusterIP"] == "None"
    assert cluster.pods("named-slice-0")[0]["spec"]["subdomain"] == "ring"

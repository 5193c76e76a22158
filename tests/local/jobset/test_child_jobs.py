from __future__ import annotations

from hashlib import sha1

from infra.local.jobset.child_jobs import child_job, labels_of, resumed
from tests.local.jobset.builders import EXCLUSIVE, LABEL, POOL, replicated_job, stored


def test_labels_place_a_job_in_its_replicated_job_its_group_and_the_jobset() -> None:
    jobs = [replicated_job("a", 2), replicated_job("b", 3) | {"groupName": "g"}]
    made = stored("train", *jobs, replicated_job("c", 4) | {"groupName": "g"})
    labels = labels_of(made, made["spec"]["replicatedJobs"][2], 1)

    assert {key.removeprefix(LABEL): value for key, value in labels.items()} == {
        "jobset-name": "train",
        "jobset-uid": "uid-of-train",
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
    assert labels[LABEL + "coordinator"] == "train-slice-1-0.train"
    assert job["spec"]["template"]["spec"]["subdomain"] == "train"
    assert job["spec"]["suspend"] is False


def test_the_topology_of_a_replicated_job_wins_over_the_jobsets() -> None:
    replicated = replicated_job()
    replicated["template"]["metadata"] = {"annotations": {EXCLUSIVE: "rack"}}
    made = stored("train", replicated)
    job = child_job(made, made["spec"]["replicatedJobs"][0], 0)

    assert job["spec"]["template"]["metadata"]["annotations"][EXCLUSIVE] == "rack"


def test_the_node_selector_strategy_asks_for_nodes_labelled_for_the_job() -> None:
    made = stored()
    made["metadata"]["annotations"]["alpha.jobset.sigs.k8s.io/node-selector"] = "true"
    spec = child_job(made, made["spec"]["replicatedJobs"][0], 1)["spec"]["template"]["spec"]

    assert spec["nodeSelector"]["alpha.jobset.sigs.k8s.io/namespaced-job"] == "default_train-slice-1"
    assert spec["tolerations"][-1]["key"] == "alpha.jobset.sigs.k8s.io/no-schedule"


def test_without_hostnames_there_is_no_subdomain() -> None:
    made = stored(network={"enableDNSHostnames": False})
    job = child_job(made, made["spec"]["replicatedJobs"][0], 0)
    assert "subdomain" not in job["spec"]["template"]["spec"]


def test_a_job_is_resumed_with_what_the_template_has_gained() -> None:
    made = stored(suspend=True)
    job = child_job(made, made["spec"]["replicatedJobs"][0], 0)
    template = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    template["metadata"] = {"labels": {"team": "a"}}
    template["spec"]["nodeSelector"]["flavor"] = "reserved"
    template["spec"]["tolerations"] = [{"key": "flavor", "operator": "Exists"}]
    again = resumed(job, made["spec"]["replicatedJobs"][0])["spec"]

    assert again["suspend"] is False
    assert again["template"]["metadata"]["labels"]["team"] == "a"
    assert again["template"]["metadata"]["labels"][LABEL + "jobset-name"] == "train"
    assert again["template"]["spec"]["nodeSelector"]["flavor"] == "reserved"
    assert again["template"]["spec"]["tolerations"] == [{"key": "flavor", "operator": "Exists"}]

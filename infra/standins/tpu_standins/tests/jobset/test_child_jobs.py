from __future__ import annotations

from hashlib import sha1

from tpu_standins.jobset.child_jobs import wanted
from tpu_standins.testing.jobsets import EXCLUSIVE, LABEL, POOL, replicated_job, stored


def test_labels_place_a_job_in_its_replicated_job_and_the_jobset() -> None:
    made = stored("train", replicated_job("a", 2), replicated_job("b", 3), replicated_job("c", 4))
    labels = wanted(made)["train-c-1"]["metadata"]["labels"]

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
        "group-name": "default",
        "group-replicas": "9",
        "job-group-index": "6",
    }


def test_job_and_pods_carry_the_labels_which_are_annotations_too() -> None:
    job = wanted(stored())["train-slice-0"]
    labels = job["metadata"]["labels"]

    for metadata in (job["metadata"], job["spec"]["template"]["metadata"]):
        assert labels.items() <= metadata["labels"].items()
        assert labels.items() <= metadata["annotations"].items()
        assert metadata["annotations"][EXCLUSIVE] == POOL
        assert EXCLUSIVE not in metadata["labels"]
    assert job["spec"]["template"]["spec"]["subdomain"] == "train"
    assert job["spec"]["suspend"] is False


def test_the_topology_of_a_replicated_job_wins_over_the_jobsets() -> None:
    replicated = replicated_job()
    replicated["template"]["metadata"] = {"annotations": {EXCLUSIVE: "rack"}}
    job = wanted(stored("train", replicated))["train-slice-0"]

    assert job["spec"]["template"]["metadata"]["annotations"][EXCLUSIVE] == "rack"


def test_the_node_selector_strategy_asks_for_nodes_labelled_for_the_job() -> None:
    made = stored()
    made["metadata"]["annotations"]["alpha.jobset.sigs.k8s.io/node-selector"] = "true"
    spec = wanted(made)["train-slice-1"]["spec"]["template"]["spec"]

    assert spec["nodeSelector"]["alpha.jobset.sigs.k8s.io/namespaced-job"] == "default_train-slice-1"
    assert spec["tolerations"][-1]["key"] == "alpha.jobset.sigs.k8s.io/no-schedule"

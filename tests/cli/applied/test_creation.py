"""`slices plan` of workloads that the API server, or the webhook of their kind, would refuse for their names."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.applied.asking import a_job, a_jobset, answer, groups, invalid, job_of
from tests.cli.conftest import Slices


def test_a_jobset_whose_pods_names_become_too_long_is_refused_with_the_fields_and_by_how_much(slices: Slices) -> None:
    jobset = a_jobset("llama-3-405b-pretraining-with-long-context-2026")  # 47 characters
    jobset["spec"]["replicatedJobs"][0]["replicas"] = 12
    assert invalid(slices, jobset) == (
        "metadata.name: JobSet's webhook refuses it: a pod of replicatedJob workers would be named \"llama-3-405b-"
        'pretraining-with-long-context-2026-workers-11-3-xxxxx", of 66 characters, and at most 63 are allowed: shorten '
        "the name of the JobSet or of the replicatedJob by 3"
    )


@pytest.mark.parametrize(("length", "code"), [(45, 0), (46, 2)], ids=["just short enough", "too long by one"])
def test_the_longest_name_of_a_jobset_leaves_room_for_the_last_pod(slices: Slices, length: int, code: int) -> None:
    answer(slices, a_jobset("a" * length), code=code)  # -workers-0-3-xxxxx has 18 characters


def test_a_generated_name_has_five_characters_more(slices: Slices) -> None:
    jobset = a_jobset()
    jobset["metadata"] = {"generateName": "a" * 41}
    refused = invalid(slices, jobset)
    assert refused.startswith("metadata.generateName: JobSet's webhook refuses it")
    assert "of 64 characters" in refused


def test_a_replicated_job_without_chips_counts_too(slices: Slices) -> None:
    jobset = a_jobset("a" * 45)
    (job,) = jobset["spec"]["replicatedJobs"]
    pod = {"spec": {"containers": [{"name": "main", "image": "log"}], "restartPolicy": "Never"}}
    template = {"spec": {"completions": 1, "parallelism": 1, "template": pod}}
    jobset["spec"]["replicatedJobs"] = [job, {"name": "uploader-of-logs", "template": template}]
    refused = invalid(slices, jobset)
    assert "a pod of replicatedJob uploader-of-logs would be named" in refused
    assert "replicatedJob workers" not in refused


@pytest.mark.parametrize("name", ["1st", "a.b", "Llama"])
def test_the_names_of_its_jobs_are_labels_that_begin_with_a_letter(slices: Slices, name: str) -> None:
    assert invalid(slices, a_jobset(name)) == (
        "metadata.name: JobSet's webhook refuses it: a Job of replicatedJob workers would be named "
        f'"{name}-workers-0": use a-z, 0-9 and - alone, with a letter first and no - at the end'
    )


def test_the_name_of_a_coordinator_with_its_subdomain_has_to_be_the_value_of_a_label(slices: Slices) -> None:
    jobset = a_jobset("llama-3-405b-pretraining-2026")
    jobset["spec"]["coordinator"] = {"replicatedJob": "workers"}
    assert invalid(slices, jobset) == (
        "spec.coordinator: JobSet's webhook refuses it: a label of each pod would be \"llama-3-405b-pretraining-2026-"
        'workers-0-0.llama-3-405b-pretraining-2026", of 71 characters, and at most 63 are allowed: shorten the name of '
        "the JobSet or its spec.network.subdomain by 8"
    )
    jobset["spec"]["network"] = {"subdomain": "llama"}
    answer(slices, jobset)


def test_a_subdomain_is_the_name_of_a_service(slices: Slices) -> None:
    jobset = a_jobset()
    jobset["spec"]["network"] = {"subdomain": "a" * 64}
    assert invalid(slices, jobset).startswith("spec.network.subdomain: JobSet's webhook refuses it: a Service would be")


def test_a_job_whose_pods_hostnames_become_too_long_is_refused(slices: Slices) -> None:
    service, job = a_job()
    job["metadata"]["name"] = "a" * 62
    assert invalid(slices, service, job) == (
        f'metadata.name: the API server refuses it: the hostname of a pod would be named "{"a" * 62}-1", of 64 '
        "characters, and at most 63 are allowed: shorten the name of the Job by 1"
    )
    job["metadata"]["name"] = "a.b"
    assert "use a-z, 0-9 and - alone" in invalid(slices, service, job)


def test_a_leader_worker_set_is_refused_by_its_webhook_or_by_the_labels_of_its_pods(slices: Slices) -> None:
    whole = groups()
    whole["metadata"]["name"] = "a.b"
    assert invalid(slices, whole).startswith("metadata.name: LeaderWorkerSet's webhook refuses it: ")
    whole["metadata"]["name"] = "a" * 51
    assert invalid(slices, whole) == (
        f'metadata.name: no pods can be created: a label of the workers would be "{"a" * 51}-1-xxxxxxxxxx", of 64 '
        "characters, and at most 63 are allowed: shorten the name of the LeaderWorkerSet by 1"
    )


def test_what_exists_was_accepted(slices: Slices) -> None:
    jobset = a_jobset("a" * 60)
    jobset["metadata"]["uid"] = "u-1"
    answer(slices, jobset)


@pytest.mark.parametrize("mode", [None, "Indexed"], ids=["that JobSet adds", "that is said"])
def test_an_indexed_job_without_completions_cannot_be_created(slices: Slices, mode: str | None) -> None:
    jobset = a_jobset()
    changed: Any = {**job_of(jobset), "completionMode": mode}
    del changed["completions"]
    jobset["spec"]["replicatedJobs"][0]["template"]["spec"] = {k: v for k, v in changed.items() if v is not None}
    assert invalid(slices, jobset) == (
        "replicatedJob workers: completions is missing, and without it no Indexed Job can be created: set it to 4, as "
        "parallelism"
    )
    service, job = a_job()
    del job["spec"]["completions"]
    assert invalid(slices, service, job).startswith("spec.completions is missing, and without it")


@pytest.mark.parametrize(
    ("field", "spec"),
    [
        ("spec.successPolicy", {"successPolicy": {"operator": "All", "targetReplicatedJobs": ["trainers"]}}),
        (
            "spec.failurePolicy.rules[0]",
            {"failurePolicy": {"rules": [{"action": "FailJobSet", "targetReplicatedJobs": ["trainers"]}]}},
        ),
        ("spec.coordinator", {"coordinator": {"replicatedJob": "trainers"}}),
    ],
)
def test_a_replicated_job_that_a_jobset_lacks_is_named(slices: Slices, field: str, spec: Any) -> None:
    jobset = a_jobset()
    jobset["spec"] |= spec
    assert invalid(slices, jobset) == (
        f"{field}: JobSet's webhook refuses it: there is no replicatedJob trainers: name workers"
    )


def test_a_replicated_job_depends_on_one_before_it(slices: Slices) -> None:
    jobset = a_jobset()
    jobset["spec"]["replicatedJobs"][0]["dependsOn"] = [{"name": "workers", "status": "Ready"}]
    assert invalid(slices, jobset) == (
        "spec.replicatedJobs[0].dependsOn: JobSet's webhook refuses it: there is no replicatedJob workers before it: "
        "remove it"
    )


def test_replicated_jobs_of_one_name_are_refused(slices: Slices) -> None:
    jobset = a_jobset()
    jobset["spec"]["replicatedJobs"] *= 2
    assert "spec.replicatedJobs: the API server refuses two of the name workers: rename one" in invalid(slices, jobset)

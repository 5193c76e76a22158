"""Which JobSets are completed and refused, as the API server hears it from the webhooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from infra.local.clients.objects import Object, copied
from tests.local.jobset.asking import Answer, create, created, update
from tests.local.jobset.builders import jobset, pod_spec, replicated_job


def plain(name: str = "train", **spec: Any) -> Object:
    """Return a JobSet that leaves out all that has a default."""
    job = {"parallelism": 2, "completions": 2, "template": {"spec": pod_spec()}}
    return jobset(name, {"name": "slice", "replicas": spec.pop("replicas", 2), "template": {"spec": job}}, **spec)


def first(obj: Object) -> Object:
    replicated: Object = obj["spec"]["replicatedJobs"][0]
    return replicated


def pods(obj: Object) -> Object:
    template: Object = first(obj)["template"]["spec"]["template"]
    return template


def test_a_new_jobset_is_completed_as_its_webhook_and_schema_do() -> None:
    made = created(plain())
    assert made["spec"]["successPolicy"] == {"operator": "All"}
    assert made["spec"]["startupPolicy"] == {"startupPolicyOrder": "AnyOrder"}
    assert made["spec"]["network"] == {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    assert first(made)["groupName"] == "default"
    assert first(made)["template"]["spec"]["completionMode"] == "Indexed"
    assert pods(made)["spec"]["restartPolicy"] == "OnFailure"


def test_what_is_stored_has_passed_through_gos_structs() -> None:
    wanted = plain()
    pods(wanted)["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1000m", "memory": "2048Mi"}}
    pods(wanted)["spec"]["containers"].append({"name": "side", "image": "i", "ports": [{"containerPort": 1}]})
    made = created(wanted)
    main, side = pods(made)["spec"]["containers"]
    assert main["resources"] == {"limits": {"cpu": "1", "memory": "2Gi"}}
    assert side == {"name": "side", "image": "i", "ports": [{"containerPort": 1, "protocol": "TCP"}], "resources": {}}
    assert (first(made)["template"]["metadata"], pods(made)["metadata"]) == ({}, {})


def test_what_was_said_is_left_alone() -> None:
    said = plain(network={"enableDNSHostnames": False}, failurePolicy={"rules": [{"action": "FailJobSet"}]})
    pods(said)["spec"]["restartPolicy"] = "Never"
    made = created(said)
    assert made["spec"]["network"]["enableDNSHostnames"] is False
    assert pods(made)["spec"]["restartPolicy"] == "Never"
    assert made["spec"]["failurePolicy"]["rules"][0]["name"] == "failurePolicyRule0"


def dependent(*names: str) -> Object:
    on = [{"name": name, "status": "Ready"} for name in names]
    return jobset("train", replicated_job("head"), replicated_job("work") | {"dependsOn": on})


IN_ORDER = {"startupPolicyOrder": "InOrder"}

CASES: list[tuple[str, Callable[[], Object], str]] = [
    ("job names", lambda: plain("a" * 57), "job names generated for this JobSet will exceed 63 characters"),
    ("pod names", lambda: plain("a" * 50), "pod names generated for this JobSet will exceed 63 characters"),
    ("a digit first", lambda: plain("1st"), "a DNS-1035 label must consist of"),
    ("manager", lambda: plain(managedBy="kueue"), "must be a domain-prefixed path"),
    ("subdomain", lambda: plain(network={"subdomain": "a" * 64}), ".spec.network.subdomain is too long"),
    (
        "success policy",
        lambda: plain(successPolicy={"operator": "Any", "targetReplicatedJobs": ["none"]}),
        "invalid replicatedJob name 'none' does not appear in .spec.ReplicatedJobs",
    ),
    (
        "failure policy",
        lambda: plain(failurePolicy={"rules": [{"action": "FailJobSet", "onJobFailureReasons": ["Bad"]}]}),
        "invalid job failure reason 'Bad' in failure policy",
    ),
    (
        "rule names",
        lambda: plain(failurePolicy={"rules": [{"name": "r", "action": "FailJobSet"}] * 2}),
        "rules with indices [0 1] all have the same name 'r'",
    ),
    (
        "a gated action",
        lambda: plain(failurePolicy={"rules": [{"action": "RestartJob"}]}),
        "not allowed when RestartJob feature gate is disabled",
    ),
    ("coordinator", lambda: plain(coordinator={"replicatedJob": "none"}), "replicatedJob none does not exist"),
    (
        "coordinator's index",
        lambda: plain(coordinator={"replicatedJob": "slice", "jobIndex": 2}),
        "coordinator job index 2 is invalid",
    ),
    ("too many pods", lambda: plain(replicas=2**30), "the product of replicas and parallelism must not exceed"),
    ("a later one", lambda: dependent("none"), "replicatedJob: work cannot depend on replicatedJob: none"),
    (
        "the same twice",
        lambda: dependent("head", "head"),
        'spec.replicatedJobs[1].dependsOn[1]: Duplicate value: {"name":"head"}',
    ),
    (
        "two of a name",
        lambda: jobset("train", replicated_job(), replicated_job()),
        'spec.replicatedJobs[1]: Duplicate value: {"name":"slice"}',
    ),
    (
        "the first depends",
        lambda: jobset("train", replicated_job() | {"dependsOn": [{"name": "slice", "status": "Ready"}]}),
        "DependsOn can't be set for the first ReplicatedJob",
    ),
    (
        "two orders",
        lambda: dependent("head") | {"spec": dependent("head")["spec"] | {"startupPolicy": IN_ORDER}},
        "StartupPolicy and DependsOn APIs are mutually exclusive",
    ),
]


@pytest.mark.parametrize(("wrong", "message"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_jobset_that_could_not_run_is_refused(wrong: Callable[[], Object], message: str) -> None:
    refused = create(wrong())
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert message in refused.message


def test_volume_claim_policies_are_not_covered() -> None:
    refused = create(plain(volumeClaimPolicies=[{}]))
    assert (refused.code, refused.reason) == (501, "NotImplemented")


@pytest.mark.parametrize("spec", [None, {"replicatedJobs": "many"}, {"network": 7}, {"failurePolicy": []}])
def test_a_jobset_that_cannot_be_read_is_a_bad_request(spec: Any) -> None:
    assert create({"metadata": {"name": "train"}, "spec": spec}).code == 400


def changed(change: Callable[[Object], object], **spec: Any) -> Answer:
    """Return the answer to an update of a stored JobSet."""
    old = created(plain(**spec))
    new = copied(old)
    change(new)
    return update(old, new)


def test_replicated_jobs_do_not_change() -> None:
    refused = changed(lambda new: first(new).update(replicas=3))
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert "spec.replicatedJobs: Invalid value: " in refused.message
    assert "field is immutable" in refused.message


def test_omitting_what_was_defaulted_in_a_replicated_job_is_a_change() -> None:
    assert "field is immutable" in update(created(plain()), plain()).message


def test_the_same_manifest_again_is_no_change_whatever_its_quantities() -> None:
    manifest = jobset("train", replicated_job(completionMode="Indexed"))
    pods(manifest)["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1000m"}}
    old = created(copied(manifest))
    assert pods(old)["spec"] != pods(manifest)["spec"]
    assert update(old, old | {"spec": old["spec"] | {"replicatedJobs": manifest["spec"]["replicatedJobs"]}}).allowed


@pytest.mark.parametrize("policy", ["network", "successPolicy", "startupPolicy"])
def test_policies_do_not_change(policy: str) -> None:
    other = {"subdomain": "x", "operator": "Any", "startupPolicyOrder": "InOrder"}
    refused = changed(lambda new: new["spec"].update({policy: other}))
    assert f'spec.{policy}: Invalid value: "object": Value is immutable' in refused.message


def test_its_manager_does_not_change() -> None:
    refused = changed(lambda new: new["spec"].update(managedBy="example.com/other"))
    assert 'spec.managedBy: Invalid value: "example.com/other": field is immutable' in refused.message


@pytest.mark.parametrize("field", ["nodeSelector", "tolerations", "schedulingGates"])
@pytest.mark.parametrize(("before", "after"), [(True, True), (True, False), (False, True)])
def test_placement_changes_while_suspended(field: str, *, before: bool, after: bool) -> None:
    def place(new: Object) -> None:
        new["spec"]["suspend"] = after
        pods(new)["spec"][field] = {"a": "b"} if field == "nodeSelector" else [{"key": "a"}]
        pods(new)["metadata"] = {"labels": {"queue": "a"}, "annotations": {"flavor": "b"}}

    assert changed(place, suspend=before).allowed


def test_placement_does_not_change_while_it_runs() -> None:
    refused = changed(lambda new: pods(new)["spec"].update(nodeSelector={"a": "b"}))
    assert "field is immutable" in refused.message


def test_an_image_does_not_change_even_while_suspended() -> None:
    def paint(new: Object) -> None:
        pods(new)["spec"]["containers"][0]["image"] = "python:3.13"

    assert "field is immutable" in changed(paint, suspend=True).message

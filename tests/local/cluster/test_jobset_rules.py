from collections.abc import Callable
from typing import Any

import pytest

from infra.local.cluster.objects import ApiError, Object
from tests.local.cluster.world import World, jobset


def first(obj: Object) -> dict[str, Any]:
    replicated: dict[str, Any] = obj["spec"]["replicatedJobs"][0]
    return replicated


def pods(obj: Object) -> dict[str, Any]:
    template: dict[str, Any] = first(obj)["template"]["spec"]["template"]
    return template


def test_a_new_jobset_is_completed_as_its_webhook_and_schema_do() -> None:
    made = World().objects.create("jobsets", jobset())
    assert made["spec"]["successPolicy"] == {"operator": "All"}
    assert made["spec"]["startupPolicy"] == {"startupPolicyOrder": "AnyOrder"}
    assert made["spec"]["network"] == {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    assert first(made)["groupName"] == "default"
    assert first(made)["template"]["spec"]["completionMode"] == "Indexed"
    assert pods(made)["spec"]["restartPolicy"] == "OnFailure"


def test_what_was_said_is_left_alone() -> None:
    said = jobset(network={"enableDNSHostnames": False}, failurePolicy={"rules": [{"action": "FailJobSet"}]})
    pods(said)["spec"]["restartPolicy"] = "Never"
    made = World().objects.create("jobsets", said)
    assert made["spec"]["network"]["enableDNSHostnames"] is False
    assert pods(made)["spec"]["restartPolicy"] == "Never"
    assert made["spec"]["failurePolicy"]["rules"][0]["name"] == "failurePolicyRule0"


CASES: list[tuple[str, Callable[[], Object], str]] = [
    ("job names", lambda: jobset("a" * 57), "job names generated for this JobSet will exceed 63 characters"),
    ("pod names", lambda: jobset("a" * 50), "pod names generated for this JobSet will exceed 63 characters"),
    ("a digit first", lambda: jobset("1st"), "a DNS-1035 label must consist of"),
    ("manager", lambda: jobset(managedBy="kueue"), "must be a domain-prefixed path"),
    ("subdomain", lambda: jobset(network={"subdomain": "a" * 64}), ".spec.network.subdomain is too long"),
    (
        "success policy",
        lambda: jobset(successPolicy={"operator": "Any", "targetReplicatedJobs": ["none"]}),
        "invalid replicatedJob name 'none' does not appear in .spec.ReplicatedJobs",
    ),
    (
        "failure policy",
        lambda: jobset(failurePolicy={"rules": [{"action": "FailJobSet", "onJobFailureReasons": ["Bad"]}]}),
        "invalid job failure reason 'Bad' in failure policy",
    ),
    (
        "rule names",
        lambda: jobset(failurePolicy={"rules": [{"name": "r", "action": "FailJobSet"}] * 2}),
        r"rules with indices \[0 1\] all have the same name 'r'",
    ),
    (
        "a gated action",
        lambda: jobset(failurePolicy={"rules": [{"action": "RestartJob"}]}),
        "not allowed when RestartJob feature gate is disabled",
    ),
    ("coordinator", lambda: jobset(coordinator={"replicatedJob": "none"}), "replicatedJob none does not exist"),
    (
        "coordinator's index",
        lambda: jobset(coordinator={"replicatedJob": "slice", "jobIndex": 2}),
        "coordinator job index 2 is invalid",
    ),
    ("too many pods", lambda: jobset(replicas=2**30), "the product of replicas and parallelism must not exceed"),
]


@pytest.mark.parametrize(("wrong", "message"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_jobset_that_could_not_run_is_refused(wrong: Callable[[], Object], message: str) -> None:
    with pytest.raises(ApiError, match=message) as refused:
        World().objects.create("jobsets", wrong())
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")


def test_the_first_replicated_job_depends_on_nothing() -> None:
    wrong = jobset()
    first(wrong)["dependsOn"] = [{"name": "slice", "status": "Ready"}]
    with pytest.raises(ApiError, match="DependsOn can't be set for the first ReplicatedJob"):
        World().objects.create("jobsets", wrong)


def test_two_replicated_jobs_have_two_names() -> None:
    wrong = jobset()
    wrong["spec"]["replicatedJobs"] *= 2
    with pytest.raises(ApiError, match=r"spec.replicatedJobs\[1\]: Duplicate value"):
        World().objects.create("jobsets", wrong)


def test_persistent_volume_claims_are_not_covered() -> None:
    with pytest.raises(ApiError, match="does not implement volumeClaimPolicies") as refused:
        World().objects.create("jobsets", jobset(volumeClaimPolicies=[{}]))
    assert refused.value.code == 501


def test_replicated_jobs_do_not_change() -> None:
    world = World()
    made = world.objects.create("jobsets", jobset())
    first(made)["replicas"] = 3
    with pytest.raises(ApiError, match=r"spec.replicatedJobs: .*field is immutable"):
        world.objects.update("jobsets", made)


def test_leaving_out_what_was_defaulted_in_a_replicated_job_is_a_change() -> None:
    world = World()
    world.objects.create("jobsets", jobset())
    with pytest.raises(ApiError, match=r"spec.replicatedJobs: .*field is immutable"):
        world.objects.update("jobsets", jobset())


@pytest.mark.parametrize("policy", ["network", "successPolicy", "startupPolicy"])
def test_policies_do_not_change(policy: str) -> None:
    world = World()
    made = world.objects.create("jobsets", jobset())
    made["spec"][policy] = {"subdomain": "x", "operator": "Any", "startupPolicyOrder": "InOrder"}
    with pytest.raises(ApiError, match=rf"spec.{policy}: .*Value is immutable"):
        world.objects.update("jobsets", made)


def test_its_manager_does_not_change() -> None:
    world = World()
    made = world.objects.create("jobsets", jobset())
    made["spec"]["managedBy"] = "example.com/other"
    with pytest.raises(ApiError, match=r"spec.managedBy: .*field is immutable"):
        world.objects.update("jobsets", made)


@pytest.mark.parametrize("field", ["nodeSelector", "tolerations", "schedulingGates"])
@pytest.mark.parametrize(("before", "after"), [(True, True), (True, False), (False, True)])
def test_placement_changes_while_suspended(field: str, *, before: bool, after: bool) -> None:
    world = World()
    made = world.objects.create("jobsets", jobset(suspend=before))
    made["spec"]["suspend"] = after
    pods(made)["spec"][field] = {"a": "b"} if field == "nodeSelector" else []
    pods(made)["metadata"] = {"labels": {"queue": "a"}, "annotations": {"flavor": "b"}}
    assert pods(world.objects.update("jobsets", made)) == pods(made)


def test_placement_does_not_change_while_it_runs() -> None:
    world = World()
    made = world.objects.create("jobsets", jobset())
    pods(made)["spec"]["nodeSelector"] = {"a": "b"}
    with pytest.raises(ApiError, match="field is immutable"):
        world.objects.update("jobsets", made)


def test_an_image_does_not_change_even_while_suspended() -> None:
    world = World()
    made = world.objects.create("jobsets", jobset(suspend=True))
    pods(made)["spec"]["containers"][0]["image"] = "python:3.13"
    with pytest.raises(ApiError, match="field is immutable"):
        world.objects.update("jobsets", made)

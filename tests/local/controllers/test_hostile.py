"""Objects that controllers cannot process: each is reported once, and does not affect other objects."""

from collections.abc import Callable
from typing import Any

import pytest

from infra.local.cluster.controllers.patterns import matches
from infra.local.cluster.objects import Object
from tests.local.controllers.cluster import (
    JOBSET,
    Cluster,
    annotated,
    condition,
    job_spec,
    jobset,
    node,
    phases,
    pod_spec,
    replicated_job,
)

FREE = [{"operator": "Exists"}]


def pod(name: str = "strange", **spec: Any) -> Object:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": pod_spec(tolerations=FREE) | spec}


def affinity(operator: str) -> Object:
    selector = {"matchExpressions": [{"key": "team", "operator": operator, "values": ["a"]}]}
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def resources(**amounts: str) -> list[Object]:
    return [{"name": "main", "image": "trainer:1", "resources": {"requests": amounts}}]


def tampered(change: Callable[[Object], object], plural: str, name: str) -> Callable[[Cluster], None]:
    """Return a step that changes a stored object, as a user with kubectl may."""

    def tamper(cluster: Cluster) -> None:
        cluster.apply("jobsets", jobset("strange", failurePolicy={"maxRestarts": 3}))
        found = cluster.objects.get(plural, "default", name)
        change(found)
        del found["metadata"]["resourceVersion"]
        cluster.objects.update(plural, found)
        cluster.objects.update(plural, found, status=True)

    return tamper


def created(plural: str, obj: Object) -> Callable[[Cluster], object]:
    return lambda cluster: cluster.objects.create(plural, obj)


def without_label(key: str) -> Callable[[Object], object]:
    return lambda obj: obj["metadata"]["labels"].pop(JOBSET + key)


STRANGE = {
    "a pod that asks for no number": created("pods", pod(containers=resources(cpu="many"))),
    "a pod that asks for more digits than there are": created("pods", pod(containers=resources(cpu="1e999999999"))),
    "a pod with an unknown operator": created("pods", pod(affinity=affinity("Near"))),
    "a bound pod with an unknown operator": created("pods", pod(affinity=affinity("Near"), nodeName="pool-0-0")),
    "a bound pod that asks for no number": created("pods", pod(containers=resources(cpu="?"), nodeName="pool-0-0")),
    "a node that offers no number": created(
        "nodes", {**node("strange"), "status": {"allocatable": {"cpu": "x"}, "conditions": []}}
    ),
    "a child Job without its attempt": tampered(without_label("restart-attempt"), "jobs", "strange-slice-0"),
    "a child Job without its replicatedJob": tampered(without_label("replicatedjob-name"), "jobs", "strange-slice-0"),
    "a JobSet whose restarts are a word": tampered(
        lambda obj: obj["status"].update({"restarts": "often"}), "jobsets", "strange"
    ),
    "a Job whose completed indexes are words": tampered(
        lambda obj: obj.update({"status": {"completedIndexes": "all"}}), "jobs", "strange-slice-0"
    ),
    "a Job that started in a word": tampered(
        lambda obj: obj.update({"status": {"conditions": [{"type": "Complete"}]}}), "jobs", "strange-slice-0"
    ),
}


@pytest.mark.parametrize("strange", STRANGE.values(), ids=STRANGE)
def test_what_nobody_understands_is_told_and_the_others_live_on(strange: Callable[[Cluster], object]) -> None:
    cluster = Cluster()
    for number in range(4):
        cluster.add_pool(f"pool-{number}")
    strange(cluster)
    cluster.settle()
    cluster.apply("jobsets", jobset("train", replicated_job(replicas=1)))
    cluster.pass_time(100)

    told = [event for event in cluster.objects.list("events") if event["reason"].startswith("NotUnderstoodBy")]
    assert told
    assert {event["count"] for event in told} == {1}
    assert all(event["type"] == "Warning" for event in told)
    assert cluster.jobset()["status"]["terminalState"] == "Completed"


@pytest.mark.parametrize("seconds", ["soon", "nan", "inf", "1e400"])
def test_a_run_time_that_is_no_time_fails_its_pod_alone(seconds: str) -> None:
    cluster = Cluster()
    cluster.add_pool("pool")
    cluster.apply("jobs", {"metadata": {"name": "work"}, "spec": job_spec(pod=annotated(run_seconds=seconds))})
    cluster.pass_time(10)

    assert phases(cluster.pods()) == ["Failed", "Failed"]
    assert {found["status"]["reason"] for found in cluster.pods()} == {"InvalidAnnotation"}


def test_an_event_about_an_object_with_the_longest_name_has_a_name_too() -> None:
    cluster = Cluster()
    name = "a" * 236 + "." + "b" * 16
    cluster.apply("pods", pod(name))

    assert "FailedScheduling" in cluster.reasons("pods", name)


def test_a_job_of_very_many_pods_makes_them_in_portions() -> None:
    cluster = Cluster()
    spec = job_spec(parallelism=2**31 - 1, completions=2**31 - 1, suspend=True)
    cluster.apply("jobs", {"metadata": {"name": "vast"}, "spec": spec})
    known = cluster.job("vast")
    cluster.objects.update("jobs", known | {"spec": known["spec"] | {"suspend": False}})
    cluster.round()

    assert len(cluster.pods()) == 500


def test_a_jobset_of_very_many_jobs_makes_them_in_portions() -> None:
    cluster = Cluster()
    cluster.objects.create("jobsets", jobset("vast", replicated_job(replicas=10**6), suspend=True))
    cluster.round()

    assert len(cluster.names("jobs")) == 500


def test_completed_indexes_that_nobody_asked_for_are_not_counted() -> None:
    cluster = Cluster()
    cluster.add_pool("pool", hosts=2)
    cluster.objects.create("jobs", {"metadata": {"name": "work"}, "spec": job_spec()})
    known = cluster.job("work")
    status = {"completedIndexes": "0-99999999999", "conditions": []}
    cluster.objects.update("jobs", known | {"status": status}, status=True)
    cluster.pass_time(10)

    assert condition(cluster.job("work"), "Complete")["status"] == "True"


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("exit code 4[0-9]", True),
        ("^Container .* failed .* code 42$", True),
        ("(OOM|code 42)", True),
        (r"code \(?42\)*", True),
        ("code 7", False),
        ("(", False),
        ("a{4294967296}", False),
    ],
)
def test_a_pattern_is_searched_and_a_broken_one_matches_nothing(pattern: str, found: bool) -> None:
    assert matches(pattern, "Container main for pod x failed with exit code 42") is found


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*$", "((a|b)c)*d", "([a-z]*.)*x", ".*.*.*.*x", "(?:a*)+b"])
def test_a_pattern_that_could_take_for_ever_is_not_tried(pattern: str) -> None:
    with pytest.raises(ValueError, match="not evaluated"):
        matches(pattern, "a" * 60 + "!")


def test_a_jobset_with_a_pattern_that_is_not_tried_says_so() -> None:
    cluster = Cluster()
    rules = [{"action": "FailJobSet", "onJobFailureMessagePatterns": ["(a+)+$"]}]
    failing = replicated_job(replicas=1, pod=annotated(run_seconds="5", fail_until_restart="1"))
    cluster.apply("jobsets", jobset("train", failing, failurePolicy={"rules": rules}))
    cluster.add_pool("pool")
    cluster.pass_time(20)

    assert "NotUnderstoodByJobset" in cluster.reasons("jobsets", "train")

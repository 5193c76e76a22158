"""Plain Jobs and pods on hosts: what the Job controller makes of them, where the scheduler puts them, who gives way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cluster.asking import LIVE, Json, done, path
from tests.cluster.builders import CONTAINER, TPU, meta
from tests.cluster.places import Place, condition
from tests.cluster.servers import REAL_ALONE, Cluster, unique
from tpu_standins.testing.waiting import until

pytestmark = LIVE

INDEX = "batch.kubernetes.io/job-completion-index"


OTHER = {"key": "example.com/mine", "effect": "NoSchedule"}
UNFIT: dict[str, Callable[[Place, str], None]] = {
    "too few chips": lambda place, name: place.add_node(name, "unfit", chips=1),
    "not ready": lambda place, name: place.add_node(name, "unfit", ready="False"),
    "cordoned": lambda place, name: place.add_node(name, "unfit", unschedulable=True),
    "tainted": lambda place, name: place.add_node(name, "unfit", taints=[OTHER]),
}


@pytest.fixture
def place(cluster: Cluster, namespace: str) -> Place:
    return Place(cluster, namespace)


def job(place: Place, name: str = "work", **spec: object) -> Json:
    return place.create("jobs", meta(name) | {"spec": place.job_spec() | spec})


def ended(place: Place, kind: str, name: str = "work") -> Json:
    """Wait until a Job has this condition; return the condition."""
    until(lambda: condition(place.read("jobs", name), kind).get("status") == "True", kind)
    return condition(place.read("jobs", name), kind)


class TestJobs:
    def test_an_indexed_job_has_one_pod_of_each_index_and_completes(self, place: Place) -> None:
        place.add_pool("a")
        place.create("jobs", meta("work") | {"spec": place.job_spec(run=1)})
        ended(place, "Complete")
        indexes = {each["metadata"]["annotations"][INDEX] for each in place.items("pods")}
        assert indexes == {"0", "1"}
        assert place.read("jobs", "work")["status"]["succeeded"] == 2

    def test_its_pods_are_named_labelled_and_owned(self, place: Place) -> None:
        made = job(place, completions=1, parallelism=1)
        until(lambda: place.items("pods"), "the pod")
        [pod] = place.items("pods")
        metadata = pod["metadata"]
        assert metadata["name"].startswith("work-0-")
        [owner] = metadata["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("Job", "work", made["metadata"]["uid"])
        assert (owner["controller"], owner["blockOwnerDeletion"]) == (True, True)
        labels = metadata["labels"]
        assert (labels["batch.kubernetes.io/job-name"], labels[INDEX]) == ("work", "0")
        assert pod["spec"]["hostname"] == "work-0"

    def test_one_of_one_pod_has_no_index_and_completes(self, place: Place) -> None:
        place.add_pool("a", hosts=1)
        of_one = {"completions": 1, "parallelism": 1, "completionMode": "NonIndexed"}
        place.create("jobs", meta("work") | {"spec": place.job_spec(run=1) | of_one})
        ended(place, "Complete")
        [pod] = place.items("pods")
        labels, annotations = pod["metadata"]["labels"], pod["metadata"].get("annotations", {})
        assert (labels["batch.kubernetes.io/job-name"], INDEX in labels, INDEX in annotations) == ("work", False, False)
        status = place.read("jobs", "work")["status"]
        assert (status["succeeded"], "completedIndexes" in status) == (1, False)

    def test_the_only_pod_of_one_that_is_deleted_is_replaced(self, place: Place) -> None:
        place.add_pool("a", hosts=1)
        job(place, completions=1, parallelism=1, completionMode="NonIndexed", backoffLimit=1)
        place.await_phases("Running")
        [pod] = place.items("pods")
        done(place.cluster.api.delete(path("pods", place.name, pod["metadata"]["name"])))
        until(
            lambda: pod["metadata"]["uid"] not in [each["metadata"]["uid"] for each in place.items("pods")], "its end"
        )
        place.await_phases("Running")

    def test_a_failed_pod_beyond_the_limit_fails_it(self, place: Place) -> None:
        place.add_pool("a")
        place.create("jobs", meta("work") | {"spec": place.job_spec(run=1, fail_until=9)})
        assert ended(place, "Failed")["reason"] == "BackoffLimitExceeded"

    def test_a_suspended_one_has_no_pods_until_it_is_resumed(self, place: Place) -> None:
        place.add_pool("a")
        job(place, suspend=True)
        ended(place, "Suspended")
        assert place.items("pods") == []
        done(place.cluster.api.patch(path("jobs", place.name, "work"), {"spec": {"suspend": False}}))
        place.await_phases("Running", "Running")

    def test_a_policy_for_failures_fails_it_at_once(self, place: Place) -> None:
        place.add_pool("a")
        rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}
        spec = place.job_spec(run=1, fail_until=9) | {"backoffLimit": 6, "podFailurePolicy": {"rules": [rule]}}
        place.create("jobs", meta("work") | {"spec": spec})
        assert ended(place, "Failed")["reason"] == "PodFailurePolicy"

    def test_a_deleted_pod_is_replaced(self, place: Place) -> None:
        place.add_pool("a", hosts=1)
        job(place, completions=1, parallelism=1, backoffLimit=1)
        place.await_phases("Running")
        [pod] = place.items("pods")
        done(place.cluster.api.delete(path("pods", place.name, pod["metadata"]["name"])))

        def replaced() -> bool:
            pods = place.items("pods")
            return bool(pods) and all(each["metadata"]["uid"] != pod["metadata"]["uid"] for each in pods)

        until(replaced, "another pod")
        place.await_phases("Running")

        def counted() -> tuple[int, int]:
            status = place.read("jobs", "work")["status"]
            return status.get("failed", 0), status.get("active", 0)

        until(lambda: counted() == (1, 1), "the Job to count it as failed, and the other as active")


class TestScheduling:
    def pod(self, place: Place, name: str = "one", **spec: object) -> str:
        place.create("pods", meta(name) | {"spec": place.pod_spec() | spec})
        return name

    @staticmethod
    def scheduled(place: Place, status: str, name: str = "one") -> Json:
        """Wait until the scheduler has said whether a pod is scheduled; return its condition."""
        until(
            lambda: condition(place.read("pods", name), "PodScheduled").get("status") == status,
            f"PodScheduled {status}",
        )
        return condition(place.read("pods", name), "PodScheduled")

    def test_a_pod_waits_for_a_host_and_runs_on_it(self, place: Place) -> None:
        self.pod(place)
        assert self.scheduled(place, "False")["reason"] == "Unschedulable"
        place.add_pool("a", hosts=1)
        self.scheduled(place, "True")
        assert place.read("pods", "one")["spec"]["nodeName"] == f"{place.name}-a-0"
        place.await_phases("Running")

    def test_a_gated_pod_waits_for_its_gates(self, place: Place) -> None:
        place.add_pool("a", hosts=1)
        self.pod(place, schedulingGates=[{"name": "example.com/wait"}])
        assert self.scheduled(place, "False")["reason"] == "SchedulingGated"
        done(place.cluster.api.patch(path("pods", place.name, "one"), {"spec": {"schedulingGates": None}}))
        self.scheduled(place, "True")

    @pytest.mark.parametrize("case", UNFIT)
    def test_a_host_that_does_not_fit_takes_nobody(self, place: Place, case: str) -> None:
        UNFIT[case](place, f"{place.name}-unfit")
        self.pod(place)
        assert self.scheduled(place, "False")["reason"] == "Unschedulable"
        place.add_pool("a", hosts=1)
        self.scheduled(place, "True")
        assert place.read("pods", "one")["spec"]["nodeName"] == f"{place.name}-a-0"

    def test_a_host_is_not_promised_twice(self, place: Place) -> None:
        place.add_pool("a")
        for name in ("one", "two", "three"):
            self.pod(place, name)
        place.await_phases("Running", "Running", "Pending")
        hosts = [each["spec"].get("nodeName") for each in place.items("pods")]
        assert {*hosts} == {f"{place.name}-a-0", f"{place.name}-a-1", None}

    @REAL_ALONE
    def test_a_lesser_pod_gives_way_to_a_greater_one(self, place: Place) -> None:
        place.add_pool("a", hosts=1)
        great = unique("great")
        place.cluster.api.create(path("priorityclasses"), meta(great) | {"value": 1000})
        self.pod(place, "low")
        place.await_phases("Running")
        high = meta("high") | {"spec": place.pod_spec() | {"priorityClassName": great}}
        pods = path("pods", place.name)
        until(lambda: place.cluster.api.post(pods, high, dryRun="All").code == 201, "the class")
        place.create("pods", high)
        until(lambda: place.cluster.api.get(path("pods", place.name, "low")).code == 404, "its end")
        self.scheduled(place, "True", "high")

    @REAL_ALONE
    def test_nobody_gives_way_to_an_equal(self, place: Place) -> None:
        place.add_pool("a", hosts=1)
        self.pod(place, "there")
        place.await_phases("Running")
        self.pod(place, "comes")
        assert self.scheduled(place, "False", "comes")["reason"] == "Unschedulable"
        assert "deletionTimestamp" not in place.read("pods", "there")["metadata"]


def test_a_pod_of_no_chips_may_not_go_where_only_chips_are_tolerated(place: Place) -> None:
    place.add_pool("a", hosts=1)
    selector = place.pod_spec()["nodeSelector"]
    place.create("pods", meta("one") | {"spec": {"containers": [CONTAINER], "nodeSelector": selector}})
    TestScheduling.scheduled(place, "False")
    assert TPU not in str(place.read("pods", "one")["spec"].get("tolerations"))

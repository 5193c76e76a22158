"""What becomes of an object when it is created, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.asking import LIVE, Json, path
from tests.cluster.builders import CONTAINER, TPU, chips, event, job, jobset, meta, node, pod
from tests.cluster.servers import POD, REAL_ALONE, Cluster, unique
from tpu_standins.testing.waiting import until

pytestmark = LIVE

TOLERATED = {"key": TPU, "operator": "Exists", "effect": "NoSchedule"}


def test_an_object_is_created_read_and_listed(cluster: Cluster, namespace: str) -> None:
    made = cluster.api.create(path("pods", namespace), pod())
    assert cluster.api.read(path("pods", namespace, "one"))["metadata"]["uid"] == made["metadata"]["uid"]
    listed = cluster.api.read(path("pods", namespace))
    assert (listed["kind"], [each["metadata"]["name"] for each in listed["items"]]) == ("PodList", ["one"])


def test_a_new_object_has_an_identity_a_birthday_and_a_version(cluster: Cluster, namespace: str) -> None:
    made = cluster.api.create(path("jobs", namespace), job())
    assert (made["apiVersion"], made["kind"]) == ("batch/v1", "Job")
    metadata = made["metadata"]
    assert (metadata["namespace"], metadata["generation"], len(metadata["uid"])) == (namespace, 1, 36)
    assert metadata["creationTimestamp"].endswith("Z")
    assert int(metadata["resourceVersion"]) > 0


def test_what_only_the_server_knows_is_not_taken_from_the_client(cluster: Cluster, namespace: str) -> None:
    claimed: Json = {"uid": "u", "generation": 7, "creationTimestamp": "2020-01-01T00:00:00Z"}
    made = cluster.api.create(path("pods", namespace), pod(**claimed))["metadata"]
    assert [made[key] for key in claimed if made.get(key) == claimed[key]] == []


def test_a_generated_name_keeps_its_base(cluster: Cluster, namespace: str) -> None:
    names = [
        cluster.api.create(path("pods", namespace), pod("") | {"metadata": {"generateName": "train-0-"}})["metadata"]
        for _ in range(2)
    ]
    assert [each["name"][:-5] for each in names] == ["train-0-"] * 2
    assert names[0]["name"] != names[1]["name"]


def test_a_name_is_taken_once(cluster: Cluster, namespace: str) -> None:
    cluster.api.create(path("pods", namespace), pod())
    refused = cluster.api.post(path("pods", namespace), pod())
    assert refused.refusal == (409, "AlreadyExists")
    assert refused.body["details"] == {"name": "one", "kind": "pods"}


@pytest.mark.parametrize(("plural", "more"), [("pods", {}), ("jobsets", {"group": "jobset.x-k8s.io"})])
def test_what_is_not_there_is_not_found_by_its_name_and_kind(
    cluster: Cluster, namespace: str, plural: str, more: Json
) -> None:
    missing = cluster.api.get(path(plural, namespace, "none"))
    assert missing.refusal == (404, "NotFound")
    assert missing.body["details"] == {"name": "none", "kind": plural} | more


def test_a_kind_that_is_not_served_is_told_from_an_object_that_is_not_there(cluster: Cluster, namespace: str) -> None:
    """Ours answers 501 to all that it does not cover."""
    missing = cluster.api.get(f"/apis/none.example.com/v1/namespaces/{namespace}/jobsets/train")
    assert missing.code in {404, 501}
    assert not isinstance(missing.body, dict) or "name" not in missing.body.get("details", {})


class TestDefaults:
    def test_a_pod_is_completed(self, cluster: Cluster, namespace: str) -> None:
        made = cluster.api.create(path("pods", namespace), meta("one") | POD)
        spec = made["spec"]
        assert (made["status"]["phase"], made["status"]["qosClass"]) == ("Pending", "BestEffort")
        assert (spec["restartPolicy"], spec["schedulerName"]) == ("Always", "default-scheduler")
        assert (spec["terminationGracePeriodSeconds"], spec["priority"]) == (30, 0)
        assert spec["serviceAccountName"] == "default"
        assert spec["containers"][0]["imagePullPolicy"] == "IfNotPresent"

    def test_a_pod_stays_five_minutes_on_a_node_that_is_lost(self, cluster: Cluster, namespace: str) -> None:
        made = cluster.api.create(path("pods", namespace), pod())
        expected = [
            {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for key in ("not-ready", "unreachable")
        ]
        assert made["spec"]["tolerations"] == expected

    def test_a_pod_that_wants_chips_tolerates_their_taint_and_requests_what_it_is_limited_to(
        self, cluster: Cluster, namespace: str
    ) -> None:
        spec = cluster.api.create(path("pods", namespace), pod(spec=chips(4)))["spec"]
        assert TOLERATED in spec["tolerations"]
        assert spec["containers"][0]["resources"] == {"requests": {TPU: "4"}, "limits": {TPU: "4"}}

    def test_a_job_is_completed_and_selects_its_own_pods(self, cluster: Cluster, namespace: str) -> None:
        made = cluster.api.create(path("jobs", namespace), job())
        uid, spec = made["metadata"]["uid"], made["spec"]
        assert (spec["parallelism"], spec["completions"], spec["backoffLimit"]) == (1, 1, 6)
        assert (spec["completionMode"], spec["podReplacementPolicy"]) == ("NonIndexed", "TerminatingOrFailed")
        assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
        labels = spec["template"]["metadata"]["labels"]
        assert (labels["batch.kubernetes.io/job-name"], labels["job-name"]) == ("work", "work")

    def test_a_node_is_not_ready_until_its_kubelet_says_so(self, cluster: Cluster) -> None:
        made = cluster.api.create(path("nodes"), node(unique("host")))
        taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
        assert taint in made["spec"]["taints"]

    def test_a_node_registers_with_its_status(self, cluster: Cluster) -> None:
        status = {"capacity": {TPU: 4}, "allocatable": {TPU: "4"}}
        made = cluster.api.create(path("nodes"), node(unique("host"), status=status))
        assert (made["status"]["capacity"][TPU], made["status"]["allocatable"][TPU]) == ("4", "4")

    def test_a_headless_service_is_completed(self, cluster: Cluster, namespace: str) -> None:
        spec = {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"port": 80}]}
        made = cluster.api.create(path("services", namespace), meta("train") | {"spec": spec})["spec"]
        assert made["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
        assert (made["type"], made["clusterIP"], made["selector"]) == ("ClusterIP", "None", {"a": "b"})

    def test_a_namespace_is_active_and_carries_its_name(self, cluster: Cluster, namespace: str) -> None:
        made = cluster.api.read(path("namespaces", name=namespace))
        assert made["status"]["phase"] == "Active"
        assert made["metadata"]["labels"]["kubernetes.io/metadata.name"] == namespace

    def test_the_status_of_a_custom_object_is_not_taken_at_its_creation(self, cluster: Cluster, namespace: str) -> None:
        made = cluster.api.create(path("jobsets", namespace), jobset() | {"status": {"restarts": 7}})
        assert made.get("status", {}) == {}

    def test_a_priority_comes_from_a_class(self, cluster: Cluster, namespace: str) -> None:
        name, pods = unique("high"), path("pods", namespace)
        cluster.api.create(path("priorityclasses"), meta(name) | {"value": 7, "preemptionPolicy": "Never"})
        of_class = pod(spec={"priorityClassName": name})
        until(lambda: cluster.api.post(pods, of_class, dryRun="All").code == 201, "the class")
        spec = cluster.api.create(pods, of_class)["spec"]
        assert (spec["priority"], spec["preemptionPolicy"]) == (7, "Never")


INVALID = (422, "Invalid")
REFUSED: dict[str, tuple[str, Json, tuple[int, str], str]] = {
    "a name that is none": ("pods", pod("Upper"), INVALID, "metadata.name"),
    "a label that is none": ("pods", pod(labels={"a": "c" * 64}), INVALID, "metadata.labels"),
    "no image": ("pods", pod(spec={"containers": [{"name": "main"}]}), INVALID, "spec.containers[0].image"),
    "no container": ("pods", pod(spec={"containers": []}), INVALID, "spec.containers"),
    "two of a name": ("pods", pod(spec={"containers": [CONTAINER] * 2}), INVALID, "spec.containers[1].name"),
    "half a chip": ("pods", pod(spec=chips("1.5")), INVALID, f"spec.containers[0].resources.limits[{TPU}]"),
    "a Job that restarts for ever": (
        "jobs",
        job(spec={"template": {"spec": {"containers": [CONTAINER]}}}),
        INVALID,
        "spec.template.spec.restartPolicy",
    ),
    "a class that is not there": ("pods", pod(spec={"priorityClassName": "none"}), (403, "Forbidden"), ""),
    "a word for a number": ("pods", pod(spec={"priority": "high"}), (400, "BadRequest"), ""),
    "another kind": ("pods", {"apiVersion": "batch/v1", "kind": "Job"} | pod(), (400, "BadRequest"), ""),
    "another namespace": ("pods", pod(namespace="kube-system"), (400, "BadRequest"), ""),
}
"""What is created; the code and the reason of the refusal; a field that it names."""


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_and_its_field_named(cluster: Cluster, namespace: str, case: str) -> None:
    plural, body, refusal, field = REFUSED[case]
    refused = cluster.api.post(path(plural, namespace), body)
    assert (refused.refusal, not field or field in refused.fields) == (refusal, True), refused
    assert cluster.api.read(path(plural, namespace))["items"] == []


@pytest.mark.parametrize("body", [[1], b"{", b"", b"null"])
def test_a_body_that_is_no_object_is_refused(cluster: Cluster, namespace: str, body: Any) -> None:
    assert cluster.api.post(path("pods", namespace), body).code in {400, 422}


def test_a_type_that_nobody_reads_is_refused(cluster: Cluster, namespace: str) -> None:
    refused = cluster.api.post(path("pods", namespace), b"x", kind="text/plain")
    assert refused.refusal == (415, "UnsupportedMediaType")


@REAL_ALONE
@pytest.mark.parametrize(
    ("validation", "code", "warned"), [("Strict", 400, False), ("Warn", 201, True), ("Ignore", 201, False)]
)
def test_an_unknown_field_of_a_jobset_is_refused_warned_of_or_dropped(
    cluster: Cluster, namespace: str, validation: str, code: int, warned: bool
) -> None:
    wrong = jobset(spec={"foo": 1})
    answer = cluster.api.post(path("jobsets", namespace), wrong, fieldValidation=validation)
    assert (answer.code, any('unknown field "spec.foo"' in each for each in answer.warnings)) == (code, warned)
    if code == 400:
        assert 'strict decoding error: unknown field "spec.foo"' in answer.body["message"]
    else:
        assert "foo" not in answer.body["spec"]


def test_a_dry_run_answers_and_stores_nothing(cluster: Cluster, namespace: str) -> None:
    assert cluster.api.post(path("pods", namespace), pod(), dryRun="All").code == 201
    assert cluster.api.read(path("pods", namespace))["items"] == []
    assert cluster.api.post(path("pods", namespace), pod(), dryRun="Some").refusal == (422, "Invalid")


def test_an_event_is_of_an_object_in_its_namespace(cluster: Cluster, namespace: str) -> None:
    assert cluster.api.create(path("events", namespace), event("one", namespace))["metadata"]["name"] == "one"
    stray = event("two", namespace, involvedObject={"kind": "Pod", "namespace": "kube-system"})
    assert cluster.api.post(path("events", namespace), stray).refusal == (422, "Invalid")


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_collection_is_neither_replaced_nor_patched(cluster: Cluster, namespace: str, method: str) -> None:
    assert cluster.api.ask(method, path("pods", namespace), {}).refusal == (405, "MethodNotAllowed")


def test_what_is_created_in_a_namespace_is_not_created_without_one(cluster: Cluster) -> None:
    assert cluster.api.post(path("pods"), pod()).refusal == (405, "MethodNotAllowed")

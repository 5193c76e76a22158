"""JobSet's admission: what it completes, what it refuses, and what may change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cluster.asking import LIVE, Json, done, path
from tests.cluster.builders import CONTAINER, EXCLUSIVE, NOBODY, POOL, chips, job, meta, node, owned_by, pod
from tests.cluster.builders import jobset as managed_by_nobody
from tests.cluster.servers import EMBEDDED_ALONE, REAL_ALONE, Cluster, unique
from tpu_standins.testing.waiting import until

pytestmark = LIVE

LABEL = "jobset.sigs.k8s.io/"
INDEX = "batch.kubernetes.io/job-completion-index"


def jobset(name: str = "train", *, replicas: int = 2, **spec: Any) -> Json:
    """Return a suspended JobSet as people write it: much is left out."""
    pods = {"nodeSelector": {"cloud.google.com/gke-tpu-topology": "4x4"}} | chips(4)
    jobs = {"parallelism": 4, "completions": 4, "template": {"spec": pods}}
    replicated = {"name": "slice", "replicas": replicas, "template": {"spec": jobs}}
    whole = managed_by_nobody(name)
    return whole | {"spec": whole["spec"] | {"replicatedJobs": [replicated]} | spec}


def first(obj: Json) -> Json:
    replicated: Json = obj["spec"]["replicatedJobs"][0]
    return replicated


def pods(obj: Json) -> Json:
    template: Json = first(obj)["template"]["spec"]["template"]
    return template


def test_a_new_one_is_completed(cluster: Cluster, namespace: str) -> None:
    made = cluster.api.create(path("jobsets", namespace), jobset())
    assert made["spec"]["successPolicy"] == {"operator": "All"}
    assert made["spec"]["startupPolicy"] == {"startupPolicyOrder": "AnyOrder"}
    assert made["spec"]["network"] == {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    assert (first(made)["groupName"], first(made)["template"]["spec"]["completionMode"]) == ("default", "Indexed")
    assert pods(made)["spec"]["restartPolicy"] == "OnFailure"


def test_what_was_said_is_left_alone(cluster: Cluster, namespace: str) -> None:
    said = jobset(failurePolicy={"maxRestarts": 2})
    pods(said)["spec"]["restartPolicy"] = "Never"
    made = cluster.api.create(path("jobsets", namespace), said)
    assert (made["spec"]["failurePolicy"]["maxRestarts"], pods(made)["spec"]["restartPolicy"]) == (2, "Never")


@REAL_ALONE
def test_a_rule_without_a_name_gets_one(cluster: Cluster, namespace: str) -> None:
    made = cluster.api.create(path("jobsets", namespace), jobset(failurePolicy=ruled()))
    assert made["spec"]["failurePolicy"]["rules"][0]["name"] == "failurePolicyRule0"


def with_dependency(*names: str) -> Json:
    """Return a JobSet of two replicated Jobs, the second of which depends on these."""
    wrong = jobset()
    on = [{"name": name, "status": "Ready"} for name in names]
    wrong["spec"]["replicatedJobs"].append(first(wrong) | {"name": "second", "dependsOn": on})
    return wrong


def with_group(name: str) -> Json:
    made = jobset()
    first(made)["groupName"] = name
    return made


def with_claim(name: str) -> Json:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    made = jobset(volumeClaimPolicies=[{"templates": [{"metadata": {"name": name}, "spec": claim}]}])
    pods(made)["spec"]["containers"] = [CONTAINER | {"volumeMounts": [{"name": name, "mountPath": "/data"}]}]
    return made


def twice() -> Json:
    wrong = jobset()
    wrong["spec"]["replicatedJobs"] *= 2
    return wrong


def ruled(action: str = "FailJobSet", **more: Any) -> Json:
    """Return a failure policy of one rule."""
    return {"rules": [{"action": action} | more]}


REFUSED: dict[str, Callable[[], Json]] = {
    "a subdomain that is too long": lambda: jobset(network={"subdomain": "a" * 64}),
    "a success policy of nothing": lambda: jobset(successPolicy={"operator": "Any", "targetReplicatedJobs": ["none"]}),
    "a failure without such a reason": lambda: jobset(failurePolicy=ruled(onJobFailureReasons=["Bad"])),
    "an action behind a gate": lambda: jobset(failurePolicy=ruled("RestartJob")),
    "an unknown coordinator": lambda: jobset(coordinator={"replicatedJob": "none"}),
    "too many pods": lambda: jobset(replicas=2**30),
    "a dependency on what is unknown": lambda: with_dependency("none"),
    "two dependencies of a name": lambda: with_dependency("slice", "slice"),
    "two of a name": twice,
}
REFUSED_BY_THE_REAL_ONE: dict[str, Callable[[], Json]] = {
    "names of Jobs that are too long": lambda: jobset("a" * 57),
    "names of pods that are too long": lambda: jobset("a" * 50),
    "a digit first": lambda: jobset("1st"),
    "a manager without a domain": lambda: jobset(managedBy="somebody"),
    "two rules of a name": lambda: jobset(failurePolicy={"rules": [{"name": "r", "action": "FailJobSet"}] * 2}),
}
"""Ours takes them: it leaves those of another manager alone, and an Event tells of Jobs that cannot be created."""
NOT_DONE: dict[str, Callable[[], Json]] = {
    "spec.startupPolicy.startupPolicyOrder": lambda: jobset(startupPolicy={"startupPolicyOrder": "InOrder"}),
    "spec.replicatedJobs[1].dependsOn": lambda: with_dependency("slice"),
    "spec.replicatedJobs[0].groupName": lambda: with_group("ring"),
    "spec.successPolicy.operator": lambda: jobset(successPolicy={"operator": "Any"}),
    "spec.successPolicy.targetReplicatedJobs": lambda: jobset(
        successPolicy={"operator": "All", "targetReplicatedJobs": ["slice"]}
    ),
    "spec.failurePolicy.rules[0].action": lambda: jobset(failurePolicy=ruled("RestartJobSet")),
    "spec.failurePolicy.rules[0].targetReplicatedJobs": lambda: jobset(
        failurePolicy=ruled(targetReplicatedJobs=["slice"])
    ),
    "spec.failurePolicy.rules[0].onJobFailureMessagePatterns": lambda: jobset(
        failurePolicy=ruled(onJobFailureMessagePatterns=["code 42"])
    ),
    "spec.failurePolicy.restartStrategy": lambda: jobset(failurePolicy={"restartStrategy": "BlockingRecreate"}),
    "spec.coordinator": lambda: jobset(coordinator={"replicatedJob": "slice"}),
    "spec.network.enableDNSHostnames": lambda: jobset(network={"enableDNSHostnames": False}),
    "spec.network.subdomain": lambda: jobset(network={"subdomain": "ring"}),
    "spec.volumeClaimPolicies": lambda: with_claim("data"),
}
"""What ours refuses, and JobSet's own controller does."""


@pytest.mark.parametrize("case", REFUSED)
def test_one_that_could_not_run_is_refused(cluster: Cluster, namespace: str, case: str) -> None:
    assert cluster.api.post(path("jobsets", namespace), REFUSED[case]()).refusal == (422, "Invalid")
    assert cluster.api.read(path("jobsets", namespace))["items"] == []


@REAL_ALONE
@pytest.mark.parametrize("case", REFUSED_BY_THE_REAL_ONE)
def test_one_whose_names_could_not_be_used_is_refused(cluster: Cluster, namespace: str, case: str) -> None:
    answer = cluster.api.post(path("jobsets", namespace), REFUSED_BY_THE_REAL_ONE[case]())
    assert answer.refusal == (422, "Invalid")


@EMBEDDED_ALONE
@pytest.mark.parametrize("field", NOT_DONE)
def test_what_ours_does_not_do_it_refuses_with_the_field_and_the_remedy(
    cluster: Cluster, namespace: str, field: str
) -> None:
    answer = cluster.api.post(path("jobsets", namespace), NOT_DONE[field]())
    assert answer.refusal == (422, "Invalid")
    assert f"{field}: Forbidden: not done by the JobSet of the embedded API server" in answer.body["message"]
    assert "`make kubernetes` builds" in answer.body["message"]


@REAL_ALONE
@pytest.mark.parametrize("field", NOT_DONE)
def test_what_ours_refuses_its_own_controller_takes(cluster: Cluster, namespace: str, field: str) -> None:
    assert cluster.api.post(path("jobsets", namespace), NOT_DONE[field]()).code == 201


@REAL_ALONE
@pytest.mark.parametrize(
    ("spec", "refusal"),
    [
        ({"ttlSecondsAfterFinished": "soon"}, (400, "")),
        ({"suspend": "no"}, (400, "")),
        ({"successPolicy": {"operator": "Most"}}, (422, "Invalid")),
    ],
)
def test_one_of_another_shape_is_refused_by_the_webhook_that_reads_it_or_by_its_schema(
    cluster: Cluster, namespace: str, spec: Json, refusal: tuple[int, str]
) -> None:
    assert cluster.api.post(path("jobsets", namespace), jobset(**spec)).refusal == refusal


@pytest.mark.parametrize(
    "change",
    [
        {"network": {"subdomain": "x", "enableDNSHostnames": True}},
        {"successPolicy": {"operator": "Any"}},
        {"startupPolicy": {"startupPolicyOrder": "InOrder"}},
        {"managedBy": "example.com/other"},
        {"replicatedJobs": []},
    ],
    ids=lambda change: next(iter(change)),
)
def test_policies_do_not_change(cluster: Cluster, namespace: str, change: Json) -> None:
    cluster.api.create(path("jobsets", namespace), jobset())
    assert cluster.api.patch(path("jobsets", namespace, "train"), {"spec": change}).refusal == (422, "Invalid")


@EMBEDDED_ALONE
def test_ours_refuses_a_change_of_placement_with_the_remedy(cluster: Cluster, namespace: str) -> None:
    made = cluster.api.create(path("jobsets", namespace), jobset(suspend=True))
    pods(made)["spec"]["nodeSelector"] = {"a": "b"}
    answer = cluster.api.put(path("jobsets", namespace, "train"), made)
    assert answer.refusal == (422, "Invalid")
    assert "create the JobSet anew, or use JobSet's own controller" in answer.body["message"]


@REAL_ALONE
@pytest.mark.parametrize("suspended", [True, False])
def test_placement_changes_only_while_it_is_suspended(cluster: Cluster, namespace: str, *, suspended: bool) -> None:
    made = cluster.api.create(path("jobsets", namespace), jobset(suspend=suspended))
    pods(made)["spec"]["nodeSelector"] = {"a": "b"}
    pods(made)["metadata"] = {"labels": {"queue": "a"}, "annotations": {"flavor": "b"}}
    assert cluster.api.put(path("jobsets", namespace, "train"), made).code == (200 if suspended else 422)


@REAL_ALONE
def test_it_is_placed_and_resumed_at_once(cluster: Cluster, namespace: str) -> None:
    made = cluster.api.create(path("jobsets", namespace), jobset())
    made["spec"]["suspend"] = False
    pods(made)["spec"]["tolerations"] = [{"key": "flavor", "operator": "Exists"}]
    assert cluster.api.put(path("jobsets", namespace, "train"), made).code == 200


@pytest.mark.parametrize("suspended", [True, False])
def test_an_image_never_changes(cluster: Cluster, namespace: str, *, suspended: bool) -> None:
    made = cluster.api.create(path("jobsets", namespace), jobset(suspend=suspended))
    pods(made)["spec"]["containers"][0]["image"] = "python:3.13"
    assert cluster.api.put(path("jobsets", namespace, "train"), made).refusal == (422, "Invalid")


class TestPods:
    """Of a Job of a JobSet that wants a node pool for itself."""

    @pytest.fixture
    def owner(self, cluster: Cluster, namespace: str) -> Json:
        """A Job that nobody manages: the Job controller would let go of pods unlike its own."""
        return cluster.api.create(path("jobs", namespace), job("train-slice-0", spec={"managedBy": NOBODY}))

    @staticmethod
    def member(index: int, owner: Json, **annotations: str) -> Json:
        own = {LABEL + "jobset-name": "train", INDEX: str(index), EXCLUSIVE: POOL}
        names = {"jobset-name": "train", "replicatedjob-name": "slice", "job-index": "0", "job-key": "key-of-the-job"}
        labels = {LABEL + key: value for key, value in names.items()}
        name = f"train-slice-0-{index}-abcde"
        return pod(name, spec=chips(4), labels=labels, annotations=own | annotations, **owned_by(owner))

    def test_a_leader_wants_its_domain_for_its_own_job(self, cluster: Cluster, namespace: str, owner: Json) -> None:
        affinity = cluster.api.create(path("pods", namespace), self.member(0, owner))["spec"]["affinity"]
        [near] = affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        [far] = affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert (near["topologyKey"], far["topologyKey"]) == (POOL, POOL)
        mine = {"key": LABEL + "job-key", "operator": "In", "values": ["key-of-the-job"]}
        assert near["labelSelector"]["matchExpressions"] == [mine]
        assert "NotIn" in [each["operator"] for each in far["labelSelector"]["matchExpressions"]]

    def test_a_follower_is_refused_until_its_leader_is_on_a_node(
        self, cluster: Cluster, namespace: str, owner: Json
    ) -> None:
        where = path("pods", namespace)
        assert cluster.api.post(where, self.member(1, owner)).code == 403
        leader = cluster.api.create(where, self.member(0, owner))["metadata"]["name"]
        assert cluster.api.post(where, self.member(1, owner)).code == 403
        host = unique("host")
        cluster.api.create(path("nodes"), node(host) | meta(host, labels={POOL: "pool-a"}))
        target = meta(leader) | {"target": {"kind": "Node", "name": host}}
        done(cluster.api.post(path("pods", namespace, leader, "binding"), target))

        def created() -> Json | None:
            answer = cluster.api.post(where, self.member(1, owner))
            return answer.body if answer.code == 201 else None

        follower = until(created, "the webhook to have seen the leader's node")
        assert follower
        assert follower["spec"]["nodeSelector"] == {POOL: "pool-a"}

    def test_one_placed_by_node_selector_is_left_alone(self, cluster: Cluster, namespace: str, owner: Json) -> None:
        member = self.member(0, owner, **{"alpha.jobset.sigs.k8s.io/node-selector": "true"})
        assert "affinity" not in cluster.api.create(path("pods", namespace), member)["spec"]

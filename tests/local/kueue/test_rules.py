from typing import Any

import pytest

from infra.local.cluster.objects import ApiError, Object
from tests.local.cluster.world import World
from tests.local.controllers.cluster import replicated_job
from tests.local.kueue.world import (
    QUEUE,
    TPU,
    QueuedCluster,
    cluster_queue,
    flavor,
    group,
    local_queue,
    pod_set,
    queued,
    workload,
)

KUEUE = "/apis/kueue.x-k8s.io/v1beta1"
STRICT = {"fieldValidation": "Strict"}
TOLERATION = {"operator": "Equal"}


def new_workload(*pod_sets: Object, **spec: Any) -> Object:
    return {"metadata": {"name": "one"}, "spec": workload("one", *pod_sets, **spec)["spec"]}


def refusal(plural: str, obj: Object) -> ApiError:
    """Create an object as kubectl does; return the API server's refusal."""
    namespace = "" if plural in ("resourceflavors", "clusterqueues") else "namespaces/default/"
    with pytest.raises(ApiError) as found:
        World().call("POST", f"{KUEUE}/{namespace}{plural}", obj, **STRICT)
    return found.value


SCHEMA: list[tuple[str, Object, str]] = [
    ("clusterqueues", cluster_queue(quota=1), 'strict decoding error: unknown field "spec.quota"'),
    ("resourceflavors", flavor(nodeLabel={}), 'strict decoding error: unknown field "spec.nodeLabel"'),
    ("localqueues", local_queue(clusterqueue="x"), 'strict decoding error: unknown field "spec.clusterqueue"'),
    ("workloads", new_workload(queue="jobs"), 'strict decoding error: unknown field "spec.queue"'),
    (
        "clusterqueues",
        cluster_queue(stopPolicy="Halt"),
        'Unsupported value: "Halt": supported values: "None", "Hold", "HoldAndDrain"',
    ),
    ("clusterqueues", cluster_queue(preemption={"withinClusterQueue": "Always"}), 'Unsupported value: "Always"'),
    ("clusterqueues", cluster_queue(resourceGroups=[group("eight")]), "should match the format of a quantity"),
    ("clusterqueues", cluster_queue(resourceGroups=[group()] * 17), "Too many: 17: must have at most 16 items"),
    ("clusterqueues", cluster_queue(resourceGroups=[{"flavors": []}]), "coveredResources: Required value"),
]


@pytest.mark.parametrize(("plural", "obj", "why"), SCHEMA, ids=[row[2] for row in SCHEMA])
def test_what_the_schema_does_not_know_is_refused(plural: str, obj: Object, why: str) -> None:
    assert why in refusal(plural, obj).message


WEBHOOK: list[tuple[str, Object, str]] = [
    ("clusterqueues", cluster_queue(-1), "must be greater than or equal to 0"),
    (
        "clusterqueues",
        cluster_queue(resourceGroups=[group() | {"coveredResources": [TPU, "cpu"]}]),
        "flavors must have the same number of resources as the coveredResources",
    ),
    (
        "clusterqueues",
        cluster_queue(resourceGroups=[group() | {"coveredResources": ["cpu"]}]),
        "must match the name in coveredResources",
    ),
    ("clusterqueues", cluster_queue(resourceGroups=[group(8, "a"), group(8, "b")]), f'Duplicate value: "{TPU}"'),
    ("clusterqueues", cluster_queue(resourceGroups=[group(8, "a", "a")]), 'Duplicate value: "a"'),
    (
        "clusterqueues",
        cluster_queue(preemption={"borrowWithinCohort": {"policy": "LowerPriority"}}),
        "reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never",
    ),
    (
        "clusterqueues",
        cluster_queue(flavorFungibility={"preference": "BorrowingOverPreemption"}),
        "preference can only be set when both whenCanBorrow and whenCanPreempt are TryNextFlavor",
    ),
    (
        "clusterqueues",
        cluster_queue(namespaceSelector={"matchExpressions": [{"key": "a", "operator": "Like"}]}),
        "not a valid selector operator",
    ),
    (
        "clusterqueues",
        cluster_queue(namespaceSelector={"matchExpressions": [{"key": "a", "operator": "In"}]}),
        "must be specified when `operator` is 'In' or 'NotIn'",
    ),
    ("resourceflavors", flavor(nodeLabels={"a b": "c"}), "name part must consist of"),
    ("resourceflavors", flavor(nodeLabels={f"a{i}": "b" for i in range(9)}), "Too many: 9"),
    ("resourceflavors", flavor(nodeTaints=[{"key": "a", "effect": "Never"}]), "supported taint effect values"),
    (
        "resourceflavors",
        flavor(nodeTaints=[{"key": "a", "effect": "NoSchedule"}] * 2),
        "taints must be unique by key and effect pair",
    ),
    ("resourceflavors", flavor(tolerations=[TOLERATION]), "operator must be Exists when 'key' is empty"),
    ("localqueues", local_queue(clusterQueue="A"), "a lowercase RFC 1123 subdomain"),
    ("workloads", new_workload() | {"spec": {"podSets": []}}, "should have at least 1 items"),
    ("workloads", new_workload(*[pod_set()] * 19), "must have at most 18 items"),
]


@pytest.mark.parametrize(("plural", "obj", "why"), WEBHOOK, ids=[row[2] for row in WEBHOOK])
def test_what_kueues_webhooks_refuse_is_refused(plural: str, obj: Object, why: str) -> None:
    found = refusal(plural, obj)
    assert found.code == 422
    assert why in found.message


NOT_COVERED: list[tuple[str, Object, str]] = [
    ("clusterqueues", cluster_queue(cohort="all"), "cohort of ClusterQueues"),
    ("clusterqueues", cluster_queue(fairSharing={"weight": "2"}), "fairSharing of ClusterQueues"),
    ("resourceflavors", flavor(topologyName="gke-default"), "topologyName of ResourceFlavors"),
    ("localqueues", local_queue(fairSharing={"weight": "2"}), "fairSharing of LocalQueues"),
    ("workloads", new_workload(maximumExecutionTimeSeconds=5), "maximumExecutionTimeSeconds of Workloads"),
    ("workloads", new_workload(pod_set() | {"minCount": 1}), "minCount of podSets"),
]


@pytest.mark.parametrize(("plural", "obj", "what"), NOT_COVERED, ids=[row[2] for row in NOT_COVERED])
def test_what_is_not_covered_is_answered_clearly(plural: str, obj: Object, what: str) -> None:
    found = refusal(plural, obj)
    assert found.code == 501
    assert what in found.message


def test_other_kinds_and_versions_of_kueue_are_not_served() -> None:
    for path in (f"{KUEUE}/admissionchecks", f"{KUEUE}/cohorts", "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"):
        with pytest.raises(ApiError) as found:
            World().call("GET", path)
        assert found.value.code == 501


@pytest.mark.parametrize("key", ["prebuilt-workload-name", "max-exec-time-seconds"])
def test_a_jobset_that_asks_for_more_than_a_queue_is_refused(key: str) -> None:
    with pytest.raises(ApiError, match=key) as found:
        World().objects.create("jobsets", queued("train", labels={f"kueue.x-k8s.io/{key}": "x"}))
    assert found.value.code == 501


def test_a_new_jobset_of_a_queue_is_suspended() -> None:
    made = World().objects.create("jobsets", queued("train", suspend=False))
    assert made["spec"]["suspend"] is True


def test_the_queue_of_a_running_jobset_cannot_change() -> None:
    cluster = QueuedCluster()
    cluster.open_queue()
    cluster.submit("train")
    moved = cluster.jobset("train")
    moved["metadata"]["labels"][QUEUE] = "other"
    with pytest.raises(ApiError, match="field is immutable"):
        cluster.objects.update("jobsets", moved)


def test_a_local_queue_stays_with_its_cluster_queue() -> None:
    world = World()
    made = world.objects.create("localqueues", local_queue())
    with pytest.raises(ApiError, match=r"spec.clusterQueue: Invalid value: \"other\": field is immutable"):
        world.objects.update("localqueues", made | {"spec": {"clusterQueue": "other"}})


def test_the_pods_of_a_workload_that_holds_quota_cannot_change() -> None:
    cluster = QueuedCluster()
    cluster.open_queue()
    cluster.submit("train")
    found = cluster.workload("train")
    found["spec"]["podSets"][0]["count"] = 1
    with pytest.raises(ApiError, match="field is immutable"):
        cluster.objects.update("workloads", found)


def test_more_pod_sets_than_a_workload_may_have_are_told_to_the_jobset() -> None:
    cluster = QueuedCluster()
    cluster.open_queue()
    cluster.submit("train", *(replicated_job(f"job-{i}", replicas=1) for i in range(19)))
    told = [one["message"] for one in cluster.objects.list("events") if "podSets" in one["message"]]
    assert len(told) == 1
    assert "must have at most 18 items" in told[0]

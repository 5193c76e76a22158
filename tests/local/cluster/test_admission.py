"""What GKE and JobSet do to pods on admission."""

from typing import Any

import pytest

from infra.local.cluster.objects import ApiError, Object
from tests.local.cluster.world import EXCLUSIVE, POOL, World, job, node, owned_by, pod

LABEL = "jobset.sigs.k8s.io/"


def tpu_pod(index: int, owner: Object, **annotations: str) -> Object:
    """Return a pod of the Job train-slice-0 of a JobSet that requires a node pool for itself."""
    own = {LABEL + "jobset-name": "train", "batch.kubernetes.io/job-completion-index": str(index)}
    labels = {
        LABEL + "jobset-name": "train",
        LABEL + "replicatedjob-name": "slice",
        LABEL + "job-index": "0",
        LABEL + "job-key": "key-of-the-job",
    }
    made = pod(
        f"train-slice-0-{index}-abcde",
        labels=labels,
        annotations=own | {EXCLUSIVE: POOL} | annotations,
        **owned_by(owner),
    )
    made["spec"]["containers"][0]["resources"] = {"limits": {"google.com/tpu": "4"}}
    made["spec"]["nodeSelector"] = {"cloud.google.com/gke-tpu-topology": "4x4"}
    return made


def a_world() -> tuple[World, Object]:
    world = World()
    world.objects.create("nodes", node(**{POOL: "pool-a"}))
    return world, world.objects.create("jobs", job("train-slice-0"))


def bound(world: World, made: Object) -> Object:
    return world.objects.update("pods", made | {"spec": made["spec"] | {"nodeName": "host"}})


def test_a_pod_that_wants_chips_tolerates_their_taint() -> None:
    world, owner = a_world()
    made = world.objects.create("pods", tpu_pod(0, owner))
    toleration = {"key": "google.com/tpu", "operator": "Exists", "effect": "NoSchedule"}
    assert made["spec"]["tolerations"] == [toleration]
    assert made["spec"]["containers"][0]["resources"]["requests"] == {"google.com/tpu": "4"}


def test_a_pod_that_wants_none_tolerates_nothing() -> None:
    assert "tolerations" not in World().objects.create("pods", pod())["spec"]


def test_a_leader_wants_its_domain_for_its_own_job() -> None:
    world, owner = a_world()
    made = world.objects.create("pods", tpu_pod(0, owner))
    affinity = made["spec"]["affinity"]
    (near,) = affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (far,) = affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert made["metadata"]["labels"][LABEL + "priority"] == "0"
    assert (near["topologyKey"], far["topologyKey"]) == (POOL, POOL)
    assert near["labelSelector"]["matchExpressions"] == [
        {"key": LABEL + "job-key", "operator": "In", "values": ["key-of-the-job"]}
    ]
    assert [e["operator"] for e in far["labelSelector"]["matchExpressions"]] == ["Exists", "NotIn", "In"]


def test_a_follower_is_refused_until_its_leader_is_on_a_node() -> None:
    world, owner = a_world()
    missing = f"missing selector: {POOL}"
    with pytest.raises(ApiError, match=missing):
        world.objects.create("pods", tpu_pod(1, owner))
    leader = world.objects.create("pods", tpu_pod(0, owner))
    with pytest.raises(ApiError, match=missing) as refused:
        world.objects.create("pods", tpu_pod(1, owner))
    assert refused.value.code == 403
    bound(world, leader)
    follower = world.objects.create("pods", tpu_pod(1, owner))
    assert follower["spec"]["nodeSelector"] == {"cloud.google.com/gke-tpu-topology": "4x4", POOL: "pool-a"}


def test_a_follower_that_names_the_domain_itself_waits_all_the_same() -> None:
    world, owner = a_world()
    world.objects.create("pods", tpu_pod(0, owner))
    forward = tpu_pod(1, owner)
    forward["spec"]["nodeSelector"][POOL] = "pool-a"
    with pytest.raises(ApiError, match="leader pod not yet scheduled, not creating follower pod"):
        world.objects.create("pods", forward)


def test_a_leader_that_is_going_leads_nobody() -> None:
    world, owner = a_world()
    bound(world, world.objects.create("pods", tpu_pod(0, owner)))
    world.objects.delete("pods", "default", "train-slice-0-0-abcde")
    with pytest.raises(ApiError, match="missing selector"):
        world.objects.create("pods", tpu_pod(1, owner))


def test_a_leader_of_an_earlier_job_leads_nobody() -> None:
    world, owner = a_world()
    bound(world, world.objects.create("pods", tpu_pod(0, owner)))
    other = world.objects.create("jobs", job("another"))
    with pytest.raises(ApiError, match="missing selector"):
        world.objects.create("pods", tpu_pod(1, other))


def test_a_node_outside_every_domain_is_said() -> None:
    world, owner = a_world()
    host = world.objects.get("nodes", None, "host")
    del host["metadata"]["labels"]
    world.objects.update("nodes", host)
    bound(world, world.objects.create("pods", tpu_pod(0, owner)))
    with pytest.raises(ApiError, match=f"node does not have topology label: {POOL}"):
        world.objects.create("pods", tpu_pod(1, owner))


def test_jobset_leaves_pods_placed_by_node_selector_alone() -> None:
    world, owner = a_world()
    strategy = {"alpha.jobset.sigs.k8s.io/node-selector": "true"}
    assert "affinity" not in world.objects.create("pods", tpu_pod(0, owner, **strategy))["spec"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"priorityClassName": "high"}, "no PriorityClass with name high was found"),
        ({"priority": 7}, r"the integer value of priority \(7\) must not be provided"),
    ],
)
def test_priorities_come_from_classes_that_exist(spec: dict[str, Any], message: str) -> None:
    wanted = pod()
    wanted["spec"] |= spec
    with pytest.raises(ApiError, match=message):
        World().objects.create("pods", wanted)


def test_a_job_selects_its_own_pods() -> None:
    made = World().objects.create("jobs", job())
    uid = made["metadata"]["uid"]
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert made["spec"]["template"]["metadata"]["labels"]["job-name"] == "work"


def overcommitted() -> Object:
    wanted = pod()
    wanted["spec"]["containers"][0]["resources"] = {"requests": {"google.com/tpu": "4"}}
    return wanted


def twice() -> Object:
    wanted = pod()
    wanted["spec"]["containers"] *= 2
    return wanted


def nameless() -> Object:
    wanted = pod()
    del wanted["spec"]["containers"][0]["image"]
    return wanted


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (pod("Upper"), "a lowercase RFC 1123 subdomain must consist of"),
        (pod(labels={"a b": "c"}), "name part must consist of alphanumeric characters"),
        (pod(labels={"a": "c" * 64}), "must be no more than 63 characters"),
        (overcommitted(), "Limit must be set for non overcommitable resources"),
        (twice(), r'spec.containers: Duplicate value: "main"'),
        (nameless(), r"spec.containers\[0\].image: Required value"),
    ],
)
def test_a_pod_that_could_not_run_is_refused(wanted: Object, message: str) -> None:
    with pytest.raises(ApiError, match=message):
        World().objects.create("pods", wanted)


def test_a_job_that_restarts_forever_is_refused() -> None:
    wanted = job()
    del wanted["spec"]["template"]["spec"]["restartPolicy"]
    with pytest.raises(ApiError, match=r"spec.template.spec.restartPolicy: Required value: valid values"):
        World().objects.create("jobs", wanted)


def test_a_pod_keeps_its_shape() -> None:
    world = World()
    made = world.objects.create("pods", pod())
    made["spec"]["nodeSelector"] = {"a": "b"}
    with pytest.raises(ApiError, match="pod updates may not change fields other than"):
        world.objects.update("pods", made)

"""Exclusive placement: what JobSet's webhooks make of pods, and which followers its controller sends away."""

from __future__ import annotations

import pytest

from infra.local.clients.objects import Object
from infra.local.clients.owners import controlled_by
from infra.local.jobset.placement import Placement
from tests.local.clients.fake_objects import START, FakeObjects
from tests.local.jobset.asking import Answer, ask
from tests.local.jobset.builders import EXCLUSIVE, INDEX, LABEL, POOL, TOPOLOGY, pod_spec

BY_SELECTOR = {"alpha.jobset.sigs.k8s.io/node-selector": "true"}


def tpu_pod(index: int, owner: Object | None, **annotations: str) -> Object:
    """Return a pod of the Job train-slice-0 of a JobSet that requires a node pool for itself."""
    own = {LABEL + "jobset-name": "train", INDEX: str(index), EXCLUSIVE: POOL}
    labels = {
        LABEL + "jobset-name": "train",
        LABEL + "replicatedjob-name": "slice",
        LABEL + "job-index": "0",
        LABEL + "job-key": "key-of-the-job",
    }
    metadata = {
        "name": f"train-slice-0-{index}-abcde",
        "namespace": "default",
        "labels": labels,
        "annotations": own | annotations,
        "ownerReferences": [controlled_by(owner)] if owner else [],
    }
    return {"metadata": metadata, "spec": pod_spec(priority=0)}


def a_world() -> tuple[FakeObjects, Object]:
    """Return a cluster with a node of pool-a, and a Job."""
    world = FakeObjects()
    world.create("nodes", {"metadata": {"name": "host", "labels": {POOL: "pool-a"}}})
    return world, world.create("jobs", {"metadata": {"name": "train-slice-0"}, "spec": {}})


def admitted(world: FakeObjects, pod: Object) -> Answer:
    """Ask both webhooks, and create the pod if they allow it."""
    completed = ask("/mutate-pod", pod, world)
    if not completed.allowed:
        return completed
    judged = ask("/validate-pod", completed.object, world)
    if judged.allowed:
        world.create("pods", completed.object)
    return judged


def bind(world: FakeObjects, name: str = "train-slice-0-0-abcde") -> None:
    found = world.get("pods", "default", name)
    found["spec"]["nodeName"] = "host"
    world.update("pods", found)


def test_a_leader_wants_its_domain_for_its_own_job() -> None:
    world, owner = a_world()
    made = admitted(world, tpu_pod(0, owner)).object
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
    assert missing in admitted(world, tpu_pod(1, owner)).message
    admitted(world, tpu_pod(0, owner))
    refused = admitted(world, tpu_pod(1, owner))
    assert (refused.code, refused.reason) == (403, "Forbidden")
    assert missing in refused.message
    bind(world)
    follower = admitted(world, tpu_pod(1, owner)).object
    assert follower["spec"]["nodeSelector"] == {TOPOLOGY: "2x4", POOL: "pool-a"}


def test_a_follower_that_names_the_domain_itself_waits_all_the_same() -> None:
    world, owner = a_world()
    admitted(world, tpu_pod(0, owner))
    forward = tpu_pod(1, owner)
    forward["spec"]["nodeSelector"][POOL] = "pool-a"
    assert "leader pod not yet scheduled, not creating follower pod" in admitted(world, forward).message


def test_a_follower_without_any_selector_is_refused() -> None:
    world, owner = a_world()
    bare = tpu_pod(1, owner)
    del bare["spec"]["nodeSelector"]
    assert admitted(world, bare).message == "follower pod node selector not set"


def test_a_leader_that_is_going_leads_nobody() -> None:
    world, owner = a_world()
    admitted(world, tpu_pod(0, owner))
    bind(world)
    world.delete("pods", "default", "train-slice-0-0-abcde")
    assert "missing selector" in admitted(world, tpu_pod(1, owner)).message


@pytest.mark.parametrize("owned", [True, False])
def test_a_leader_of_an_earlier_job_leads_nobody(*, owned: bool) -> None:
    world, owner = a_world()
    admitted(world, tpu_pod(0, owner))
    bind(world)
    other = world.create("jobs", {"metadata": {"name": "another"}, "spec": {}})
    forward = tpu_pod(1, other if owned else None)
    forward["spec"]["nodeSelector"][POOL] = "pool-a"
    why = "!= leader pod owner UID" if owned else "follower pod has no owner reference"
    assert why in admitted(world, forward).message


def test_a_node_outside_every_domain_is_said() -> None:
    world, owner = a_world()
    world.update("nodes", {"metadata": {"name": "host"}})
    admitted(world, tpu_pod(0, owner))
    bind(world)
    assert admitted(world, tpu_pod(1, owner)).message == f"node does not have topology label: {POOL}"


def test_pods_placed_by_node_selector_are_left_alone() -> None:
    world, owner = a_world()
    assert admitted(world, tpu_pod(0, owner, **BY_SELECTOR)).object == tpu_pod(0, owner, **BY_SELECTOR)
    assert admitted(world, tpu_pod(1, owner, **BY_SELECTOR)).allowed


def test_other_pods_are_left_alone() -> None:
    alone = {"metadata": {"name": "alone", "namespace": "default"}, "spec": pod_spec()}
    assert admitted(FakeObjects(), alone).object == alone


def led_to(pool: str, **annotations: str) -> FakeObjects:
    """Return a cluster whose leader is on pool-a, and whose follower selects this pool."""
    world, owner = a_world()
    for index in (0, 1):
        pod = tpu_pod(index, owner, **annotations)
        pod["spec"]["nodeSelector"] = {POOL: pool} if index else {}
        world.create("pods", pod)
    bind(world)
    Placement().reconcile(world, START, None)
    return world


def test_a_follower_of_another_domain_is_deleted_as_a_disruption() -> None:
    before: list[Object] = []
    world, owner = a_world()
    world.refuses = lambda verb, _, obj: before.append(obj) if verb == "update" else None
    for index in (0, 1):
        world.create("pods", tpu_pod(index, owner))
    bind(world)
    Placement().reconcile(world, START, None)
    assert world.names("pods") == ["train-slice-0-0-abcde"]
    (condition,) = before[-1]["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "ExclusivePlacementViolation")


def test_a_follower_of_the_leaders_domain_stays() -> None:
    assert len(led_to("pool-a").names("pods")) == 2
    assert len(led_to("pool-b").names("pods")) == 1
    assert len(led_to("pool-b", **BY_SELECTOR).names("pods")) == 2

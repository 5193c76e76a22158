"""Exclusive placement: what JobSet's webhook makes of pods."""

from __future__ import annotations

import pytest

from tpu_standins.clients.objects import Object
from tpu_standins.clients.owners import controlled_by
from tpu_standins.clients.reviews import Refused
from tpu_standins.jobset.pods import placed
from tpu_standins.testing.jobsets import EXCLUSIVE, INDEX, LABEL, POOL, TOPOLOGY, pod_spec
from tpu_standins.testing.objects import FakeObjects

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
    return {"metadata": metadata, "spec": pod_spec()}


def a_world() -> tuple[FakeObjects, Object]:
    """Return a cluster with a node of pool-a, and a Job."""
    world = FakeObjects()
    world.create("nodes", {"metadata": {"name": "host", "labels": {POOL: "pool-a"}}})
    return world, world.create("jobs", {"metadata": {"name": "train-slice-0"}, "spec": {}})


def admitted(world: FakeObjects, pod: Object) -> Object:
    """Ask the webhook, and create the pod as it is to be. Raise Refused."""
    return world.create("pods", placed(world, {"operation": "CREATE", "namespace": "default", "object": pod}))


def refused(world: FakeObjects, pod: Object) -> bool:
    """Return whether a follower is refused for now."""
    with pytest.raises(Refused, match="an expected, transient error") as refusal:
        admitted(world, pod)
    return (refusal.value.code, refusal.value.reason) == (403, "Forbidden")


def bind(world: FakeObjects, name: str = "train-slice-0-0-abcde") -> None:
    found = world.get("pods", "default", name)
    found["spec"]["nodeName"] = "host"
    world.update("pods", found)


def test_a_leader_wants_its_domain_for_its_own_job() -> None:
    world, owner = a_world()
    affinity = admitted(world, tpu_pod(0, owner))["spec"]["affinity"]
    (near,) = affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (far,) = affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert (near["topologyKey"], far["topologyKey"]) == (POOL, POOL)
    assert near["labelSelector"]["matchExpressions"] == [
        {"key": LABEL + "job-key", "operator": "In", "values": ["key-of-the-job"]}
    ]
    assert [each["operator"] for each in far["labelSelector"]["matchExpressions"]] == ["Exists", "NotIn"]


def test_a_follower_is_refused_until_its_leader_is_on_a_node() -> None:
    world, owner = a_world()
    assert refused(world, tpu_pod(1, owner))
    admitted(world, tpu_pod(0, owner))
    assert refused(world, tpu_pod(1, owner))
    bind(world)
    follower = admitted(world, tpu_pod(1, owner))
    assert follower["spec"]["nodeSelector"] == {TOPOLOGY: "2x4", POOL: "pool-a"}


def test_a_leader_that_is_going_leads_nobody() -> None:
    world, owner = a_world()
    admitted(world, tpu_pod(0, owner))
    bind(world)
    world.delete("pods", "default", "train-slice-0-0-abcde")
    assert refused(world, tpu_pod(1, owner))


@pytest.mark.parametrize("owned", [True, False])
def test_a_leader_of_an_earlier_job_leads_nobody(*, owned: bool) -> None:
    world, owner = a_world()
    admitted(world, tpu_pod(0, owner))
    bind(world)
    other = world.create("jobs", {"metadata": {"name": "another"}, "spec": {}})
    assert refused(world, tpu_pod(1, other if owned else None))


def test_a_leader_on_a_node_outside_every_domain_leads_nobody() -> None:
    world, owner = a_world()
    world.update("nodes", {"metadata": {"name": "host"}})
    admitted(world, tpu_pod(0, owner))
    bind(world)
    assert refused(world, tpu_pod(1, owner))


@pytest.mark.parametrize("index", [0, 1])
def test_pods_placed_by_node_selector_are_left_alone(index: int) -> None:
    world, owner = a_world()
    pod = tpu_pod(index, owner, **BY_SELECTOR)
    assert admitted(world, pod)["spec"] == pod["spec"]


def test_pods_that_want_no_domain_for_themselves_are_left_alone() -> None:
    world, owner = a_world()
    pod = tpu_pod(1, owner)
    del pod["metadata"]["annotations"][EXCLUSIVE]
    assert admitted(world, pod)["spec"] == pod["spec"]

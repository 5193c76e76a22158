"""The validation of bindings, deletions and events."""

from typing import Any

import pytest

from infra.local.cluster.objects import ApiError
from tests.local.cluster.world import JOBSETS, PODS, World, job, jobset, node, pod

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def refusal(world: World, method: str, path: str, body: Any = None, **more: str) -> ApiError:
    with pytest.raises(ApiError) as refused:
        world.call(method, path, body, **more)
    return refused.value


def test_a_deleted_pod_is_returned_and_others_are_acknowledged() -> None:
    world = World()
    world.call("POST", PODS, pod())
    world.call("POST", JOBSETS, jobset())
    assert world.call("DELETE", f"{PODS}/one")["kind"] == "Pod"
    acknowledged = world.call("DELETE", f"{JOBSETS}/train")
    assert (acknowledged["status"], acknowledged["details"]["kind"]) == ("Success", "jobsets")


def test_a_deletion_may_say_of_which_object() -> None:
    world = World()
    world.call("POST", PODS, pod())
    refused = refusal(world, "DELETE", f"{PODS}/one", {"preconditions": {"uid": "another"}})
    assert refused.code == 409
    assert world.call("GET", f"{PODS}/one")


def test_a_collection_is_deleted_by_selector() -> None:
    world = World()
    world.call("POST", PODS, pod("one", labels={"app": "a"}))
    world.call("POST", PODS, pod("two"))
    world.call("DELETE", PODS, labelSelector="app=a")
    assert [item["metadata"]["name"] for item in world.call("GET", PODS)["items"]] == ["two"]


BINDING = {
    "apiVersion": "v1",
    "kind": "Binding",
    "metadata": {"name": "one"},
    "target": {"kind": "Node", "name": "host"},
}


def test_a_pod_is_bound_once() -> None:
    world = World()
    world.call("POST", PODS, pod())
    world.call("POST", f"{PODS}/one/binding", BINDING)
    bound = world.call("GET", f"{PODS}/one")
    assert (bound["spec"]["nodeName"], bound["status"]["conditions"][0]["status"]) == ("host", "True")
    refused = refusal(world, "POST", f"{PODS}/one/binding", BINDING)
    assert 'pod one is already assigned to node "host"' in refused.message


def test_a_pod_is_bound_by_a_binding_only() -> None:
    world = World()
    world.call("POST", PODS, pod())
    patch = {"spec": {"nodeName": "host"}}
    assert refusal(world, "PATCH", f"{PODS}/one", patch, kind=MERGE).code == 422


def test_a_gated_pod_is_not_bound() -> None:
    world = World()
    gated = pod()
    gated["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    world.call("POST", PODS, gated)
    assert "non-empty .spec.schedulingGates" in refusal(world, "POST", f"{PODS}/one/binding", BINDING).message


def event(**fields: Any) -> dict[str, Any]:
    return {"metadata": {"generateName": "e-"}, "involvedObject": {"kind": "Pod", "namespace": "default"}} | fields


def test_events_are_told_of_objects_in_their_namespace() -> None:
    world = World()
    assert world.call("POST", "/api/v1/namespaces/default/events", event())["metadata"]["name"].startswith("e-")
    stray = event(involvedObject={"kind": "Pod", "namespace": "kube-system"})
    assert (
        "does not match event.namespace" in refusal(world, "POST", "/api/v1/namespaces/default/events", stray).message
    )
    modern = event(eventTime="2026-01-01T00:00:00.000000Z")
    refused = refusal(world, "POST", "/api/v1/namespaces/default/events", modern)
    assert [c["field"] for c in refused.details["causes"]] == [
        "reportingController",
        "reportingInstance",
        "action",
        "reason",
    ]


def test_services_other_than_headless_ones_are_not_covered() -> None:
    world = World()
    service: dict[str, Any] = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
    assert refusal(world, "POST", "/api/v1/namespaces/default/services", service).code == 501
    service["spec"] |= {"clusterIP": "None"}
    made = world.call("POST", "/api/v1/namespaces/default/services", service)
    assert made["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]


def test_cluster_scoped_objects_have_no_namespace() -> None:
    world = World()
    host = node()
    host["metadata"]["namespace"] = "default"
    assert "namespace" not in world.call("POST", "/api/v1/nodes", host)["metadata"]


def test_a_suspended_job_may_still_be_placed() -> None:
    world = World()
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    wanted = job()
    wanted["spec"]["suspend"] = True
    world.call("POST", jobs, wanted)
    patch = {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}
    world.call("PATCH", f"{jobs}/work", patch, kind=MERGE)
    world.call("PATCH", f"{jobs}/work", {"spec": {"suspend": False}}, kind=MERGE)
    refused = refusal(
        world, "PATCH", f"{jobs}/work", {"spec": {"template": {"spec": {"nodeSelector": {"c": "d"}}}}}, kind=MERGE
    )
    assert "spec.template: Invalid value" in refused.message

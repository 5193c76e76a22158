"""Kinds that are only stored."""

from typing import Any

import pytest

from infra.local.cluster.errors import ApiError
from infra.local.cluster.plain_kinds import OBJECT_RULES
from infra.local.cluster.resources import RESOURCES
from infra.local.cluster.tables import table
from tests.local.cluster.served import Served
from tests.local.cluster.world import PODS, World, pod

WORKLOADS = ("deployments", "daemonsets")


def workload(**spec: Any) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "main", "image": "python:3.12"}]},
    }
    return {"spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template} | spec}


def storage(**spec: Any) -> dict[str, Any]:
    return {"spec": {"accessModes": ["ReadWriteOnce"]} | spec}


OBJECTS: dict[str, dict[str, Any]] = {
    "persistentvolumeclaims": storage(resources={"requests": {"storage": "1Gi"}}),
    "persistentvolumes": storage(capacity={"storage": "1Gi"}, hostPath={"path": "/tmp"}),
    "configmaps": {"data": {"key": "value"}},
    "deployments": workload(),
    "daemonsets": workload(),
    "leases": {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}},
    "priorityclasses": {"value": 1000},
}


def path(plural: str) -> str:
    resource = RESOURCES[plural]
    root = "/api/v1" if not resource.group else f"/apis/{resource.api_version}"
    return f"{root}/namespaces/default/{plural}" if resource.namespaced else f"{root}/{plural}"


def make(world: World, plural: str, obj: dict[str, Any], name: str = "one") -> dict[str, Any]:
    return world.call("POST", path(plural), {"metadata": {"name": name}} | obj)


def test_there_is_an_example_of_every_kind() -> None:
    assert set(OBJECTS) == set(OBJECT_RULES)


@pytest.mark.parametrize("plural", OBJECTS)
def test_an_object_is_created_shown_updated_and_deleted(plural: str) -> None:
    world = World()
    made = make(world, plural, OBJECTS[plural])
    shown = table(RESOURCES[plural], [made], world.now, "None")
    assert len(shown["rows"][0]["cells"]) == len(shown["columnDefinitions"])
    assert world.call("PUT", f"{path(plural)}/one", made)["metadata"]["uid"] == made["metadata"]["uid"]
    world.call("DELETE", f"{path(plural)}/one")
    assert "one" not in [item["metadata"]["name"] for item in world.call("GET", path(plural))["items"]]


def test_a_claim_and_a_volume_wait_to_be_bound() -> None:
    world = World()
    for plural in ("persistentvolumeclaims", "persistentvolumes"):
        made = make(world, plural, OBJECTS[plural])
        assert (made["status"]["phase"], made["spec"]["volumeMode"]) == ("Pending", "Filesystem")


def test_workloads_have_the_defaults_of_their_kind() -> None:
    world = World()
    deployment = make(world, "deployments", workload())["spec"]
    assert (deployment["replicas"], deployment["strategy"]["rollingUpdate"]["maxSurge"]) == (1, "25%")
    assert deployment["template"]["spec"]["restartPolicy"] == "Always"
    daemons = make(world, "daemonsets", workload())
    assert daemons["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}
    assert daemons["status"]["numberReady"] == 0


@pytest.mark.parametrize(
    ("plural", "obj", "message"),
    [
        ("persistentvolumeclaims", storage(accessModes=[]), "spec.accessModes: Required value: at least 1 access mode"),
        ("persistentvolumeclaims", storage(accessModes=["Any"]), 'Unsupported value: "Any"'),
        ("persistentvolumeclaims", storage(), "spec.resources[storage]: Required value"),
        ("persistentvolumes", storage(), "spec.capacity: Required value"),
        ("configmaps", {"data": {"a b": "x"}}, "a valid config key must consist of alphanumeric characters"),
        ("configmaps", {"data": {"a": "x"}, "binaryData": {"a": "eA=="}}, "duplicate of key present in binaryData"),
        ("configmaps", {"data": {"a": "x" * 2**20 + "x"}}, "Too long: may not be more than 1048576 bytes"),
        ("deployments", workload(selector={"matchLabels": {"app": "b"}}), "`selector` does not match template"),
        ("deployments", workload(replicas=-1), "must be greater than or equal to 0"),
        ("daemonsets", workload(selector={}), "spec.selector: Required value"),
        ("leases", {"spec": {"leaseDurationSeconds": 0}}, "must be greater than 0"),
        ("leases", {"spec": {"leaseTransitions": -1}}, "must be greater than or equal to 0"),
        ("priorityclasses", {"value": 2_000_000_000}, "maximum allowed value of a user defined priority is 1000000000"),
        ("priorityclasses", {"value": 1, "preemptionPolicy": "Ask"}, 'Unsupported value: "Ask"'),
    ],
)
def test_what_is_wrong_is_refused(plural: str, obj: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError) as refused:
        make(World(), plural, obj)
    assert refused.value.code == 422
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("plural", "before", "after"),
    [
        *((plural, workload(), {"spec": {"selector": {"matchLabels": None}}}) for plural in WORKLOADS),
        ("configmaps", {"data": {"a": "1"}, "immutable": True}, {"data": {"a": "2"}}),
        ("priorityclasses", {"value": 1}, {"value": 2}),
        ("persistentvolumeclaims", OBJECTS["persistentvolumeclaims"], {"spec": {"storageClassName": "fast"}}),
    ],
)
def test_what_may_not_change_does_not(plural: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    world = World()
    make(world, plural, before)
    with pytest.raises(ApiError) as refused:
        world.call("PATCH", f"{path(plural)}/one", after, kind="application/merge-patch+json")
    assert refused.value.code == 422


def test_a_claim_is_bound_once() -> None:
    world = World()
    make(world, "persistentvolumeclaims", OBJECTS["persistentvolumeclaims"])
    one, merge = f"{path('persistentvolumeclaims')}/one", "application/merge-patch+json"
    assert world.call("PATCH", one, {"spec": {"volumeName": "v"}}, kind=merge)["spec"]["volumeName"] == "v"
    with pytest.raises(ApiError, match="spec is immutable after creation"):
        world.call("PATCH", one, {"spec": {"volumeName": "w"}}, kind=merge)


class TestPriorities:
    def wanted(self, name: str = "", **spec: Any) -> dict[str, Any]:
        made = pod()
        made["spec"] |= spec | ({"priorityClassName": name} if name else {})
        return made

    def test_a_pod_has_the_priority_of_its_class(self) -> None:
        world = World()
        make(world, "priorityclasses", {"value": 7, "preemptionPolicy": "Never"}, "mine")
        spec = world.call("POST", PODS, self.wanted("mine"))["spec"]
        assert (spec["priority"], spec["preemptionPolicy"]) == (7, "Never")

    def test_a_pod_without_a_class_has_the_default_s(self) -> None:
        world = World()
        assert world.call("POST", PODS, self.wanted())["spec"]["priority"] == 0
        make(world, "priorityclasses", {"value": 7, "globalDefault": True}, "usual")
        world.call("DELETE", f"{PODS}/one")
        spec = world.call("POST", PODS, self.wanted())["spec"]
        assert (spec["priority"], spec["priorityClassName"]) == (7, "usual")

    def test_an_unknown_class_is_refused(self) -> None:
        with pytest.raises(ApiError, match="no PriorityClass with name mine was found"):
            World().call("POST", PODS, self.wanted("mine"))

    def test_there_is_one_default(self) -> None:
        world = World()
        make(world, "priorityclasses", {"value": 7, "globalDefault": True}, "usual")
        with pytest.raises(ApiError, match="PriorityClass usual is already marked as default"):
            make(world, "priorityclasses", {"value": 8, "globalDefault": True}, "other")

    def test_the_system_s_classes_are_there_and_their_names_reserved(self) -> None:
        world = World()
        names = [item["metadata"]["name"] for item in world.call("GET", path("priorityclasses"))["items"]]
        assert names == ["system-cluster-critical", "system-node-critical"]
        with pytest.raises(ApiError, match="are reserved for system use only"):
            make(world, "priorityclasses", {"value": 8}, "system-mine")


@pytest.mark.emulators
@pytest.mark.enable_socket
@pytest.mark.timeout(60)
def test_kubectl_makes_and_shows_them(client: Served) -> None:
    namespace = client.namespace()
    made = client.kubectl("create", "configmap", "settings", "-n", namespace, "--from-literal=a=b")
    assert made.out == "configmap/settings created\n"
    shown = client.kubectl("get", "cm", "settings", "-n", namespace, "-o", "jsonpath={.data}").out
    assert shown == '{"a":"b"}'
    name = f"high-{namespace}"
    client.kubectl("create", "priorityclass", name, "--value=9", "--description=x")
    assert client.kubectl("get", "pc", name, "--no-headers").out.split()[:3] == [name, "9", "false"]
    deployment = workload() | {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    assert client.kubectl("apply", "-n", namespace, "-f-", stdin=deployment).out == "deployment.apps/web created\n"
    assert client.kubectl("get", "deploy", "-n", namespace, "--no-headers").out.split()[:2] == ["web", "0/1"]

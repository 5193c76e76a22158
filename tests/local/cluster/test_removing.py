"""Deletions, evictions and their dry runs: by requests, and by kubectl."""

from typing import Any

import pytest

from infra.local.cluster.errors import ApiError
from tests.local.cluster.served import Served
from tests.local.cluster.world import JOBSETS, PODS, World, job, jobset, node, owned_by, pod

JOBS = "/apis/batch/v1/namespaces/default/jobs"
ONE = f"{PODS}/one"


def evicted(world: World, **options: Any) -> dict[str, Any]:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "one"}, "deleteOptions": options}
    return world.call("POST", f"{ONE}/eviction", eviction)


def names(world: World, path: str) -> list[str]:
    return [item["metadata"]["name"] for item in world.call("GET", path)["items"]]


def refused(world: World, options: Any, path: str = ONE, method: str = "DELETE") -> ApiError:
    with pytest.raises(ApiError) as error:
        world.call(method, path, options)
    return error.value


def test_an_evicted_pod_goes_like_a_deleted_one_and_says_why() -> None:
    world = World()
    world.call("POST", PODS, pod(node="host"))
    assert evicted(world)["status"] == "Success"
    going = world.call("GET", ONE)
    assert going["metadata"]["deletionGracePeriodSeconds"] == 30
    condition = going["status"]["conditions"][0]
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "EvictionByEvictionAPI")
    evicted(world, gracePeriodSeconds=0)
    assert names(world, PODS) == []


def test_an_eviction_is_rehearsed() -> None:
    world = World()
    world.call("POST", PODS, pod(node="host"))
    evicted(world, dryRun=["All"])
    left = world.call("GET", ONE)
    assert "deletionTimestamp" not in left["metadata"]
    assert "conditions" not in left["status"]


@pytest.mark.parametrize(
    ("eviction", "code"),
    [
        ({"metadata": {"name": "two"}}, 400),
        ({"metadata": {"name": "one"}, "apiVersion": "policy/v1beta1"}, 400),
        ({"metadata": {"name": "one"}, "deleteOptions": {"preconditions": {"uid": "another"}}}, 409),
    ],
)
def test_an_eviction_of_another_pod_is_refused(eviction: dict[str, Any], code: int) -> None:
    world = World()
    world.call("POST", PODS, pod())
    assert refused(world, eviction, f"{ONE}/eviction", "POST").code == code


def test_an_eviction_of_no_pod_is_not_found() -> None:
    assert refused(World(), {"metadata": {"name": "one"}}, f"{ONE}/eviction", "POST").code == 404


def test_a_deletion_is_rehearsed() -> None:
    world = World()
    world.call("POST", PODS, pod())
    world.call("POST", JOBSETS, jobset())
    assert world.call("DELETE", ONE, {"dryRun": ["All"]})["kind"] == "Pod"
    assert world.call("DELETE", f"{JOBSETS}/train", dryRun="All")["status"] == "Success"
    world.call("DELETE", PODS, {"dryRun": ["All"]})
    assert (names(world, PODS), names(world, JOBSETS)) == (["one"], ["train"])


def test_a_job_leaves_its_pods_unless_told_otherwise() -> None:
    world = World()
    owner = world.call("POST", JOBS, job())
    world.call("POST", PODS, pod(**owned_by(owner)))
    answer = world.answer("DELETE", f"{JOBS}/work")
    assert "child pods are preserved by default" in answer.warnings[0]
    assert "ownerReferences" not in world.call("GET", ONE)["metadata"]


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({"propagationPolicy": "Background"}, []),
        ({"propagationPolicy": "Foreground"}, []),
        ({"propagationPolicy": "Orphan"}, ["one"]),
        ({"orphanDependents": True}, ["one"]),
        ({"orphanDependents": False}, []),
    ],
)
def test_dependents_go_or_stay_as_the_client_wishes(options: dict[str, Any], left: list[str]) -> None:
    world = World()
    owner = world.call("POST", JOBSETS, jobset())
    world.call("POST", PODS, pod(**owned_by(owner, blocks=True)))
    assert list(world.answer("DELETE", f"{JOBSETS}/train", options).warnings) == []
    assert (names(world, JOBSETS), names(world, PODS)) == ([], left)


def test_an_object_waits_for_its_finalizers() -> None:
    world = World()
    world.call("POST", PODS, pod(finalizers=["example.com/wait"]))
    world.call("DELETE", ONE)
    assert "deletionTimestamp" in world.call("GET", ONE)["metadata"]
    world.call("PATCH", ONE, {"metadata": {"finalizers": None}}, kind="application/merge-patch+json")
    assert names(world, PODS) == []


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ({"orphanDependents": True, "propagationPolicy": "Orphan"}, 422, "cannot be both set"),
        ({"propagationPolicy": "Sometimes"}, 422, 'Unsupported value: "Sometimes"'),
        ({"dryRun": ["Some"]}, 422, 'Unsupported value: "Some"'),
        ({"gracePeriodSeconds": "soon"}, 400, "cannot be handled as a DeleteOptions"),
        ({"dryRun": "All"}, 400, "cannot be handled as a DeleteOptions"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], code: int, message: str) -> None:
    world = World()
    world.call("POST", PODS, pod())
    error = refused(world, options)
    assert error.code == code
    assert message in error.message
    assert names(world, PODS) == ["one"]


@pytest.mark.emulators
@pytest.mark.enable_socket
@pytest.mark.timeout(60)
class TestWithKubectl:
    def host(self, client: Served, namespace: str) -> str:
        """Create a node with a pod on it and return its name."""
        name = f"host-{namespace}"
        client.kubectl("create", "-f-", stdin={"apiVersion": "v1", "kind": "Node"} | node(name))
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "work", "uid": "u", "controller": True}
        placed = {"apiVersion": "v1", "kind": "Pod"} | pod(node=name, namespace=namespace, ownerReferences=[owner])
        assert client.kubectl("create", "-f-", stdin=placed).code == 0
        return name

    def test_a_node_is_drained(self, client: Served) -> None:
        namespace = client.namespace()
        host = self.host(client, namespace)
        rehearsed = client.kubectl("drain", host, "--dry-run=server")
        assert f"evicting pod {namespace}/one (server dry run)" in rehearsed.out
        done = client.kubectl("drain", host, "--grace-period=0", "--timeout=10s")
        assert (done.code, f"node/{host} drained" in done.out) == (0, True), done
        assert client.kubectl("get", "pods", "-n", namespace, "-o", "name").out == ""
        assert client.kubectl("get", "node", host, "--no-headers").out.split()[1] == "Unknown,SchedulingDisabled"
        assert client.kubectl("uncordon", host).out == f"node/{host} uncordoned\n"

    def test_a_pod_of_a_daemon_set_stands_in_the_way(self, client: Served) -> None:
        namespace = client.namespace()
        host = self.host(client, namespace)
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
        daemons = {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "daemons", "namespace": namespace},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
        }
        assert client.kubectl("create", "-f-", stdin=daemons).code == 0
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "daemons", "uid": "u", "controller": True}
        daemon = pod("daemon", node=host, namespace=namespace, ownerReferences=[owner])
        client.kubectl("create", "-f-", stdin={"apiVersion": "v1", "kind": "Pod"} | daemon)
        said = client.kubectl("drain", host, "--dry-run=server")
        assert "cannot delete DaemonSet-managed Pods" in said.error
        assert client.kubectl("drain", host, "--dry-run=server", "--ignore-daemonsets").code == 0

    @pytest.mark.parametrize(("cascade", "left"), [("background", ""), ("foreground", ""), ("orphan", "pod/one\n")])
    def test_dependents_go_or_stay(self, client: Served, cascade: str, left: str) -> None:
        namespace = client.namespace()
        owner = {"apiVersion": "batch/v1", "kind": "Job"} | job(namespace=namespace)
        client.kubectl("create", "-f-", stdin=owner)
        uid = client.kubectl("get", "job", "work", "-n", namespace, "-o", "jsonpath={.metadata.uid}").out
        owned = owned_by(owner | {"metadata": {"name": "work", "uid": uid}}, blocks=True)
        client.kubectl("create", "-f-", stdin={"apiVersion": "v1", "kind": "Pod"} | pod(namespace=namespace, **owned))
        gone = client.kubectl("delete", "job", "work", "-n", namespace, f"--cascade={cascade}", "--timeout=10s")
        assert gone.code == 0
        assert client.kubectl("get", "pods", "-n", namespace, "-o", "name").out == left

    def test_a_deletion_waits_for_a_finalizer_only_if_asked(self, client: Served) -> None:
        namespace = client.namespace()
        held = {"apiVersion": "v1", "kind": "Pod"} | pod(namespace=namespace, finalizers=["example.com/wait"])
        client.kubectl("create", "-f-", stdin=held)
        late = client.kubectl("delete", "pod", "one", "-n", namespace, "--timeout=1s")
        assert (late.code, "timed out waiting for the condition" in late.error) == (1, True)
        assert client.kubectl("delete", "pod", "one", "-n", namespace, "--wait=false").code == 0
        client.kubectl("patch", "pod", "one", "-n", namespace, "--type=json", "-p", FREED)
        assert "NotFound" in client.kubectl("get", "pod", "one", "-n", namespace).error

    def test_a_deletion_is_rehearsed_and_forced(self, client: Served) -> None:
        namespace = client.namespace()
        client.kubectl("create", "-f-", stdin={"apiVersion": "v1", "kind": "Pod"} | pod(node="h", namespace=namespace))
        said = client.kubectl("delete", "pod", "one", "-n", namespace, "--dry-run=server")
        assert 'pod "one" deleted' in said.out
        assert client.kubectl("get", "pod", "one", "-n", namespace).code == 0
        client.kubectl("delete", "pod", "one", "-n", namespace, "--grace-period=0", "--force")
        assert "NotFound" in client.kubectl("get", "pod", "one", "-n", namespace).error


FREED = '[{"op":"remove","path":"/metadata/finalizers"}]'

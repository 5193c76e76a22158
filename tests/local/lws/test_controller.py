"""The LeaderWorkerSet controller on a cluster in memory, whose StatefulSets the test makes pods of."""

from __future__ import annotations

import pytest

from infra.local.clients.objects import Object, copied
from infra.local.clients.owners import controlled_by
from infra.local.lws.controller import LeaderWorkerSets
from infra.local.lws.pods import placed
from tests.local.clients.fake_objects import START, FakeObjects
from tests.local.lws.builders import LABEL, POOL, condition, lws


class World:
    """A cluster with the controller."""

    def __init__(self, stored: Object) -> None:
        self.objects = FakeObjects()
        self.controller = LeaderWorkerSets()
        made = self.objects.create("leaderworkersets", stored)
        self.name: str = made["metadata"]["name"]

    def look(self) -> None:
        """Run the controller, and Kubernetes' own for the pods that StatefulSets lack."""
        self.controller.reconcile(self.objects, START, None)
        for each in self.objects.stored("statefulsets"):
            start = each["spec"].get("ordinals", {}).get("start", 0)
            for ordinal in range(start, start + each["spec"]["replicas"]):
                self._add(each, f"{each['metadata']['name']}-{ordinal}")

    def _add(self, owner: Object, name: str) -> None:
        if name not in self.objects.names("pods"):
            template = copied(owner["spec"]["template"])
            metadata = template["metadata"] | {"name": name, "namespace": "default"}
            metadata["ownerReferences"] = [controlled_by(owner)]
            self.objects.create("pods", placed({"metadata": metadata, "spec": template["spec"]}))

    def run(self) -> None:
        """Have all pods run, and all StatefulSets know it."""
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        for pod in self.objects.stored("pods"):
            self.objects.update("pods", pod | {"status": ready}, status=True)
        for each in self.objects.stored("statefulsets"):
            replicas = each["spec"]["replicas"]
            status = {"replicas": replicas, "availableReplicas": replicas}
            self.objects.update("statefulsets", each | {"status": status}, status=True)

    def bind(self, pod: str, pool: str) -> None:
        self.objects.create("nodes", {"metadata": {"name": f"host-of-{pod}", "labels": {POOL: pool}}})
        bound = self.objects.get("pods", "default", pod)
        self.objects.update("pods", bound | {"spec": bound["spec"] | {"nodeName": f"host-of-{pod}"}})

    def change(self, **spec: object) -> None:
        stored = self.read()
        self.objects.update("leaderworkersets", stored | {"spec": stored["spec"] | spec})

    def read(self) -> Object:
        return self.objects.get("leaderworkersets", "default", self.name)

    def sets(self) -> list[str]:
        return self.objects.names("statefulsets")

    def set_of(self, name: str) -> Object:
        return self.objects.get("statefulsets", "default", name)

    def pods(self) -> list[str]:
        return self.objects.names("pods")

    def reasons(self) -> list[str]:
        return [event["reason"] for event in self.objects.stored("events")]


def test_leaders_come_first_and_each_gets_its_workers() -> None:
    world = World(lws(groups=2, size=3))
    world.look()
    assert world.sets() == ["serve"]
    world.look()
    assert world.sets() == ["serve", "serve-0", "serve-1"]
    assert world.pods() == ["serve-0", "serve-0-1", "serve-0-2", "serve-1", "serve-1-1", "serve-1-2"]
    assert world.set_of("serve")["metadata"]["ownerReferences"][0]["kind"] == "LeaderWorkerSet"
    owner = world.set_of("serve-1")["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Pod", "serve-1", True)
    assert world.objects.get("services", "default", "serve")["spec"]["clusterIP"] == "None"


def test_a_group_of_one_has_no_workers() -> None:
    world = World(lws(groups=1, size=1))
    world.look()
    world.look()
    assert world.sets() == ["serve"]
    world.run()
    world.look()
    assert world.read()["status"]["readyReplicas"] == 1


def test_workers_wait_for_a_ready_leader_where_that_is_asked_for() -> None:
    world = World(lws(groups=1, spec={"startupPolicy": "LeaderReady"}))
    world.look()
    world.look()
    assert world.sets() == ["serve"]
    world.run()
    world.look()
    assert world.sets() == ["serve", "serve-0"]


def test_workers_of_exclusive_groups_follow_their_leader_into_its_domain() -> None:
    world = World(lws(groups=2, exclusive=True))
    world.look()
    world.look()
    assert world.sets() == ["serve"]
    world.bind("serve-1", "pool-b")
    world.look()
    assert world.sets() == ["serve", "serve-1"]
    assert world.set_of("serve-1")["spec"]["template"]["spec"]["nodeSelector"] == {POOL: "pool-b"}


def test_a_leader_in_no_domain_is_told() -> None:
    world = World(lws(groups=1, exclusive=True))
    world.look()
    world.bind("serve-0", "pool-a")
    world.objects.patch("nodes", None, "host-of-serve-0", {"metadata": {"labels": {}}})
    world.look()
    assert "NotUnderstoodByLeaderworkerset" in world.reasons()


def test_more_and_fewer_groups_are_those_of_the_leaders_set() -> None:
    world = World(lws(groups=2))
    world.look()
    for groups in (3, 1):
        world.change(replicas=groups)
        world.look()
        assert world.set_of("serve")["spec"]["replicas"] == groups
        assert world.set_of("serve")["metadata"]["annotations"][f"{LABEL}replicas"] == str(groups)


def test_nothing_is_written_where_nothing_changes() -> None:
    world = World(lws())
    for _ in range(3):
        world.look()
    version = world.objects.version
    world.look()
    assert world.objects.version == version


def test_a_deleted_worker_ends_its_group() -> None:
    world = World(lws(groups=2, size=3))
    world.look()
    world.look()
    world.run()
    worker = world.objects.get("pods", "default", "serve-0-2")
    going = worker["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    world.objects.update("pods", worker | {"metadata": going})
    world.controller.reconcile(world.objects, START, None)
    assert "serve-0" not in world.pods()
    assert "serve-1" in world.pods()
    assert world.reasons().count("RecreateGroup") == 1


def test_a_worker_that_was_replaced_unseen_ends_its_group() -> None:
    world = World(lws(groups=1))
    for _ in range(3):
        world.look()
    world.objects.delete("pods", "default", "serve-0-1")
    world._add(world.set_of("serve-0"), "serve-0-1")
    world.controller.reconcile(world.objects, START, None)
    assert "serve-0" not in world.pods()


@pytest.mark.parametrize(("policy", "left"), [("None", True), ("RecreateGroupOnPodRestart", False)])
def test_a_failed_worker_ends_its_group_by_the_policy(policy: str, left: bool) -> None:
    world = World(lws(groups=1, template={"restartPolicy": policy}))
    world.look()
    world.look()
    worker = world.objects.get("pods", "default", "serve-0-1")
    world.objects.update("pods", worker | {"status": {"phase": "Failed"}}, status=True)
    world.controller.reconcile(world.objects, START, None)
    assert ("serve-0" in world.pods()) is left


def test_after_start_only_a_group_that_has_started_ends_as_a_whole() -> None:
    world = World(lws(groups=1, template={"restartPolicy": "RecreateGroupAfterStart"}))
    world.look()
    world.look()
    restarted = {"phase": "Running", "containerStatuses": [{"restartCount": 1}]}
    worker = world.objects.get("pods", "default", "serve-0-1")
    world.objects.update("pods", worker | {"status": restarted}, status=True)
    leader = world.objects.get("pods", "default", "serve-0")
    world.objects.update("pods", leader | {"status": {"phase": "Pending"}}, status=True)
    world.controller.reconcile(world.objects, START, None)
    assert "serve-0" in world.pods()
    world.objects.update(
        "pods", world.objects.get("pods", "default", "serve-0") | {"status": {"phase": "Running"}}, status=True
    )
    world.controller.reconcile(world.objects, START, None)
    assert "serve-0" not in world.pods()


def test_its_status_says_when_all_groups_are_ready() -> None:
    world = World(lws(groups=2))
    world.look()
    world.look()
    assert condition(world.read(), "Progressing")["status"] == "True"
    world.run()
    world.look()
    status = world.read()["status"]
    assert (status["replicas"], status["readyReplicas"], status["updatedReplicas"]) == (2, 2, 2)
    assert condition(world.read(), "Available")["status"] == "True"
    assert condition(world.read(), "Progressing")["status"] == "False"


def test_another_template_goes_to_the_last_group_first() -> None:
    world = World(lws(groups=3))
    world.look()
    world.look()
    world.run()
    world.look()
    template = copied(world.read()["spec"]["leaderWorkerTemplate"])
    template["workerTemplate"]["spec"]["containers"][0]["image"] = "server:2"
    world.change(leaderWorkerTemplate=template)
    world.look()
    assert world.set_of("serve")["spec"]["updateStrategy"]["rollingUpdate"] == {"partition": 2}
    assert condition(world.read(), "UpdateInProgress")["status"] == "True"


def test_a_set_of_an_earlier_one_of_its_name_is_left_to_go() -> None:
    world = World(lws(groups=1))
    world.look()
    of_another = world.set_of("serve")
    of_another["metadata"]["ownerReferences"][0]["uid"] = "uid-of-an-earlier"
    world.objects.update("statefulsets", of_another)
    world.change(replicas=5)
    world.look()
    assert world.set_of("serve")["spec"]["replicas"] == 1


def test_one_that_is_deleted_is_left_alone() -> None:
    stored = lws()
    stored["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    world = World(stored)
    world.look()
    assert world.sets() == []

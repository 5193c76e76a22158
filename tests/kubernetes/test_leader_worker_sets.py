"""LeaderWorkerSet's own controller and our kubelets beside Kubernetes' own API server, controllers and scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from relay import translate
from relay.objects import WorkloadName
from tests.kubernetes.cluster import Cluster, with_controller
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.wire.readers import READERS
from tpu_standins.clients.api import Api
from tpu_standins.clients.objects import Object
from tpu_standins.controllers.catalogue import LWS
from tpu_standins.testing.parts import POOL, items, program, waited
from tpu_standins.testing.places import TEST, Place, namespace_for

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]
API = "leaderworkerset.x-k8s.io/v1"
LABEL = "leaderworkerset.sigs.k8s.io/"
EXCLUSIVE = f"{LABEL}exclusive-topology"
TOPOLOGY = "cloud.google.com/gke-tpu-topology"
HOSTS = {"cloud.google.com/gke-tpu-accelerator": "tpu-v4-podslice", TOPOLOGY: "2x2x2"}


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Iterator[Api]:
    processes, kubeconfig = cluster.processes, cluster.plane.kubeconfig
    with with_controller(cluster, LWS), closing(Api.of(kubeconfig)) as connected:
        processes.wait_until_ready(*processes.start(program("kubelet", kubeconfig)))
        yield connected
        for each in connected.list("leaderworkersets")["items"]:
            connected.delete("leaderworkersets", each["metadata"]["namespace"], each["metadata"]["name"])
        waited(lambda: not connected.list("leaderworkersets")["items"], "the end of all LeaderWorkerSets")
        processes.end(cluster.child("kubelet"))


class Groups(Place):
    """A place for a LeaderWorkerSet."""

    host_labels = HOSTS

    def create(self, groups: int = 2, network: Object | None = None, **template: object) -> Object:
        """Create a LeaderWorkerSet whose groups of two each want a pool of this place for themselves."""
        resources = {"limits": {"google.com/tpu": "4"}}
        containers = [{"name": "main", "image": "server:1", "resources": resources}]
        pod = {"containers": containers, "nodeSelector": {TEST: self.name} | HOSTS}
        worker: Object = {"metadata": {}, "spec": pod}
        metadata = {"name": "serve", "namespace": self.name, "annotations": {EXCLUSIVE: POOL}}
        groups_of_two = {"size": 2, "workerTemplate": worker} | template
        body = {"replicas": groups, "leaderWorkerTemplate": groups_of_two} | (
            {"networkConfig": network} if network else {}
        )
        return self.api.create("leaderworkersets", {"metadata": metadata, "spec": body})

    def read(self) -> Object:
        return self.api.get("leaderworkersets", self.name, "serve")

    def change(self, change: Object) -> None:
        self.api.patch("leaderworkersets", self.name, "serve", change)

    def pods(self) -> dict[str, Object]:
        return {pod["metadata"]["name"]: pod for pod in items(self.api, "pods", self.name)}

    def wait_until_ready(self, groups: int) -> None:
        def are_ready() -> bool:
            status = self.read().get("status", {})
            return status.get("readyReplicas") == groups and condition(self.read(), "Available").get("status") == "True"

        waited(are_ready, f"{groups} ready groups")

    def pools(self, group: int) -> set[str]:
        """Return the pools in which the pods of a group are."""
        return self.pools_with(f"{LABEL}group-index", str(group))


@pytest.fixture
def place(api: Api, request: pytest.FixtureRequest) -> Groups:
    """A place of the test's own, with the account that pods need."""
    return Groups(api, namespace_for(api, request.node.name))


def test_each_group_has_a_pool_for_itself_until_it_is_scaled_away(place: Groups) -> None:
    place.add_pools("a", "b", "c")
    place.create(groups=2)
    place.wait_until_ready(2)
    assert sorted(place.pods()) == ["serve-0", "serve-0-1", "serve-1", "serve-1-1"]
    pools = [place.pools(group) for group in (0, 1)]
    assert [len(each) for each in pools] == [1, 1]
    assert pools[0] != pools[1]
    path = f"/apis/{API}/namespaces/{place.name}/leaderworkersets/serve/scale"
    place.api.call("PATCH", path, {"spec": {"replicas": 1}}, media_type="application/merge-patch+json")
    waited(lambda: sorted(place.pods()) == ["serve-0", "serve-0-1"], "the end of the second group")
    place.wait_until_ready(1)


def test_a_group_whose_worker_is_deleted_is_made_anew_and_the_other_stays(place: Groups) -> None:
    place.add_pools("a", "b")
    place.create(groups=2)
    place.wait_until_ready(2)
    before = {name: pod["metadata"]["uid"] for name, pod in place.pods().items()}
    place.api.delete("pods", place.name, "serve-0-1")

    def changed() -> set[str]:
        return {name for name, pod in place.pods().items() if pod["metadata"]["uid"] != before[name]}

    waited(lambda: changed() == {"serve-0", "serve-0-1"}, "a new leader and a new worker")
    place.wait_until_ready(2)
    assert changed() == {"serve-0", "serve-0-1"}
    assert "RecreateGroupOnPodRestart" in [each["reason"] for each in items(place.api, "events", place.name)]


def test_another_template_replaces_every_group(place: Groups) -> None:
    place.add_pools("a", "b")
    place.create(groups=2)
    place.wait_until_ready(2)
    template = place.read()["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    template["metadata"]["labels"] = {"version": "two"}
    place.change({"spec": {"leaderWorkerTemplate": {"workerTemplate": template}}})

    def updated() -> bool:
        return [pod["metadata"]["labels"].get("version") for pod in place.pods().values()] == ["two"] * 4

    waited(updated, "new pods")
    place.wait_until_ready(2)
    assert condition(place.read(), "UpdateInProgress")["status"] == "False"


def test_a_group_behind_a_partition_is_made_anew_of_the_revision_that_it_is_of(place: Groups) -> None:
    """By this, `demand` serves a group again that its set's rollout has not come to."""
    place.add_pools("a", "b")
    place.create(groups=2)
    place.wait_until_ready(2)
    place.change({"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 2}}}})
    template = place.read()["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    template["spec"]["nodeSelector"] |= {TOPOLOGY: "2x2x4"}
    place.change({"spec": {"leaderWorkerTemplate": {"workerTemplate": template}}})
    before = place.pods()["serve-0"]["metadata"]["uid"]
    place.api.delete("pods", place.name, "serve-0")

    def made_anew() -> bool:
        leader = place.pods().get("serve-0")
        return leader is not None and leader["metadata"]["uid"] != before

    waited(made_anew, "a new leader")
    place.wait_until_ready(2)
    assert {pod["spec"]["nodeSelector"][TOPOLOGY] for pod in place.pods().values()} == {"2x2x2"}
    seen = translate.workload(READERS[OwnerKind.LEADER_WORKER_SET], place.read())
    assert seen is not None
    assert [request.topology for request in seen.requests] == ["2x2x4"]


def test_it_takes_all_that_it_owns_with_it(place: Groups) -> None:
    place.add_pools("a")
    place.create(groups=1)
    place.wait_until_ready(1)
    place.api.delete("leaderworkersets", place.name, "serve")
    owned = ("pods", "statefulsets", "services")
    waited(lambda: not any(items(place.api, plural, place.name) for plural in owned), "the end of all")


def test_the_relay_understands_what_is_made(place: Groups) -> None:
    made = place.create(groups=2)
    waited(lambda: len(place.pods()) == 2, "the leaders, whose workers wait for their domain")
    waited(lambda: all(leader["waiting"] for leader in leaders(place)), "leaders that cannot be scheduled")
    owner = WorkloadName(place.name, "serve", OwnerKind.LEADER_WORKER_SET)
    assert [(each["job"], each["workload"], each["index"]) for each in leaders(place)] == [
        ("serve-0", owner, 0),
        ("serve-1", owner, 1),
    ]
    seen = translate.workload(READERS[OwnerKind.LEADER_WORKER_SET], place.read())
    assert seen is not None
    assert (seen.ref.owner.uid, seen.ref.groups, seen.parse_error) == (made["metadata"]["uid"], 2, None)


def test_subgroups_are_made_and_none_of_them_is_our_slice(place: Groups) -> None:
    made = place.create(groups=1, size=5, subGroupPolicy={"subGroupSize": 2})
    assert made["spec"]["leaderWorkerTemplate"]["subGroupPolicy"]["subGroupPolicyType"] == "LeaderWorker"
    waited(lambda: "serve-0" in place.pods(), "the leader")
    assert place.pods()["serve-0"]["metadata"]["labels"][f"{LABEL}subgroup-index"] == "0"
    seen = translate.workload(READERS[OwnerKind.LEADER_WORKER_SET], place.read())
    assert seen is not None
    assert not seen.asks


def condition(group: Object, type_: str) -> Object:
    """Return a condition of a LeaderWorkerSet; empty if it has none of that type."""
    conditions = group.get("status", {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == type_), {})


def leaders(place: Groups) -> list[Object]:
    """Return what the relay reads of the pods."""
    read = [translate.group_leader(pod) for _, pod in sorted(place.pods().items())]
    return [
        {"job": each.job, "workload": each.workload, "index": each.asks.job_index, "waiting": each.waiting}
        for each in read
        if each is not None
    ]

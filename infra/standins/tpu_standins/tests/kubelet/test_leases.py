"""The Leases of nodes are renewed in time, each at its own, and not for nodes that are silent."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tpu_standins.clients.errors import ApiError
from tpu_standins.clients.objects import Object
from tpu_standins.kubelet.leases import Leases
from tpu_standins.kubelet.pace import Pace
from tpu_standins.testing.objects import START, FakeObjects


class World:
    def __init__(self, nodes: int = 1) -> None:
        self.objects = FakeObjects()
        self.leases = Leases()
        for number in range(nodes):
            self.add(f"host-{number}")

    def add(self, name: str, ready: str = "True") -> None:
        status = {"conditions": [{"type": "Ready", "status": ready}]}
        self.objects.create("nodes", {"metadata": {"name": name}, "status": status})

    def look(self, seconds: float = 0) -> datetime | None:
        return self.leases.reconcile(self.objects, START + timedelta(seconds=seconds), Pace())

    def renewed(self) -> dict[str, str]:
        return {lease["metadata"]["name"]: lease["spec"]["renewTime"] for lease in self.objects.stored("leases")}


def seconds_of(wake: datetime | None) -> float:
    assert wake
    return (wake - START).total_seconds()


def test_a_new_node_gets_its_lease_at_once() -> None:
    world = World()
    world.look()
    lease = world.objects.get("leases", "kube-node-lease", "host-0")
    assert lease["spec"] == {
        "holderIdentity": "host-0",
        "leaseDurationSeconds": 40,
        "renewTime": "2026-01-01T00:00:00.000000Z",
    }
    (owner,) = lease["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Node", "host-0")


def test_a_lease_is_renewed_every_ten_seconds_after_a_first_share_of_them() -> None:
    world = World()
    first = seconds_of(world.look())
    assert 5 <= first <= 10
    assert seconds_of(world.look(first)) == pytest.approx(first + 10)
    assert world.look(first + 5) is not None
    assert world.renewed() == {"host-0": f"2026-01-01T00:00:{first:09.6f}Z"}


def test_the_renewals_of_many_nodes_are_spread() -> None:
    world = World(nodes=50)
    world.look()
    before = world.renewed()
    world.look(7.5)
    later = [name for name, time in world.renewed().items() if time != before[name]]
    assert 5 < len(later) < 45


def test_the_lease_of_a_silent_node_is_not_renewed() -> None:
    world = World(nodes=0)
    world.add("silent", ready="Unknown")
    world.add("broken", ready="False")
    world.look()
    assert set(world.renewed()) == {"broken"}


def test_a_node_that_is_gone_is_forgotten_and_one_of_its_name_begins_anew() -> None:
    world = World()
    world.look()
    world.objects.delete("nodes", None, "host-0")
    assert world.look(1) is None
    world.add("host-0")
    world.look(2)
    assert world.renewed() == {"host-0": "2026-01-01T00:00:02.000000Z"}


def test_a_server_without_leases_does_without() -> None:
    world = World()
    asked: list[str] = []

    def refuses(verb: str, _: str, __: Object) -> ApiError:
        asked.append(verb)
        return ApiError(501, "NotImplemented", "leases")

    world.objects.refuses = refuses
    assert [world.look(), world.look(60)] == [None, None]
    assert asked == ["patch"]


def test_a_namespace_that_is_not_there_yet_is_tried_again() -> None:
    world = World()
    world.objects.refuses = lambda *_: ApiError(404, "NotFound", 'namespaces "kube-node-lease" not found')
    with pytest.raises(ApiError, match="kube-node-lease"):
        world.look()
    world.objects.refuses = lambda *_: None
    world.look(1)
    assert set(world.renewed()) == {"host-0"}

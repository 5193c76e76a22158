"""What runs on VMs: Nodes that join, and what becomes of them."""

from typing import Any

import pytest

from tpu_standins.cloud.hosts import Manifest
from tpu_standins.cloud.nodes import LOOK_SECONDS
from tpu_standins.compute.vms import JoinedHosts, RunningVm
from tpu_standins.testing.compute import HERE, PACE, PROJECT, World, alone
from tpu_standins.testing.gke import UnreliableNodes

LABELS = "cloud.google.com/gke-nodepool=slice,cloud.google.com/gke-tpu-topology=2x2x1,bare"


class Site:
    """A world whose VMs join a cluster: it has one host that runs."""

    def __init__(self, *metadata: dict[str, str], **group: Any) -> None:
        self.nodes = UnreliableNodes()
        self.world = World(boot=JoinedHosts(self.nodes, PACE))
        items = metadata or ({"key": "kube-labels", "value": LABELS},)
        self.world.make_slice(alone(**group), metadata={"items": list(items)})
        self.world.after(11)

    @property
    def node(self) -> Manifest:
        (found,) = self.nodes.nodes.values()
        return found

    def ready(self) -> str:
        return str(self.node["status"]["conditions"][0]["status"])

    def chips(self) -> str:
        return str(self.node["status"]["allocatable"]["google.com/tpu"])


@pytest.fixture
def site() -> Site:
    return Site()


def test_a_host_joins_becomes_ready_and_offers_its_chips(site: Site) -> None:
    assert not site.nodes.nodes
    seen = []
    for seconds in (1, 1, 0.5):
        site.world.after(seconds)
        seen.append((site.ready(), site.chips()))
    assert seen == [("False", "0"), ("True", "0"), ("True", "4")]


def test_a_node_is_its_vms(site: Site) -> None:
    site.world.after(2.5)
    name = site.world.members()[0].name
    assert site.node["metadata"]["name"] == name
    assert site.node["spec"]["providerID"] == f"gce://{PROJECT}/us-central1-c/{name}"
    assert site.node["status"]["capacity"]["cpu"] == "224"


def test_a_node_has_the_labels_of_the_metadata_and_its_kubelets(site: Site) -> None:
    site.world.after(2.5)
    assert site.node["metadata"]["labels"] == {
        "cloud.google.com/gke-nodepool": "slice",
        "cloud.google.com/gke-tpu-topology": "2x2x1",
        "bare": "",
        "kubernetes.io/hostname": site.world.members()[0].name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "tpu-slices.local/host": "true",
    }


def test_a_node_has_the_taint_of_tpus_or_those_of_its_metadata(site: Site) -> None:
    site.world.after(2.5)
    assert site.node["spec"]["taints"] == [{"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}]
    other = Site({"key": "kube-taints", "value": "team=a:NoSchedule,own:NoExecute,:,x"})
    other.world.after(2.5)
    assert other.node["spec"]["taints"] == [
        {"key": "team", "value": "a", "effect": "NoSchedule"},
        {"key": "own", "effect": "NoExecute"},
    ]


def test_the_node_of_a_vm_that_is_gone_stays_and_is_unknown(site: Site) -> None:
    site.world.after(2.5)
    site.world.groups.delete_unary(instance_group_manager="slice", **HERE)
    site.world.after(3)
    assert site.ready() == "True"
    site.world.after(1)
    assert site.ready() == "Unknown"
    site.world.after(60)
    assert "remove" not in " ".join(site.nodes.said)


def test_a_deleted_node_of_a_vm_that_is_gone_does_not_come_back(site: Site) -> None:
    site.world.after(2.5)
    site.world.groups.delete_unary(instance_group_manager="slice", **HERE)
    site.world.after(5)
    site.nodes.nodes.clear()
    site.world.after(60)
    assert not site.nodes.nodes


def test_the_node_of_a_vm_that_fails_is_unknown_until_it_runs_again(site: Site) -> None:
    site.world.after(2.5)
    site.world.press("POST", "/instances/kill", group="slice")
    site.world.after(LOOK_SECONDS)
    assert site.ready() == "Unknown"
    site.world.after(6 + 5 + 2.5)
    assert (site.ready(), site.chips()) == ("True", "4")


def test_the_node_of_a_recreated_vm_is_registered_anew_under_its_name(site: Site) -> None:
    site.world.after(2.5)
    before = site.node["metadata"]["name"]
    site.world.groups.recreate_instances_unary(
        instance_group_manager="slice",
        instance_group_managers_recreate_instances_request_resource={"instances": [site.world.members()[0].instance]},
        **HERE,
    )
    site.world.after(4 + 10 + 2.5)
    assert (site.node["metadata"]["name"], site.ready()) == (before, "True")
    assert site.nodes.said.count(f"register {before}") == 2


def test_a_silent_kubelet_is_unknown_until_it_is_healed(site: Site) -> None:
    site.world.after(2.5)
    site.world.press("POST", "/instances/silence", group="slice")
    site.world.after(0)
    assert site.ready() == "Unknown"
    site.world.press("POST", "/instances/heal", group="slice")
    site.world.after(0)
    assert site.ready() == "True"


def test_an_api_server_that_is_away_is_told_later(site: Site) -> None:
    site.nodes.down = True
    site.world.after(2.5)
    assert not site.nodes.nodes
    site.nodes.down = False
    site.world.after(1)
    assert site.chips() == "4"


class Recorder:
    """A Boot that keeps what it was told."""

    def __init__(self, seen: list[Any]) -> None:
        self._seen = seen

    def follow(self, running: Any, _now: float) -> bool:
        self._seen.append({str(path): vm for path, vm in running.items()})
        return True

    def close(self) -> None:
        """Do nothing."""


def test_what_boots_is_told_of_vms_that_run_and_of_no_others() -> None:
    seen: list[dict[str, RunningVm]] = []
    world = World(boot=Recorder(seen))
    world.make_slice()
    world.after(10)
    assert not seen[-1]
    world.after(1)
    assert len(seen[-1]) == 2
    assert all(vm.provider_id == f"gce://{PROJECT}/us-central1-c/{vm.path.name}" for vm in seen[-1].values())
    world.groups.delete_unary(instance_group_manager="slice", **HERE)
    world.after(1)
    assert [vm.stopping for vm in seen[-1].values()] == [True, True]
    world.after(4)
    assert not seen[-1]

"""VMs of the local Compute Engine that boot with the real startup script, and join by a stand-in for kubeadm."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from google.cloud import compute_v1 as gce

from tests.infra.compute.conftest import HASH, LABELS, SCRIPT, TOKEN, VERSION
from tests.infra.compute.observed import Observed
from tpu_standins.cloud.hosts import Manifest
from tpu_standins.compute.booting.scripts import Scripts, Site
from tpu_standins.compute.metadata.server import MetadataServer
from tpu_standins.compute.paths import Resource
from tpu_standins.compute.state import Pace
from tpu_standins.compute.vms import ByMetadata, JoinedHosts
from tpu_standins.testing.compute import HERE, World, a_state, a_template, alone
from tpu_standins.testing.gke import UnreliableNodes
from tpu_standins.testing.waiting import until

pytestmark = [
    pytest.mark.real,
    pytest.mark.emulators,
    pytest.mark.enable_socket,
    pytest.mark.usefixtures("namespaces"),
]

PACE = Pace(insert=0.05, remove=0.05, metadata=0.05, create=0.1, delete=0.1, join=0.2, ready=0.1, chips=0.1)
STATE = "tpu-slice-provisioner/state"
ERROR = "tpu-slice-provisioner/error"
METADATA = {
    "startup-script": SCRIPT.read_text(),
    "enable-guest-attributes": "TRUE",
    "kubernetes-version": VERSION,
    "kubeadm-control-plane": "10.0.0.2:6443",
    "kube-labels": LABELS,
    "kube-taints": "google.com/tpu=present:NoSchedule",
}


@dataclass
class ApiServer:
    """An API server whose tokens a test knows."""

    good: set[str] = field(default_factory=lambda: {TOKEN})
    hashes: tuple[str, ...] = (HASH,)

    def takes(self, token: str) -> bool:
        return token in self.good

    def ca_hashes(self) -> tuple[str, ...]:
        return self.hashes


class Zone:
    """A Compute Engine in real time, with the Nodes that its hosts register."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.nodes = UnreliableNodes()
        self.server = ApiServer()
        self.world = World(state=a_state(pace=PACE), clock=time.time)  # type: ignore[arg-type] # noqa: TID251
        plane = self.world.plane
        self.metadata = MetadataServer(plane)
        site = Site(
            script=METADATA["startup-script"],
            folder=folder,
            plane=plane,
            metadata=self.metadata,
            server=self.server,
        )
        self.boot = JoinedHosts(self.nodes, PACE, Scripts(site, ByMetadata(PACE)))
        plane.boots(self.boot)
        plane.start()

    def close(self) -> None:
        self.world.plane.stop()
        self.boot.close()
        self.metadata.stop()

    def host(self, **metadata: str) -> str:
        """Make a group of one VM, with changed metadata; return its name once it runs."""
        items = [{"key": key, "value": value} for key, value in {**METADATA, **metadata}.items()]
        self.world.make_template(a_template(metadata={"items": items}))
        until(lambda: bool(self.world.templates.list(project=HERE["project"]).items), "the template")
        self.world.make_group(alone())
        until(lambda: any(status == "RUNNING" for _, status in self.members()), "a VM to run")
        return str(self.world.members()[0].name)

    def members(self) -> list[tuple[str, str]]:
        with suppress(Exception):
            return self.world.statuses()
        return []

    def give(self, name: str, token: str = TOKEN, ca_hash: str = HASH) -> None:
        """Write a token into the metadata of a VM, as reconcile does."""
        instance = self.world.instance(name)
        wanted = {"kubeadm-join-token": token, "kubeadm-ca-hash": ca_hash}
        kept = [item for item in instance.metadata.items if item.key not in wanted]
        items = [*kept, *(gce.Items(key=key, value=value) for key, value in wanted.items())]
        body = gce.Metadata(fingerprint=instance.metadata.fingerprint, items=items)
        self.world.instances.set_metadata_unary(instance=name, metadata_resource=body, **HERE)

    def told(self, name: str) -> dict[str, str]:
        """Return the guest attributes of a VM."""
        state, _ = self.world.plane.look()
        vm = state.instances[Resource(HERE["project"], f"zones/{HERE['zone']}", "instances", name)].vm
        return {f"{space}/{key}": value for (space, key), value in vm.attributes.items()} if vm else {}

    def await_told(self, name: str, key: str, beginning: str) -> str:
        until(lambda: self.told(name).get(key, "").startswith(beginning), f"{key} {beginning}")
        return self.told(name)[key]

    def await_node(self, holds: Callable[[Manifest], bool] = lambda _: True) -> Manifest:
        until(lambda: any(map(holds, list(self.nodes.nodes.values()))), "a Node")
        return next(filter(holds, list(self.nodes.nodes.values())))

    @property
    def disks(self) -> list[Observed]:
        return [Observed(path) for path in sorted(self.folder.iterdir())]


def is_ready(node: Manifest) -> bool:
    status = node["status"]
    return bool(status["conditions"][0]["status"] == "True" and status["allocatable"]["google.com/tpu"] == "4")


@pytest.fixture
def zone(tmp_path: Path) -> Iterator[Zone]:
    one = Zone(tmp_path)
    yield one
    one.close()


def test_a_host_joins_with_the_token_of_its_metadata_and_registers_as_kubeadm_was_told(zone: Zone) -> None:
    name = zone.host()
    zone.await_told(name, STATE, "waiting-for-token")
    assert not zone.nodes.nodes
    zone.give(name)
    node = zone.await_node(is_ready)
    assert node["metadata"]["name"] == name
    assert node["spec"]["providerID"] == f"gce://{HERE['project']}/{HERE['zone']}/{name}"
    assert {pair.partition("=")[0] for pair in LABELS.split(",")} <= node["metadata"]["labels"].keys()
    assert node["spec"]["taints"] == [{"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}]
    zone.await_told(name, STATE, "joined")
    [disk] = zone.disks
    [join] = disk.joins
    assert yaml.safe_load(join)["discovery"]["bootstrapToken"] == {
        "apiServerEndpoint": "10.0.0.2:6443",
        "token": TOKEN,
        "caCertHashes": [HASH],
    }


def test_a_token_that_has_expired_is_told_and_another_one_is_tried(zone: Zone) -> None:
    zone.server.good = set()
    name = zone.host()
    zone.give(name)
    error = zone.await_told(name, ERROR, "kubeadm join failed")
    assert f'could not find a JWS signature in the cluster-info ConfigMap for token ID "{TOKEN[:6]}"' in error
    assert not zone.nodes.nodes
    zone.server.good = {"fedcba.fedcba9876543210"}
    zone.give(name, "fedcba.fedcba9876543210")
    zone.await_node(is_ready)
    until(lambda: ERROR not in zone.told(name), "the error to be taken back")


def test_an_api_server_that_proves_to_be_another_is_not_joined(zone: Zone) -> None:
    other = f"sha256:{'b' * 64}"
    zone.server.hashes = (other,)
    name = zone.host()
    zone.give(name)
    error = zone.await_told(name, ERROR, "kubeadm join failed")
    assert f'cluster-info ConfigMap is invalid: none of the public keys "{other}" are pinned' in error
    assert not zone.nodes.nodes


def test_a_label_that_a_kubelet_may_not_set_keeps_it_from_starting(zone: Zone) -> None:
    name = zone.host(**{"kube-labels": "node-restriction.kubernetes.io/a=b"})
    zone.give(name)
    error = zone.await_told(name, ERROR, "kubeadm join failed")
    assert "labels specified with --node-labels: [node-restriction.kubernetes.io/a]" in error


def test_a_machine_ends_with_its_vm_and_its_successor_joins_anew(zone: Zone) -> None:
    name = zone.host()
    zone.await_told(name, STATE, "waiting-for-token")
    url = zone.world.instance(name).self_link
    request = gce.InstanceGroupManagersRecreateInstancesRequest(instances=[url])
    zone.world.groups.recreate_instances_unary(
        instance_group_manager="slice", instance_group_managers_recreate_instances_request_resource=request, **HERE
    )
    until(lambda: [disk.root.name.rpartition(".")[2] for disk in zone.disks] == ["2"], "a machine with a new disk")
    until(lambda: len(running_on(zone.folder)) == 1, "it to run, alone")
    zone.await_told(name, STATE, "waiting-for-token")
    zone.give(name)
    zone.await_node(is_ready)


def test_nothing_runs_any_more_once_the_zone_is_closed(tmp_path: Path) -> None:
    zone = Zone(tmp_path)
    name = zone.host()
    zone.await_told(name, STATE, "waiting-for-token")
    assert running_on(tmp_path)
    zone.close()
    assert running_on(tmp_path) == []


def test_another_script_is_not_run_here_and_its_host_joins_as_its_metadata_says(zone: Zone) -> None:
    zone.host(**{"startup-script": "#!/bin/sh\ntouch /its-own"})
    zone.await_node(is_ready)
    assert zone.disks == []


def running_on(folder: Path) -> list[Any]:
    """Return the processes that entered a machine whose disk is there: their command names its root."""
    return [each for each in psutil.process_iter(["cmdline"]) if _is_of(each.info["cmdline"] or [], folder)]


def _is_of(command: list[str], folder: Path) -> bool:
    return any(part.startswith(f"{folder}/") for part in command) and command[0] == "unshare"

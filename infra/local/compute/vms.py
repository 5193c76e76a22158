"""What runs on VMs: the hook, and hosts that join a cluster by themselves.

A VM's life is Compute's; what its machine does in it, is up to an implementation of `Boot`. `JoinedHosts` is the
shortest way: a Node appears as that of a machine whose kubelet has registered, with what the VM's metadata says.
Another could run the VM's own startup script against a `MetadataServer(plane, vm=PATH)`, which is why a control plane
is told of its `Boot` after it was made.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from infra.local.clients.labels import HOST
from infra.local.compute.paths import Resource
from infra.local.compute.state import Pace, State
from infra.local.gke import hosts
from infra.local.gke.hosts import Appearance, Readiness
from infra.local.gke.machines import Machine
from infra.local.gke.nodes import NodeKeeper, Nodes

Manifest = dict[str, Any]
_TPU = {"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}
_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningVm:
    """A VM that runs, since `runs`, or is just stopping. `life` is another one for each VM of the same name.

    `silent`: its kubelet does not answer any more, though it runs.
    """

    path: Resource
    life: int
    runs: float
    machine: Machine
    metadata: Mapping[str, str]
    stopping: bool
    silent: bool

    @property
    def provider_id(self) -> str:
        return f"gce://{self.path.project}/{self.path.location}/{self.path.name}"


class Boot(Protocol):
    """What machines do. Not called by two threads at once."""

    def follow(self, running: Mapping[Resource, RunningVm], now: float) -> bool:
        """Do what is to be done, given the VMs that run now; return False if some of it must be tried again.

        It is called whenever a VM or its metadata has changed, and at least every few seconds. A VM that is no longer
        there has ended: whatever it did ends with it, without notice.
        """

    def close(self) -> None:
        """End everything."""


class Idle:
    """Machines that do nothing."""

    def follow(self, _running: Mapping[Resource, RunningVm], _now: float) -> bool:
        return True

    def close(self) -> None:
        """Do nothing."""


class JoinedHosts:
    """Machines whose Nodes register, become Ready, and offer their chips, each after a while.

    A VM that stops tells its Node nothing: a kubelet of kubeadm's defaults has no graceful shutdown, and the taint of a
    termination notice is GKE's.
    """

    def __init__(self, nodes: Nodes, pace: Pace) -> None:
        self._keeper = _Kubelets(nodes)
        self._pace = pace

    def follow(self, running: Mapping[Resource, RunningVm], now: float) -> bool:
        by_name = {path.name: vm for path, vm in running.items()}
        joined = {name: vm for name, vm in by_name.items() if now >= vm.runs + self._pace.join}
        seen = {name: self._appearance(vm, now) for name, vm in joined.items()}
        return self._keeper.follow(seen, lambda name, shown: node(by_name[name], shown), now)

    def close(self) -> None:
        """Leave the Nodes as they are: nobody answers for them now, as for machines without power."""

    def _appearance(self, vm: RunningVm, now: float) -> Appearance:
        age, pace = now - vm.runs - self._pace.join, self._pace
        readiness = Readiness.READY if age >= pace.ready else Readiness.STARTING
        return Appearance(
            life=vm.life,
            readiness=Readiness.SILENT if vm.silent else readiness,
            chips=age >= pace.ready + pace.chips,
            cordoned=False,
            drains=False,
            maintenance=None,
            maintained=False,
        )


class _Kubelets(NodeKeeper):
    """Keeps Nodes as kubelets do; that of a VM that is gone stays, and is Unknown.

    Nobody deletes it: a self-managed cluster need not have Google's cloud controller manager. That it is Unknown, the
    node controller says, from its Lease; here it is said at once.
    """

    def _part(self, name: str) -> None:
        if self._nodes.standing().get(name, "Unknown") != "Unknown":
            self._nodes.silence(name)


def node(vm: RunningVm, seen: Appearance) -> Manifest:
    """Return the Node as a kubelet registers it that is started with its labels and taints, and with its providerID.

    `kube-labels` has the labels of a VM's Node [tpuop]; `kube-taints`, as KEY=VALUE:EFFECT, its taints instead of GKE's
    for TPUs: this key is our own.
    """
    name = vm.path.name
    taints = [_TPU] if "kube-taints" not in vm.metadata else _taints(vm.metadata["kube-taints"])
    starting = [_NOT_READY] if seen.readiness is Readiness.STARTING else []
    labels = {
        **_labels(vm.metadata.get("kube-labels", "")),
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        HOST: "true",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": vm.provider_id, "taints": [*taints, *starting]},
        "status": hosts.status(vm.machine, seen),
    }


def _labels(text: str) -> dict[str, str]:
    """Parse `a=b,c=d`; a bare word is a key without a value, as for the device plugin [tpuop]."""
    pairs = (term.strip().partition("=") for term in text.split(",") if term.strip())
    return {key: value for key, _, value in pairs}


def _taints(text: str) -> list[dict[str, str]]:
    """Parse `key=value:Effect,key:Effect`, as kubelet's --register-with-taints has them."""
    taints = []
    for term in text.split(","):
        pair, _, effect = term.strip().rpartition(":")
        key, _, value = pair.partition("=")
        if key and effect:
            taints.append({"key": key, **({"value": value} if value else {}), "effect": effect})
    return taints


def running(state: State, now: float) -> Mapping[Resource, RunningVm]:
    """Return the VMs whose machines run now."""
    found = {}
    for path, each in state.instances.items():
        if each.vm is None or now < each.vm.runs or each.vm.status(now) not in ("RUNNING", "STOPPING"):
            continue
        found[path] = RunningVm(
            path=path,
            life=each.life,
            runs=each.vm.runs,
            machine=state.templates[state.groups[each.group].template].machine,
            metadata=each.vm.metadata,
            stopping=each.vm.status(now) == "STOPPING",
            silent=each.vm.silent,
        )
    return found

"""What runs on VMs: the hook, and hosts that join a cluster.

A VM's life is Compute's; what its machine does in it, is up to an implementation of `Boot`. `JoinedHosts` keeps a Node
for each machine that has joined, as its kubelet registers it. Which have, and as what, is up to a `Joining`: the
shortest way is `ByMetadata`; `booting.scripts` runs the startup script of the VM's metadata.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from tpu_standins.clients.labels import HOST
from tpu_standins.cloud.hosts import Appearance, Readiness, status
from tpu_standins.cloud.machines import Machine
from tpu_standins.cloud.nodes import NodeKeeper, Nodes
from tpu_standins.compute.paths import Resource
from tpu_standins.compute.state import Pace, State

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What a kubelet is started with, and registers its Node with; `taints` as in a Node's spec."""

    name: str
    provider_id: str
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...]


class Joined(NamedTuple):
    """Since when a machine's kubelet runs, and as what."""

    at: float
    registration: Registration


class Joining(Protocol):
    """How machines join a cluster. Not called by two threads at once."""

    def joined(self, running: Mapping[Resource, RunningVm], now: float) -> Mapping[Resource, Joined]:
        """Return those of the VMs that run whose machines have joined."""

    def close(self) -> None:
        """End everything."""


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


class ByMetadata:
    """Machines that join after a while, as their metadata says.

    `kube-labels` has the labels of a VM's Node [tpuop]; `kube-taints`, as KEY=VALUE:EFFECT, its taints instead of GKE's
    for TPUs: this key is our own.
    """

    def __init__(self, pace: Pace) -> None:
        self._pace = pace

    def joined(self, running: Mapping[Resource, RunningVm], now: float) -> Mapping[Resource, Joined]:
        began = {path: vm.runs + self._pace.join for path, vm in running.items()}
        return {path: Joined(at, _registration(running[path])) for path, at in began.items() if at <= now}

    def close(self) -> None:
        """Do nothing: nothing runs."""


def _registration(vm: RunningVm) -> Registration:
    metadata = vm.metadata
    return Registration(
        name=vm.path.name,
        provider_id=vm.provider_id,
        labels=labels_of(metadata.get("kube-labels", "")),
        taints=tuple(_taints(metadata["kube-taints"])) if "kube-taints" in metadata else (_TPU,),
    )


class JoinedHosts:
    """Machines whose Nodes register when they join, become Ready, and offer their chips, each after a while.

    A VM that stops tells its Node nothing: a kubelet of kubeadm's defaults has no graceful shutdown, and the taint of a
    termination notice is GKE's.
    """

    def __init__(self, nodes: Nodes, pace: Pace, joining: Joining | None = None) -> None:
        self._keeper = _Kubelets(nodes)
        self._pace = pace
        self._joining = joining or ByMetadata(pace)

    def follow(self, running: Mapping[Resource, RunningVm], now: float) -> bool:
        joined = self._joining.joined(running, now)
        hosts = {each.registration.name: (running[path], each) for path, each in joined.items()}
        seen = {name: self._appearance(vm, now - each.at) for name, (vm, each) in hosts.items()}

        def describe(name: str, shown: Appearance) -> Manifest:
            vm, each = hosts[name]
            return node(vm.machine, each.registration, shown)

        return self._keeper.follow(seen, describe, now)

    def close(self) -> None:
        """Leave the Nodes as they are: nobody answers for them now, as for machines without power."""
        self._joining.close()

    def _appearance(self, vm: RunningVm, age: float) -> Appearance:
        pace = self._pace
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


def node(machine: Machine, registration: Registration, seen: Appearance) -> Manifest:
    """Return the Node as a kubelet registers it."""
    starting = [_NOT_READY] if seen.readiness is Readiness.STARTING else []
    labels = {
        **registration.labels,
        "kubernetes.io/hostname": registration.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        HOST: "true",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": registration.name, "labels": labels},
        "spec": {"providerID": registration.provider_id, "taints": [*registration.taints, *starting]},
        "status": status(machine, seen),
    }


def labels_of(text: str) -> dict[str, str]:
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

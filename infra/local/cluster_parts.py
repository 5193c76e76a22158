"""The parts of a stack that are its Kubernetes: the API server, and beside it what no control plane brings."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infra.local import borrowed
from infra.local.addresses import Addresses
from infra.local.cluster_choice import Borrowed, Built, Embedded
from infra.local.plan import Plan
from tpu_standins.controllers import running
from tpu_standins.controllers.catalogue import JOBSET, KUEUE, LWS
from tpu_standins.kubernetes.control_plane import ControlPlane, control_plane
from tpu_standins.kubernetes.programs import Programs
from tpu_standins.ports import free_ports
from tpu_standins.processes import Processes, Program

OUR_JOBSET, KUBELET = "jobset", "kubelet"
"""Clients of ours."""


@contextmanager
def cluster(plan: Plan, addresses: Addresses, processes: Processes, scratch: Path) -> Iterator[None]:
    """Provide the cluster that the plan names, and its kubeconfig, until the block is left.

    `scratch` is a folder for what need not be kept. Raises ProgramFailed.
    """
    parts = _Parts(plan, addresses, processes)
    match plan.cluster:
        case Embedded():
            parts.start(_embedded(plan, addresses))
            parts.start_beside(OUR_JOBSET)
            parts.start_beside(KUBELET)
            yield
        case Built(programs):
            with parts.built(programs, scratch / "kubernetes"):
                yield
        case Borrowed(live=live):
            if live is None:
                parts.start_beside(KUBELET)
            with borrowed.returned(addresses.kubeconfig, processes, borrowed.made(compute=plan.compute)):
                yield


class _Parts:
    def __init__(self, plan: Plan, addresses: Addresses, processes: Processes) -> None:
        self._plan = plan
        self._addresses = addresses
        self._processes = processes

    def start(self, program: Program) -> None:
        self._processes.wait_until_ready(*self._processes.start(program))

    def start_beside(self, name: str) -> None:
        """Start a client of the cluster, `python -m tpu_standins.NAME`."""
        arguments = (f"tpu_standins.{name}", "--kubeconfig", str(self._addresses.kubeconfig))
        self.start(self._plan.module(name, arguments, "ready", self._addresses))

    @contextmanager
    def built(self, programs: Programs, folder: Path) -> Iterator[None]:
        """Run a control plane. Kinds are there before its controllers start: they learn of later ones after 30 s."""

        def extended(plane: ControlPlane) -> None:
            plane.write_kubeconfig(plane.accounts.admin, self._addresses.kubeconfig)
            python = {"PYTHONPATH": str(self._plan.root), "PYTHONUNBUFFERED": "1"}
            for each in (JOBSET, LWS, *([KUEUE] if self._plan.queues else [])):
                self.start(running.program(each, self._addresses.kubeconfig, folder, python))

        with control_plane(programs, self._processes, folder, extended=extended):
            self.start_beside(KUBELET)
            yield


def _embedded(plan: Plan, addresses: Addresses) -> Program:
    """Return the embedded API server, with its controllers; it has the same port after a restart."""
    (port,) = free_ports(1)
    arguments = ("tpu_standins.embedded", "--port", str(port), "--kubeconfig", str(addresses.kubeconfig))
    return plan.module("cluster", arguments, f"listening on https://127.0.0.1:{port}", addresses)

"""Machines that run the startup script of their VM's metadata, and join when it calls kubeadm."""

from __future__ import annotations

import logging
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tpu_standins.cloud.loopback import Answered, Asked, LoopbackServer
from tpu_standins.cloud.timed import Moment
from tpu_standins.compute.booting.host import Host, halt
from tpu_standins.compute.booting.kubeadm import ApiServer, CannotJoinError, parse, registered
from tpu_standins.compute.control_plane import ControlPlane
from tpu_standins.compute.metadata.server import MetadataServer
from tpu_standins.compute.paths import Resource
from tpu_standins.compute.state import State
from tpu_standins.compute.vms import Joined, Joining, RunningVm

STARTUP_SCRIPT = "startup-script"
"""The key of the metadata that Compute Engine runs at every boot."""
_MACHINE = re.compile(r"/([^/]+)/([^/]+)/([^/]+)/(\d+)")
_log = logging.getLogger(__name__)


class _Machine(NamedTuple):
    """A VM in one of its lives: each has a disk of its own."""

    path: Resource
    life: int


@dataclass(frozen=True, slots=True)
class _Boot:
    """A machine that was booted when its VM began to run."""

    machine: _Machine
    runs: float
    process: subprocess.Popen[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What machines need: `script` is the one that they may run, `folder` is where their disks are."""

    script: str
    folder: Path
    plane: ControlPlane
    metadata: MetadataServer
    server: ApiServer


class Scripts:
    """Implements `Joining`.

    Only VMs whose startup script is that of the site boot with it, for it runs on this machine, and who may create VMs
    need not have the right to run anything here. The others join as `otherwise` says.
    """

    def __init__(self, site: Site, otherwise: Joining) -> None:
        self._site = site
        self._otherwise = otherwise
        self._boots: dict[Resource, _Boot] = {}
        self._joined: dict[_Machine, Joined] = {}
        self._kubeadm = LoopbackServer(self._join, name="kubeadm")

    def joined(self, running: Mapping[Resource, RunningVm], now: float) -> Mapping[Resource, Joined]:
        mine = {path: vm for path, vm in running.items() if vm.metadata.get(STARTUP_SCRIPT) == self._site.script}
        for path, boot in list(self._boots.items()):
            vm = mine.get(path)
            if vm is None or (vm.life, vm.runs) != (boot.machine.life, boot.runs):
                halt(boot.process)
                del self._boots[path]
        for path, vm in mine.items():
            if path not in self._boots:
                self._boots[path] = self._start(vm)
        others = self._otherwise.joined({path: vm for path, vm in running.items() if path not in mine}, now)
        own = {path: each for path, vm in mine.items() if (each := self._since(vm))}
        return {**others, **own}

    def _since(self, vm: RunningVm) -> Joined | None:
        """Return as what a machine has joined, and since when its kubelet runs: it comes back with its machine."""
        known = self._joined.get(_Machine(vm.path, vm.life))
        return known and known._replace(at=max(known.at, vm.runs))

    def close(self) -> None:
        """End all machines."""
        for boot in self._boots.values():
            halt(boot.process)
        self._boots.clear()
        self._kubeadm.stop()
        self._otherwise.close()

    def _start(self, vm: RunningVm) -> _Boot:
        machine = _Machine(vm.path, vm.life)
        host = self._host(machine)
        metadata = self._site.metadata.base(vm.path).removeprefix("http://")
        return _Boot(machine, vm.runs, host.start(metadata))

    def _host(self, machine: _Machine) -> Host:
        """Return the host on the disk of a machine; that of its VM's earlier life goes."""
        path, life = machine
        root = self._site.folder / f"{path.project}.{path.location}.{path.name}.{life}"
        if root.exists():
            return Host(root)
        for old in self._site.folder.glob(f"{path.project}.{path.location}.{path.name}.*"):
            shutil.rmtree(old)
        host = Host.made(root, self._site.script)
        host.write("kubeadm-server", f"{self._kubeadm.url}/{path.project}/{path.location}/{path.name}/{life}")
        return host

    def _join(self, asked: Asked) -> Answered:
        """Answer a machine's kubeadm, which sends its configuration; in another thread than all else."""
        found = _MACHINE.fullmatch(asked.target)
        if found is None:
            return Answered(404)
        path = Resource(found[1], f"zones/{found[2]}", "instances", found[3])
        try:
            registration = registered(parse(asked.body.decode()), self._site.server)
        except CannotJoinError as why:
            _log.warning("%s does not join: %s", path.name, why)
            return Answered(400, f"{why}\n".encode())
        self._joined[_Machine(path, int(found[4]))] = Joined(self._site.plane.look()[1], registration)
        self._site.plane.change(_as_it_is)
        return Answered(200)


def _as_it_is(state: State, _: Moment) -> State:
    """Change nothing: who waits for a change looks again."""
    return state

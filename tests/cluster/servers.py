"""The API servers that the suite is run against, and what tests do with one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from relay import cluster, watch
from relay.node_groups import calls
from tests.cluster.asking import Api, Json, path
from tpu_standins.controllers import running
from tpu_standins.controllers.catalogue import JOBSET, Controller, built
from tpu_standins.controllers.installing import install_kinds
from tpu_standins.kubernetes.control_plane import ControlPlane, control_plane
from tpu_standins.kubernetes.programs import Programs
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.ports import free_ports
from tpu_standins.prerequisites import Prerequisite, find
from tpu_standins.processes import Processes, Program, Says
from tpu_standins.testing.waiting import until

ROOT = Path(__file__).parents[2]
REAL, EMBEDDED, EARLIER = "real", "embedded", "earlier"
"""Kubernetes' own with JobSet's newest controller; ours with our JobSet; Kubernetes' own with an earlier JobSet."""
REAL_ALONE = pytest.mark.parametrize("cluster", [REAL], indirect=True)
"""The mark of what ours does not cover."""
EMBEDDED_ALONE = pytest.mark.parametrize("cluster", [EMBEDDED], indirect=True)
"""The mark of what ours refuses, as it does not cover it."""
PATIENCE = (PATIENCE_SECONDS, PATIENCE_SECONDS)
"""Of the relay's calls: to connect, and to answer."""
PATIENT = f"--timeout={PATIENCE_SECONDS:.0f}s"
"""The flag with which kubectl waits for what comes."""
WINDOW = 500
"""How many changes of a kind our own server knows."""
PYTHON = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
POD: Json = {"spec": {"containers": [{"name": "main", "image": "python:3.12"}]}}


def _kubectls() -> list[Path]:
    """Return the oldest and the newest kubectl of the Google Cloud CLI, else the one on the PATH."""
    tools = find(os.environ)
    found, sdk = tools[Prerequisite.KUBECTL], tools[Prerequisite.GCLOUD]
    versions = sorted((sdk / "bin").glob("kubectl.1.*") if sdk else [], key=lambda path: int(path.suffix[1:]))
    ends = dict.fromkeys([versions[0], versions[-1]] if versions else [found or Path("kubectl")])
    return list(ends)


KUBECTLS = _kubectls()


@dataclass(frozen=True, slots=True)
class Said:
    """The output and the exit code of a program."""

    code: int
    out: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A running API server with its controllers; `name` is which one, `program` the kubectl that is used."""

    name: str
    kubeconfig: Path
    processes: Processes
    api: Api
    program: Path = KUBECTLS[-1]

    def kubectl(self, *arguments: str, stdin: Any = None, kubeconfig: Path | None = None) -> Said:
        """Run kubectl; `stdin` is one object or several."""
        several = {"apiVersion": "v1", "kind": "List", "items": stdin}
        text = "" if stdin is None else orjson.dumps(several if isinstance(stdin, list) else stdin).decode()
        command = self.command(*arguments, kubeconfig=kubeconfig)
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def json(self, *arguments: str) -> Any:
        """Run kubectl and parse the object that it prints."""
        said = self.kubectl(*arguments, "-o", "json")
        assert said.code == 0, said
        return orjson.loads(said.out)

    def knows(self, plural: str) -> None:
        """Wait until kubectl knows a kind: what is served is told some time after it is served."""
        until(lambda: self.kubectl("get", plural, "--all-namespaces").code == 0, f"kubectl to know {plural}")

    def command(self, *arguments: str, kubeconfig: Path | None = None) -> list[str]:
        cache = self.kubeconfig.parent / f"cache-{self.program.name}"
        return [str(self.program), f"--kubeconfig={kubeconfig or self.kubeconfig}", f"--cache-dir={cache}", *arguments]

    def namespace(self) -> str:
        """Return the name of a new namespace, in which pods can be created."""
        name = unique("team")
        self.api.create(path("namespaces"), {"metadata": {"name": name}})
        pods = path("pods", name)
        pod = {"metadata": {"name": "probe"}} | POD
        until(lambda: self.api.post(pods, pod, dryRun="All").code == 201, "pods to be admitted")
        return name


@contextmanager
def patient_relay() -> Iterator[None]:
    """Let the relay's calls in this process wait: a deployed relay gives up soon and comes back, a test asks once."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("TIMEOUTS", "SHORT_TIMEOUTS", "LIST_TIMEOUTS"):
            patch.setattr(cluster, name, PATIENCE)
        for name in ("TIMEOUTS", "LIST_TIMEOUTS"):
            patch.setattr(calls, name, PATIENCE)
        for name in ("CONNECT_SECONDS", "LIST_SECONDS"):
            patch.setattr(watch, name, PATIENCE_SECONDS)
        yield


def unique(prefix: str) -> str:
    """Return a name that no other test uses: nodes and cluster roles of one server are everybody's."""
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


@contextmanager
def real(
    programs: Programs, setpriv: Path, folder: Path, controller: Controller = JOBSET, name: str = REAL
) -> Iterator[Cluster]:
    """Start a control plane of Kubernetes' own programs, with JobSet's own controller, and our kubelets."""
    with Processes(setpriv=setpriv, logs=folder / "logs", environment=os.environ) as processes:

        def extended(plane: ControlPlane) -> None:
            processes.wait_until_ready(*processes.start(own_controller(plane.kubeconfig, folder, controller)))

        with control_plane(programs, processes, folder, extended=extended) as plane:
            yield from _serving(name, plane.kubeconfig, processes, "kubelet")


@contextmanager
def embedded(setpriv: Path, folder: Path) -> Iterator[Cluster]:
    """Start our own API server with its controllers, our JobSet and kubelets."""
    kubeconfig = folder / "kubeconfig"
    (port,) = free_ports(1)
    said = f"listening on https://127.0.0.1:{port}"
    with Processes(setpriv=setpriv, logs=folder / "logs", environment=os.environ) as processes:
        known = ("--window", str(WINDOW), "--bookmark-seconds", "1")
        server = module(EMBEDDED, said, "--port", str(port), "--kubeconfig", str(kubeconfig), *known)
        processes.wait_until_ready(*processes.start(server))
        yield from _serving(EMBEDDED, kubeconfig, processes, "jobset", "kubelet")


def own_controller(
    kubeconfig: Path, folder: Path, controller: Controller = JOBSET, configuration: Path | None = None
) -> Program:
    """Return JobSet's own controller, or another one, which keeps what it reads in this folder."""
    return running.program(controller, kubeconfig, folder, PYTHON, configuration)


def with_jobsets(plane: ControlPlane) -> None:
    """Add JobSet's kind before the controllers start: later they learn of it after 30 s only."""
    install_kinds(built(JOBSET, os.environ), plane.kubeconfig)


def _serving(name: str, kubeconfig: Path, processes: Processes, *parts: str) -> Iterator[Cluster]:
    """Start the parts beside the API server that are ours."""
    programs = (module(part, "ready", "--kubeconfig", str(kubeconfig)) for part in parts)
    processes.wait_until_ready(*processes.start(*programs))
    api = Api(kubeconfig)
    try:
        yield Cluster(name=name, kubeconfig=kubeconfig, processes=processes, api=api)
    finally:
        api.close()


def module(name: str, said: str, *arguments: str) -> Program:
    return Program(
        name=name,
        command=(sys.executable, "-m", f"tpu_standins.{name}", *arguments),
        ready=Says(re.escape(said)),
        folder=ROOT,
        environment=PYTHON,
    )

"""The API servers that the suite is run against, and what tests do with one."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from infra.local.kubernetes.control_plane import control_plane
from infra.local.kubernetes.programs import Programs
from infra.local.ports import free_ports
from infra.local.prerequisites import Prerequisite, find
from infra.local.processes import Processes, Program, Says
from tests.cluster.asking import PATIENCE_SECONDS, Api, Json, path
from tests.local.stack.leftovers import until

ROOT = Path(__file__).parents[2]
REAL, EMBEDDED = "real", "embedded"
POD: Json = {"spec": {"containers": [{"name": "main", "image": "python:3.12"}]}}
JOBSET_CRD: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "jobsets.jobset.x-k8s.io"},
    "spec": {
        "group": "jobset.x-k8s.io",
        "names": {"kind": "JobSet", "listKind": "JobSetList", "plural": "jobsets", "singular": "jobset"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha2",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            field: {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                            for field in ("spec", "status")
                        },
                    }
                },
                "subresources": {"status": {}},
            }
        ],
    },
}


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
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
        return Said(done.returncode, done.stdout, done.stderr)

    def json(self, *arguments: str) -> Any:
        """Run kubectl and parse the object that it prints."""
        said = self.kubectl(*arguments, "-o", "json")
        assert said.code == 0, said
        return orjson.loads(said.out)

    def command(self, *arguments: str, kubeconfig: Path | None = None) -> list[str]:
        cache = self.kubeconfig.parent / f"cache-{self.program.name}"
        return [str(self.program), f"--kubeconfig={kubeconfig or self.kubeconfig}", f"--cache-dir={cache}", *arguments]

    def namespace(self) -> str:
        """Return the name of a new namespace, in which pods can be created."""
        name = unique("team")
        self.api.create(path("namespaces"), {"metadata": {"name": name}})
        pods = path("pods", name)
        pod = {"metadata": {"name": "probe"}} | POD
        until(lambda: self.api.post(pods, pod, dryRun="All").code == 201, "pods to be admitted", PATIENCE_SECONDS)
        return name


def unique(prefix: str) -> str:
    """Return a name that no other test uses: nodes and cluster roles of one server are everybody's."""
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


@contextmanager
def real(programs: Programs, setpriv: Path, folder: Path) -> Iterator[Cluster]:
    """Start a control plane of Kubernetes' own programs, with JobSet's kind."""
    with (
        Processes(setpriv=setpriv, logs=folder / "logs", environment=os.environ) as processes,
        control_plane(programs, processes, folder) as plane,
    ):
        yield from _serving(
            Cluster(name=REAL, kubeconfig=plane.kubeconfig, processes=processes, api=Api(plane.kubeconfig))
        )


@contextmanager
def embedded(setpriv: Path, folder: Path) -> Iterator[Cluster]:
    """Start our own API server, with its controllers."""
    kubeconfig = folder / "kubeconfig"
    with Processes(setpriv=setpriv, logs=folder / "logs", environment=os.environ) as processes:
        processes.wait_until_ready(*processes.start(_embedded(kubeconfig)))
        yield from _serving(Cluster(name=EMBEDDED, kubeconfig=kubeconfig, processes=processes, api=Api(kubeconfig)))


def _embedded(kubeconfig: Path) -> Program:
    (port,) = free_ports(1)
    module, flag, said = "infra.local.embedded", "--port", f"listening on https://127.0.0.1:{port}"
    if importlib.util.find_spec(module) is None:
        module, flag, said = "infra.local.cluster", "--secure-port", "listening on .*"
    return Program(
        name=EMBEDDED,
        command=(sys.executable, "-m", module, flag, str(port), "--kubeconfig", str(kubeconfig)),
        ready=Says(said),
        folder=ROOT,
        environment={"PYTHONPATH": f"{ROOT}:{ROOT / 'shared'}", "PYTHONUNBUFFERED": "1"},
    )


def _serving(cluster: Cluster) -> Iterator[Cluster]:
    """Yield the cluster once it serves JobSets."""
    made = cluster.api.post(path("customresourcedefinitions"), JOBSET_CRD)
    assert made.code in {201, 501}, made
    until(lambda: cluster.api.get(path("jobsets")).code == 200, "JobSets to be served", PATIENCE_SECONDS)
    try:
        yield cluster
    finally:
        cluster.api.close()

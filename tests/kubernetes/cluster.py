"""What tests do with a control plane: kubectl, requests, and waiting."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.asking import Api, done, path
from tests.cluster.servers import own_controller
from tests.infra.sources import ROOT
from tpu_standins.controllers.catalogue import JOBSET, Controller
from tpu_standins.kubernetes.control_plane import ControlPlane, control_plane
from tpu_standins.kubernetes.credentials import User
from tpu_standins.kubernetes.programs import Programs
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.prerequisites import Tools
from tpu_standins.processes import Child, Processes
from tpu_standins.testing.waiting import until

Json = dict[str, Any]
ADMISSION = ROOT / "infra" / "kubernetes" / "admission.yaml"
_WITH_CHIPS = {
    "metadata": {"generateName": "tried-"},
    "spec": {
        "containers": [{"name": "main", "image": "main:1", "resources": {"limits": {"google.com/tpu": "1"}}}],
    },
}
USER = User("ada", ("researchers",))
NODE_GROUPS = "tpunodegroups.tpu.google.com"
WEBHOOKS = {f"{kind}webhookconfigurations": f"{kind}-webhook-configuration" for kind in ("mutating", "validating")}
"""The kinds, and how the projects' manifests name theirs, after the name of the controller."""
_JUDGES = ("validatingadmissionpolicybindings", "validatingadmissionpolicies")
LEFTOVERS = (
    *(path("jobsets"), "/apis/tpu.google.com/v1alpha1/tpunodegroups", *map(path, ("jobs", "pods", "nodes"))),
    *(f"/apis/admissionregistration.k8s.io/v1/{each}" for each in _JUDGES),
)
"""The lists of what tests leave: the policies that restrict the relay, too."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a program said, and the code with which it exited."""

    code: int
    out: str
    error: str


@dataclass(frozen=True, slots=True)
class Reply:
    """An object, or the message with which a request was refused."""

    object: Json | None
    refused: str = ""


@dataclass(frozen=True)
class Cluster:
    """A control plane that runs, and how tests reach it."""

    plane: ControlPlane
    processes: Processes
    program: Path
    api: Api

    def child(self, name: str) -> Child:
        [found] = [child for child in self.processes.children() if child.program.name == name]
        return found

    def kubectl(self, *arguments: str, stdin: str = "", kubeconfig: Path | None = None) -> Said:
        done = subprocess.run(
            [self.program, "--kubeconfig", kubeconfig or self.plane.kubeconfig, *arguments],
            input=stdin,
            env={"PATH": os.environ["PATH"], "HOME": str(self.plane.layout.folder)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def apply(self, *arguments: str, stdin: str = "") -> Said:
        """Apply server-side, whoever of an earlier test owns a field: all tests of a worker share this cluster."""
        return self.kubectl("apply", "--server-side", "--force-conflicts", *arguments, stdin=stdin)

    def unpin(self) -> None:
        """Delete the admission policy that pins pods, and wait until it judges none any more: it does for a while."""
        said = self.kubectl("delete", "--ignore-not-found", "-f", str(ADMISSION))
        assert (said.code, said.error) == (0, ""), said.error
        until(lambda: "affinity" not in self._tried()["spec"], "pods that nothing judges")

    def pin(self) -> None:
        """Apply the admission policy, and wait until it judges pods: one JobSet's pods are all pinned, or none are."""
        said = self.apply("-f", str(ADMISSION))
        assert (said.code, said.error) == (0, ""), said.error
        until(lambda: "affinity" in self._tried()["spec"], "pods that the policy judges")

    def _tried(self) -> Json:
        """Return a pod with chips as the API server would create it."""
        tried = self.post("/api/v1/namespaces/default/pods?dryRun=All", _WITH_CHIPS)
        assert tried.object, tried.refused
        return tried.object

    def empty(self) -> None:
        """Delete what runs or was asked to run, without waiting for those who hold it: a test may count what it finds.

        A kind that is not defined here has no objects.
        """
        until(lambda: not sum(self._deleted(kind) for kind in LEFTOVERS), "an empty cluster")

    def _deleted(self, kind: str) -> int:
        """Request the deletion of all objects of a kind; return how many there were."""
        listed = self.api.get(kind)
        found = [each["metadata"] for each in done(listed)["items"]] if listed.code != 404 else []
        root, _, plural = kind.rpartition("/")
        for each in found:
            within = f"{root}/namespaces/{each['namespace']}" if "namespace" in each else root
            one = f"{within}/{plural}/{each['name']}"
            if each.get("finalizers"):
                self.api.patch(one, {"metadata": {"finalizers": None}})
            self.api.delete(one, gracePeriodSeconds=0, propagationPolicy="Background")
        return len(found)

    def knows(self, *plurals: str) -> None:
        """Wait until kubectl knows these kinds: what is served is told some time after it is served."""
        for each in plurals:
            until(lambda: self.kubectl("get", each, "--all-namespaces").code == 0, f"kubectl to know {each}")  # noqa: B023 - at once

    def get(self, path: str) -> Json | None:
        """Return an object, or None if it is not there."""
        answer = self.api.get(path)
        return answer.body if answer.code < 300 else None

    def post(self, path: str, body: Json) -> Reply:
        """Create an object, as the administrator."""
        answer = self.api.post(path, body)
        if answer.code < 300:
            return Reply(answer.body)
        message = answer.body["message"] if isinstance(answer.body, dict) else answer.body
        return Reply(None, f"{answer.code}: {message}")


@contextmanager
def with_controller(
    cluster: Cluster, controller: Controller = JOBSET, configuration: Path | None = None
) -> Iterator[None]:
    """Run a controller. Its webhooks go with it: without it they would refuse the pods of the cluster.

    `configuration`: of a controller that has not its project's.
    """
    program = own_controller(cluster.plane.kubeconfig, cluster.plane.layout.folder, controller, configuration)
    cluster.processes.wait_until_ready(*cluster.processes.start(program))
    yield
    cluster.processes.end(cluster.child(program.name))
    for kind, named in WEBHOOKS.items():
        said = cluster.kubectl("delete", kind, f"{controller.part}-{named}")
        assert said.code == 0, said.error


@contextmanager
def started(
    programs: Programs, tools: Tools, folder: Path, extended: Callable[[ControlPlane], None]
) -> Iterator[Cluster]:
    """Start a control plane; `extended` adds kinds before its controllers start."""
    with (
        Processes(setpriv=tools.setpriv, logs=folder / "logs", environment=os.environ) as processes,
        control_plane(programs, processes, folder, users=(USER,), extended=extended) as plane,
        closing(Api(plane.kubeconfig)) as api,
    ):
        yield Cluster(plane, processes, tools.kubectl, api)

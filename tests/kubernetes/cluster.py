"""What tests do with a control plane: kubectl, requests, and waiting."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from infra.local.kubernetes import probes
from infra.local.kubernetes.control_plane import ControlPlane, control_plane
from infra.local.kubernetes.credentials import User
from infra.local.kubernetes.programs import Programs
from infra.local.prerequisites import Tools
from infra.local.processes import Child, Processes
from tests.waiting import until

Json = dict[str, Any]
USER = User("ada", ("researchers",))
NODE_GROUPS = "tpunodegroups.tpu.google.com"
LEFTOVERS = ("jobsets.jobset.x-k8s.io", NODE_GROUPS, "jobs", "pods", "nodes")


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
            timeout=60,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def apply(self, *arguments: str, stdin: str = "") -> Said:
        """Apply server-side, whoever of an earlier test owns a field: all tests of a worker share this cluster."""
        return self.kubectl("apply", "--server-side", "--force-conflicts", *arguments, stdin=stdin)

    def empty(self) -> None:
        """Delete what runs or was asked to run, without waiting for those who hold it: a test may count what it finds.

        A kind that is not defined here has no objects.
        """
        until(lambda: not sum(self._deleted(kind) for kind in LEFTOVERS), "an empty cluster")

    def _deleted(self, kind: str) -> int:
        """Request the deletion of all objects of a kind; return how many there were."""
        names = 'jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name}{"\\n"}{end}'
        listed = self.kubectl("get", kind, "--all-namespaces", "-o", names)
        assert listed.code == 0 or "doesn't have a resource type" in listed.error, listed.error
        found = listed.out.split()
        for each in found:
            namespace, name = each.split("/")
            where = ["-n", namespace] if namespace else []
            self.kubectl("patch", kind, name, *where, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
            self.kubectl("delete", kind, name, *where, "--ignore-not-found", "--force", "--wait=false")
        return len(found)

    def get(self, path: str) -> Json | None:
        """Return an object, or None if it is not there."""
        return self._asked(path).object

    def post(self, path: str, body: Json) -> Reply:
        """Create an object, as the administrator."""
        return self._asked(path, orjson.dumps(body).decode())

    def _asked(self, path: str, body: str | None = None) -> Reply:
        reply = probes.ask(self.plane.layout, self.plane.accounts.admin, path, body)
        assert reply, f"no reply to {path}"
        answer: Json = orjson.loads(reply.body)
        return Reply(answer) if reply.status < 300 else Reply(None, f"{reply.status}: {answer['message']}")


@contextmanager
def started(
    programs: Programs, tools: Tools, folder: Path, extended: Callable[[ControlPlane], None]
) -> Iterator[Cluster]:
    """Start a control plane; `extended` adds kinds before its controllers start."""
    with (
        Processes(setpriv=tools.setpriv, logs=folder / "logs", environment=os.environ) as processes,
        control_plane(programs, processes, folder, users=(USER,), extended=extended) as plane,
    ):
        yield Cluster(plane, processes, tools.kubectl)

"""What a function's process takes until it can handle its first event; its floor imports and connects Google's clients.

What developers alone have installed is left out: without it structlog imports rich, which no function has.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from infra.local.plan import REPOSITORY
from tests.bench.measures import RUNS, Measure, measure

NOWHERE = "127.0.0.1:1"
ENVIRONMENT = {
    "GOOGLE_CLOUD_PROJECT": "demo-project",
    "FIRESTORE_EMULATOR_HOST": NOWHERE,
    "PUBSUB_EMULATOR_HOST": NOWHERE,
    "GKE_EMULATOR_HOST": NOWHERE,
}
_FIRST = 'import sys; sys.modules["rich"] = None'
_LAST = "import time; print(time.process_time(), *sorted(sys.modules))"
_CLIENTS = """
import functions_framework
from google.cloud.firestore import Client
from google.cloud.pubsub_v1 import PublisherClient
Client(project="demo-project")
PublisherClient()
"""
_GKE = """
import grpc
from google.cloud.container_v1 import ClusterManagerClient
from google.cloud.container_v1.services.cluster_manager.transports import ClusterManagerGrpcTransport
ClusterManagerClient(transport=ClusterManagerGrpcTransport(channel=grpc.insecure_channel("127.0.0.1:1")))
"""
_RECEIVE = "from functions import main; main._intake_deps()"
_RECONCILE = "from functions import main; main._reconcile_deps()"
_RECONCILE_ON_GKE = """
import os
from functions import main
from tpu_slices.app import wiring
from tpu_slices.app.settings import Settings
main._reconcile_deps()
wiring._gke_backend(Settings.from_env(os.environ))
"""
FUNCTIONS: Mapping[str, tuple[str, str]] = {
    "receive": (_RECEIVE, _CLIENTS),
    "reconcile": (_RECONCILE, _CLIENTS),
    "reconcile on GKE": (_RECONCILE_ON_GKE, _CLIENTS + _GKE),
}
"""How each is started, and its floor. The sweep starts as reconcile, which loads GKE's client at its first slice."""


@dataclass(frozen=True, slots=True)
class Start:
    """A process that was started and has ended."""

    seconds: float
    """Of processor time."""
    modules: frozenset[str]

    @property
    def ours(self) -> frozenset[str]:
        return frozenset(each for each in self.modules if each.partition(".")[0] == "tpu_slices")


def start(code: str) -> Start:
    """Start a process that runs this code."""
    program = f"{_FIRST}\n{code}\n{_LAST}"
    command = [sys.executable, "-c", program]
    environment = {**os.environ, **ENVIRONMENT}
    done = subprocess.run(command, env=environment, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    seconds, *modules = done.stdout.split()
    return Start(float(seconds), frozenset(modules))


def rows() -> Iterator[Measure]:
    """Yield the processor time of a cold start of each function, in turn with its floor."""
    for name, (code, floor) in FUNCTIONS.items():
        taken = [(start(code).seconds, start(floor).seconds) for _ in range(RUNS)]
        yield measure(f"cold start of {name}", "s", [each for each, _ in taken], [each for _, each in taken])

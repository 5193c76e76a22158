"""A local stack that takes seconds where GKE takes minutes, and a user's commands on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
import yaml
from google.cloud import firestore

from infra.local.addresses import Addresses
from infra.local.clients.api import Api
from infra.local.demo.http import get_json, press
from infra.local.patience import PATIENCE_SECONDS
from infra.local.plan import REPOSITORY
from infra.local.prerequisites import Tools
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.wire.cluster_settings import decode_settings, settings_key

SETTINGS = REPOSITORY / "examples" / "clusters" / "research.yaml"
FAST = (
    *("--create-seconds", "1", "--join-seconds", "0.2", "--ready-seconds", "0.2", "--chips-seconds", "0.2"),
    *("--delete-seconds", "0.3", "--log-seconds", "0.1"),
)
Json = dict[str, Any]


IN_SECONDS = {"act_window": "5s", "requeue_after": "2s", "delete_retry_after": "1s", "resync_after": "5s"}
"""Limits of seconds instead of minutes."""


def seed(addresses: Addresses, limits: Mapping[str, object] = IN_SECONDS) -> None:
    """Write the examples' settings for the local cluster, with these limits."""
    document = {
        **yaml.safe_load(SETTINGS.read_text()),
        "path": addresses.cluster_path,
        "limits": {**limits},
    }
    cluster = ClusterId(addresses.cluster_id)
    decode_settings(cluster, document, "")
    place = settings_key(cluster)
    with database(addresses) as client:
        client.document(place.collection, place.id).set(document)


@contextmanager
def database(addresses: Addresses) -> Iterator[firestore.Client]:
    """Yield the records of a local stack."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FIRESTORE_EMULATOR_HOST", addresses.firestore)
        client = firestore.Client(project=addresses.project)
    yield client
    client.close()  # type: ignore[no-untyped-call]  # the client's own gap


@dataclass(frozen=True, slots=True)
class Cluster:
    """A user's commands, in a namespace."""

    addresses: Addresses
    tools: Tools
    namespace: str = "default"

    def within(self, namespace: str) -> Cluster:
        return replace(self, namespace=namespace)

    def kubectl(self, *arguments: str, text: str = "") -> str:
        where = (f"--kubeconfig={self.addresses.kubeconfig}", f"--namespace={self.namespace}")
        command = [str(self.tools.kubectl), *where, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, input=text).stdout

    def create(self, objects: Iterable[Json]) -> None:
        self.kubectl("apply", "-f", "-", text=yaml.safe_dump_all(objects))

    def slices(self, *arguments: str, text: str = "") -> Json:
        """Run the command as a user of this project does; return its JSON."""
        command = [sys.executable, "-m", "tpu_slices_cli", *arguments, "-o", "json"]
        environment = {**os.environ, **self.addresses.environment(), "PYTHONPATH": str(REPOSITORY)}
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=180, check=False, env=environment, input=text
        )
        assert ended.returncode == 0, ended.stderr
        found: Json = json.loads(ended.stdout)
        return found

    def get(self, *what: str) -> Json:
        found: Json = json.loads(self.kubectl("get", *what, "-o", "json"))
        return found

    def conditions(self, jobset: str) -> set[str]:
        """Return the conditions that hold, without a kubectl: they are asked for all the time."""
        with closing(Api.of(self.addresses.kubeconfig)) as api:
            status = api.get("jobsets", self.namespace, jobset).get("status") or {}
        return {each["type"] for each in status.get("conditions") or () if each["status"] == "True"}

    def pools(self, workload: str) -> list[str]:
        """Return the node pools that there are of a workload, which no other's name begins with, in their order."""
        found: list[str] = [pool["name"] for pool in get_json(f"{self.addresses.buttons}/pools")["pools"]]
        return sorted(pool for pool in found if pool.startswith(f"tpu-{workload}-"))

    def slices_with_pool(self, workload: str) -> list[str]:
        """Return those pools without what is another in every run: its UID's hash, and the attempt."""
        return [pool.rsplit("-", 2)[0] for pool in self.pools(workload)]

    def calls(self, method: str) -> list[str]:
        """Return the pools of GKE's calls that succeeded, the oldest first."""
        calls = get_json(f"{self.addresses.buttons}/calls")["calls"]
        return [call["pool"] for call in calls if (call["method"], call["code"]) == (method, "OK")]

    def press(self, button: str, workload: str) -> None:
        """Let something happen to the hosts of a workload's only pool."""
        (pool,) = self.pools(workload)
        press(f"{self.addresses.buttons}/hosts/{button}", {"pool": pool})

    def until(self, holds: Callable[[], object]) -> None:
        """Wait until something holds; if it does not in time, fail with the namespace's Events."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            assert time.monotonic() < deadline, self.kubectl("get", "events", "--sort-by=.lastTimestamp")
            time.sleep(0.5)

    def until_over(self, jobset: str) -> None:
        self.until(lambda: self.conditions(jobset) & {"Completed", "Failed"})
        assert "Completed" in self.conditions(jobset), self.kubectl("describe", "jobset", jobset)

"""A local stack that takes seconds where GKE takes minutes, and a user's commands on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from google.cloud import firestore

from infra.local.addresses import Addresses
from infra.local.plan import REPOSITORY
from infra.local.prerequisites import Tools
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.wire.cluster_settings import decode_settings, settings_key

SETTINGS = REPOSITORY / "examples" / "clusters" / "research.yaml"
PATIENCE = 150.0
FAST = (
    *("--create-seconds", "1", "--join-seconds", "0.2", "--ready-seconds", "0.2", "--chips-seconds", "0.2"),
    *("--delete-seconds", "0.3", "--log-seconds", "0.1"),
)
Json = dict[str, Any]


def seed(addresses: Addresses) -> None:
    """Write the examples' settings for the local cluster, with limits of seconds instead of minutes."""
    document = {
        **yaml.safe_load(SETTINGS.read_text()),
        "path": addresses.cluster_path,
        "limits": {"act_window": "5s", "requeue_after": "2s", "delete_retry_after": "1s", "resync_after": "5s"},
    }
    cluster = ClusterId(addresses.cluster_id)
    decode_settings(cluster, document, "")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FIRESTORE_EMULATOR_HOST", addresses.firestore)
        client = firestore.Client(project=addresses.project)
    place = settings_key(cluster)
    client.document(place.collection, place.id).set(document)
    client.close()  # type: ignore[no-untyped-call]  # the client's own gap


@dataclass(frozen=True, slots=True)
class Cluster:
    addresses: Addresses
    tools: Tools

    def kubectl(self, *arguments: str, text: str = "") -> str:
        command = [str(self.tools.kubectl), f"--kubeconfig={self.addresses.kubeconfig}", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True, input=text).stdout

    def slices(self, *arguments: str, text: str = "") -> Json:
        """Run the command as a user of this project does; return its JSON."""
        command = [sys.executable, "-m", "tpu_slices_cli", *arguments, "-o", "json"]
        environment = {**os.environ, **self.addresses.environment(), "PYTHONPATH": str(REPOSITORY)}
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False, env=environment, input=text
        )
        assert ended.returncode == 0, ended.stderr
        found: Json = json.loads(ended.stdout)
        return found

    def get(self, *what: str) -> Json:
        found: Json = json.loads(self.kubectl("get", *what, "-o", "json"))
        return found

    def conditions(self, jobset: str) -> set[str]:
        status = self.get("jobset", jobset).get("status") or {}
        return {each["type"] for each in status.get("conditions") or () if each["status"] == "True"}


def until_over(cluster: Cluster, jobset: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while "Completed" not in (conditions := cluster.conditions(jobset)):
        assert "Failed" not in conditions, cluster.kubectl("describe", "jobset", jobset)
        assert time.monotonic() < deadline, cluster.kubectl("get", "events", "--sort-by=.lastTimestamp")
        time.sleep(0.5)

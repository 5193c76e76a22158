"""Every example does on the local stack what it says: its slices are made, its Jobs run on them, nothing is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.cloud import firestore

from infra.local.addresses import Addresses
from infra.local.demo.http import get_json
from infra.local.prerequisites import Tools
from infra.local.stack import REPOSITORY, Plan, running
from shared.domain.slices import ClusterId
from shared.wire.cluster_settings import decode_settings, settings_key

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.timeout(180)]

EXAMPLES = sorted((REPOSITORY / "examples").glob("*.yaml"))
SETTINGS = REPOSITORY / "examples" / "clusters" / "research.yaml"
PATIENCE = 150.0
FAST = (
    *("--create-seconds", "1", "--join-seconds", "0.2", "--ready-seconds", "0.2", "--chips-seconds", "0.2"),
    *("--delete-seconds", "0.3", "--log-seconds", "0.1"),
)
Json = dict[str, Any]


def seed(addresses: Addresses) -> None:
    """Write the examples' settings for the local cluster, and let it be patient for seconds where GKE takes minutes."""
    document = {
        **yaml.safe_load(SETTINGS.read_text()),
        "path": addresses.cluster_path,
        "limits": {"act_window": "5s", "look_again": "2s", "delete_again": "1s", "backstop": "5s"},
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

    def kubectl(self, *arguments: str) -> str:
        command = [str(self.tools.kubectl), f"--kubeconfig={self.addresses.kubeconfig}", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout

    def slices(self, *arguments: str, text: str = "") -> Json:
        """Run the command as a person on this project does, and read its JSON."""
        command = [sys.executable, "-m", "shared.cli", *arguments, "-o", "json"]
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


@pytest.fixture(scope="module")
def cluster(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The whole stack with every example applied, as a user would."""
    state = tmp_path_factory.mktemp("examples")
    with running(Plan(state=state, sweep_seconds=1, gke_arguments=FAST), seed) as stack:
        found = Cluster(stack.addresses, tools)
        found.kubectl("apply", *(part for example in EXAMPLES for part in ("-f", str(example))))
        yield found


def jobset_of(example: Path) -> Json:
    document: Json = yaml.safe_load(example.read_text())
    return document


def until_over(cluster: Cluster, jobset: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while "Completed" not in (conditions := cluster.conditions(jobset)):
        assert "Failed" not in conditions, cluster.kubectl("describe", "jobset", jobset)
        assert time.monotonic() < deadline, cluster.kubectl("get", "events", "--sort-by=.lastTimestamp")
        time.sleep(0.5)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_runs_on_slices_that_are_given_back(cluster: Cluster, example: Path) -> None:
    jobset = jobset_of(example)
    name = jobset["metadata"]["name"]
    until_over(cluster, name)
    deadline = time.monotonic() + PATIENCE
    uid = cluster.get("jobset", name)["metadata"]["uid"]
    while left := cluster.get("nodes", "-l", f"google.com/tpu-slice-jobset-uid={uid}")["items"]:
        assert time.monotonic() < deadline, [node["metadata"]["name"] for node in left]
        time.sleep(0.5)


def test_what_was_planned_is_what_was_bought(cluster: Cluster) -> None:
    """Plan the JobSets as they are in the cluster, by the settings in Firestore, and look what GKE was asked for."""
    for example in EXAMPLES:
        until_over(cluster, jobset_of(example)["metadata"]["name"])
    jobsets = cluster.kubectl("get", "jobsets", "-A", "-o", "json")
    planned = cluster.slices("plan", "-f", "-", "--cluster", cluster.addresses.cluster_id, text=jobsets)["slices"]
    calls: list[Json] = get_json(f"{cluster.addresses.buttons}/calls")["calls"]
    created = {call["pool"] for call in calls if call["method"] == "CreateNodePool"}
    assert created >= {each["node_pool"]["name"] for each in planned}
    # A leader of another JobSet may take a pool that suits it too: then there is a second attempt.
    assert {pool.rpartition("-")[0] for pool in created} == {each["slice_id"] for each in planned}
    recorded = cluster.slices("list", "--all")["slices"]
    assert {each["id"] for each in recorded} == {each["slice_id"] for each in planned}
    assert {each["spec"]["hosts"] for each in recorded} == {each["hosts"] for each in planned}

"""Every example on the local stack: its slices are created, its Jobs run on them, nothing is left."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from infra.local.demo.http import get_json
from infra.local.plan import REPOSITORY, Plan
from infra.local.prerequisites import Tools
from infra.local.stack import running
from tests.examples.cluster import FAST, PATIENCE, Cluster, Json, seed, until_over

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.timeout(180)]

EXAMPLES = [
    each
    for each in sorted((REPOSITORY / "examples").glob("*.yaml"))
    if yaml.safe_load(each.read_text())["kind"] == "JobSet"
]


@pytest.fixture(scope="module")
def cluster(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run the whole stack with every example applied, as a user would."""
    state = tmp_path_factory.mktemp("examples")
    with running(Plan(state=state, sweep_seconds=1, gke_arguments=FAST), seed) as stack:
        found = Cluster(stack.addresses, tools)
        found.kubectl("apply", *(part for example in EXAMPLES for part in ("-f", str(example))))
        yield found


def jobset_of(example: Path) -> Json:
    document: Json = yaml.safe_load(example.read_text())
    return document


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_runs_on_slices_that_are_released(cluster: Cluster, example: Path) -> None:
    jobset = jobset_of(example)
    name = jobset["metadata"]["name"]
    until_over(cluster, name)
    deadline = time.monotonic() + PATIENCE
    uid = cluster.get("jobset", name)["metadata"]["uid"]
    while left := cluster.get("nodes", "-l", f"google.com/tpu-slice-owner-uid={uid}")["items"]:
        assert time.monotonic() < deadline, [node["metadata"]["name"] for node in left]
        time.sleep(0.5)


def test_the_plan_equals_what_was_created(cluster: Cluster) -> None:
    """Plan the JobSets of the cluster by the settings in Firestore, and compare with the calls to GKE."""
    for example in EXAMPLES:
        until_over(cluster, jobset_of(example)["metadata"]["name"])
    jobsets = json.loads(cluster.kubectl("get", "jobsets", "-A", "-o", "json"))
    for jobset in jobsets["items"]:
        del jobset["status"]  # as they were created: one that has ended needs no slices any more
    asked = ("plan", "-f", "-", "--cluster", cluster.addresses.cluster_id)
    planned = cluster.slices(*asked, text=json.dumps(jobsets))["slices"]
    calls: list[Json] = get_json(f"{cluster.addresses.buttons}/calls")["calls"]
    created = {call["pool"] for call in calls if call["method"] == "CreateNodePool"}
    assert created >= {each["node_pool"]["name"] for each in planned}
    # A leader of another JobSet may occupy a pool that suits it, too: then there is a second attempt.
    assert {pool.rpartition("-")[0] for pool in created} == {each["slice_id"] for each in planned}
    recorded = cluster.slices("list", "--all")["slices"]
    assert {each["id"] for each in recorded} == {each["slice_id"] for each in planned}
    assert {each["spec"]["hosts"] for each in recorded} == {each["hosts"] for each in planned}

"""Every example on the local stack: its slices are created, its Jobs run on them, nothing is left."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.examples.cluster import Cluster, Json
from tests.examples.stories import EXAMPLES
from tpu_slices.domain.planning.keys import KEY_LABEL

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


def jobset_of(example: Path) -> Json:
    document: Json = yaml.safe_load(example.read_text())
    return document


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_runs_on_slices_that_are_released(cluster: Cluster, example: Path) -> None:
    name = jobset_of(example)["metadata"]["name"]
    cluster.until_over(name)
    uid = cluster.get("jobsets", name)["metadata"]["uid"]
    cluster.until(lambda: not has_hosts(cluster, uid))


def has_hosts(cluster: Cluster, uid: str) -> bool:
    """Return whether hosts of slices that were made for a JobSet are its own still: others may have been given some."""
    made = cluster.items("nodes", f"google.com/tpu-slice-owner-uid={uid}")
    return any(each["metadata"]["labels"].get(KEY_LABEL, uid).startswith(uid) for each in made)


def test_the_plan_equals_what_was_created(cluster: Cluster) -> None:
    """Plan the JobSets of the cluster by the settings in Firestore, and compare with the calls to GKE."""
    names = [jobset_of(example)["metadata"]["name"] for example in EXAMPLES]
    for name in names:
        cluster.until_over(name)
    jobsets = [cluster.get("jobsets", name) for name in names]
    for jobset in jobsets:
        del jobset["status"]  # as they were created: one that has ended needs no slices any more
    asked = ("plan", "-f", "-", "--cluster", cluster.addresses.cluster_id)
    planned = cluster.slices(*asked, text=yaml.safe_dump_all(jobsets))["slices"]
    ids = {each["slice_id"] for each in planned}
    created = {pool for pool in cluster.calls("CreateNodePool") if pool.rpartition("-")[0] in ids}
    assert created == {each["node_pool"]["name"] for each in planned}
    recorded = [each for each in cluster.slices("list", "--all")["slices"] if each["claimed_by"] in ids]
    assert {each["claimed_by"] for each in recorded} == ids
    assert {each["spec"]["hosts"] for each in recorded} == {each["hosts"] for each in planned}

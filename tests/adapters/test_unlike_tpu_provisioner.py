"""Where our requests differ from TPU Provisioner's, each on purpose; all else is the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.adapters.stories import STORIES
from tests.adapters.tpu_provisioner import Json, node_pool_of
from tpu_slices.adapters.gke.requests import as_rest

HALL = "projects/other-project/reservations/hall-7"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A field that differs, and a story with its values; None: not set."""

    field: str
    story: str
    theirs: Any
    ours: Any
    why: str


DIFFERENCES = (
    Difference(
        field="name",
        story="v5e-of-several-hosts",
        theirs="34 characters of the JobSet's name and 5 of the Job's key",
        ours="tpu-llama-slice-0-oahqlz77blgqd-1",
        why="65 bits of identity, and a name that is used once",
    ),
    Difference(
        field="initialNodeCount",
        story="v6e-eight-chips-in-one-host",
        theirs=2,
        ours=1,
        why="chips / chips per host, exactly; they take 4 for every host",
    ),
    Difference(
        field="placementPolicy.type",
        story="v5e-of-one-host",
        theirs="COMPACT",
        ours=None,
        why="a single host takes no placement",
    ),
    Difference(
        field="placementPolicy.tpuTopology",
        story="v5e-of-one-host",
        theirs="2x2",
        ours=None,
        why="a single host takes no topology",
    ),
    Difference(
        field="placementPolicy.policyName",
        story="tpu7x-of-one-host",
        theirs="tpu-provisioner-2x2x1",
        ours=None,
        why="a single host takes no workload policy; the name of others is a setting",
    ),
    Difference(
        field="locations",
        story="a-tenants-node-selectors",
        theirs=["us-central2-b"],
        ours=["us-central2-a"],
        why="the pod or its reservation may name the zone",
    ),
    Difference(
        field="config.machineType",
        story="tpu7x-ultranet-by-its-name",
        theirs="tpu7x-standard-4t",
        ours="tpu7x-ultranet-4t",
        why="a pod may select a machine type that GKE gives only by its name",
    ),
    Difference(
        field="config.labels.node.kubernetes.io/instance-type",
        story="tpu7x-ultranet-by-its-name",
        theirs="tpu7x-ultranet-4t",
        ours=None,
        why="GKE sets it, of the machine type that the host has",
    ),
    Difference(
        field="config.labels.topology.kubernetes.io/zone",
        story="a-tenants-node-selectors",
        theirs="us-central2-a",
        ours=None,
        why="GKE refuses labels under Kubernetes' names",
    ),
    Difference(
        field="management.autoUpgrade",
        story="v5e-of-several-hosts",
        theirs=None,
        ours=True,
        why="as set for the cluster: off is refused in a release channel",
    ),
    Difference(
        field="maintenancePolicy.exclusionUntilEndOfSupport.enabled",
        story="v5e-of-several-hosts",
        theirs=None,
        ours=True,
        why="a setting: automatic upgrades are kept off in release channels, too",
    ),
    Difference(
        field="upgradeSettings.maxSurge",
        story="v5e-of-several-hosts",
        theirs=1,
        ours=None,
        why="a slice has no other host to move to; 0 is GKE's name for none",
    ),
    Difference(
        field="upgradeSettings.maxUnavailable",
        story="v5e-of-several-hosts",
        theirs=None,
        ours=1,
        why="its hosts are upgraded in their places",
    ),
    Difference(
        field="config.gvnic.enabled",
        story="v5e-of-several-hosts",
        theirs=None,
        ours=True,
        why="a setting: xpk's pools have it",
    ),
    Difference(
        field="maxPodsConstraint.maxPodsPerNode",
        story="every-setting",
        theirs="15",
        ours="32",
        why="a setting",
    ),
    Difference(
        field="config.diskType",
        story="v5e-of-several-hosts",
        theirs=None,
        ours="pd-balanced",
        why="the accelerator's default is written out: GKE's may change",
    ),
    Difference(field="config.diskSizeGb", story="every-setting", theirs=None, ours=200, why="a setting"),
    Difference(
        field="config.gcfsConfig.enabled",
        story="every-setting",
        theirs=None,
        ours=True,
        why="GKE takes a secondary boot disk only with image streaming",
    ),
    Difference(
        field="networkConfig.acceleratorNetworkProfile",
        story="tpu7x-as-xpk-names-it",
        theirs=None,
        ours="auto",
        why="a setting",
    ),
    Difference(
        field="config.labels.cloud.google.com/gke-networking-dra-driver",
        story="tpu7x-as-xpk-names-it",
        theirs=None,
        ours="true",
        why="goes with the accelerator network profile",
    ),
    Difference(
        field="config.hostMaintenancePolicy.maintenanceInterval",
        story="tpu7x-as-xpk-names-it",
        theirs=None,
        ours="PERIODIC",
        why="a setting",
    ),
    Difference(
        field="config.reservationAffinity.values",
        story="v5p-in-a-sub-block-that-another-project-shares",
        theirs=[HALL],
        ours=[f"{HALL}/reservationBlocks/block-1/reservationSubBlocks/sub-block-2"],
        why="blocks and sub-blocks",
    ),
    Difference(
        field="config.taints",
        story="exclusive-nodes",
        theirs=None,
        ours=[{"effect": "NO_SCHEDULE", "key": "alpha.jobset.sigs.k8s.io/no-schedule", "value": "true"}],
        why="exclusive nodes are tainted from the start; theirs later, by a script",
    ),
    Difference(
        field="config.shieldedInstanceConfig.enableIntegrityMonitoring",
        story="every-other-choice",
        theirs=True,
        ours=None,
        why="a setting",
    ),
    Difference(
        field="config.workloadMetadataConfig.mode",
        story="v5e-of-several-hosts",
        theirs=None,
        ours="GKE_METADATA",
        why="pods must not act as their node",
    ),
    Difference(
        field="config.oauthScopes",
        story="v5e-of-several-hosts",
        theirs=None,
        ours=["https://www.googleapis.com/auth/cloud-platform"],
        why="IAM alone decides what nodes may do",
    ),
    Difference(
        field="config.labels.google.com/tpu-provisioner-nodepool-hash",
        story="v5e-of-several-hosts",
        theirs="of labels, machine type, spot and reservation",
        ours="v1-5dk4lgdk6ogjy",
        why="of the tenant's request alone: settings never rebuild a slice",
    ),
)

ADDITIONS = {
    "config.labels.google.com/tpu-slice-": "whose slice it is",
    "config.resourceLabels.": "the bill names the workload whose machines they were",
    "nodeDrainConfig.": "a drain of an hour, GKE's own limit, would hold one of the cluster's few operations",
}
"""Prefixes of the fields that only we set, and why we do."""


def fields(message: Json, above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every leaf field with its path."""
    for key, value in message.items():
        if isinstance(value, dict):
            yield from fields(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def both(name: str) -> tuple[Json, Json]:
    """Return the fields of their request and of ours for a story."""
    theirs = node_pool_of(STORIES[name])
    assert theirs is not None
    return dict(fields(theirs)), dict(fields(dict(as_rest(STORIES[name].order))))


def differing(name: str) -> set[str]:
    theirs, ours = both(name)
    return {path for path in {*theirs, *ours} if theirs.get(path) != ours.get(path)}


KNOWN_TO_BOTH = [name for name, story in STORIES.items() if node_pool_of(story) is not None]


def test_only_the_v5e_device_and_flex_start_are_unknown_to_tpu_provisioner() -> None:
    assert set(STORIES) - set(KNOWN_TO_BOTH) == {"v5e-device", "v6e-flex-start", "tpu7x-flex-start"}


@pytest.mark.parametrize("name", KNOWN_TO_BOTH)
def test_no_field_differs_unintentionally(name: str) -> None:
    meant = {difference.field for difference in DIFFERENCES}
    assert {path for path in differing(name) - meant if not path.startswith(tuple(ADDITIONS))} == set()


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.field)
def test_each_intended_difference_is_there(difference: Difference) -> None:
    theirs, ours = both(difference.story)
    assert difference.field in differing(difference.story)
    assert (theirs.get(difference.field), ours.get(difference.field)) == (difference.theirs, difference.ours)


@pytest.mark.parametrize("beginning", ADDITIONS)
def test_each_intended_addition_is_ours_alone(beginning: str) -> None:
    theirs, ours = both("v5e-of-several-hosts")
    assert [path for path in theirs if path.startswith(beginning)] == []
    assert [path for path in ours if path.startswith(beginning)] != []

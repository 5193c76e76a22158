"""The CRD of TPUNodeGroups on a real API server: what TPU operator's users write is taken, and each rule refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from tests.cluster.asking import Answer, done
from tests.kubernetes.cluster import NODE_GROUPS, Cluster, Json
from tests.node_groups import CRD, IMAGE, PLURAL, SAMPLES, TEMPLATE, changed, of_a_template, one_host, two_hosts
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

ROOT = f"/apis/tpu.google.com/v1alpha1/namespaces/default/{PLURAL}"


@pytest.fixture(autouse=True, scope="module")
def defined(cluster: Cluster) -> None:
    """Define TPUNodeGroups for the tests of this file."""
    said = cluster.apply("-f", str(CRD))
    assert (said.code, said.error) == (0, ""), said.error
    until(lambda: tried(cluster, two_hosts()).code == 201, "the kind to be served")
    cluster.knows(NODE_GROUPS)


def tried(cluster: Cluster, group: Json) -> Answer:
    """Return what the API server says of a group that is not created."""
    return cluster.api.post(ROOT, group, dryRun="All", fieldValidation="Strict")


@pytest.fixture(scope="module")
def edited(cluster: Cluster) -> Iterator[Json]:
    """A group that nobody can change."""
    yield cluster.api.create(ROOT, two_hosts("edited"))
    done(cluster.api.delete(f"{ROOT}/edited"))


@pytest.mark.parametrize("name", SAMPLES)
def test_what_users_of_tpu_operator_write_is_taken_unchanged(cluster: Cluster, name: str) -> None:
    answer = tried(cluster, SAMPLES[name])
    assert (answer.code, answer.warnings) == (201, ())


TAKEN: dict[str, Json] = {
    "a name of 63 characters": one_host("a" * 63),
    "a zone for accelerators": changed(one_host(), nodeLocation="us-central1-ai1a"),
    "a reservation alone": changed(two_hosts(), instanceConfig__provisioningModel=None),
    "spot": changed(one_host(), instanceConfig__provisioningModel="SPOT"),
    "a regional template": changed(
        of_a_template(), instanceTemplateURI=TEMPLATE.replace("global", "regions/us-central1")
    ),
    "fewer nodes at least": changed(two_hosts(), minNodeCount=1),
    "no join": changed(two_hosts(), bootstrapKubernetes=None),
    "v6e": changed(two_hosts(), topology="2x4", instanceConfig={"machineType": "ct6e-standard-4t", "image": IMAGE}),
}


@pytest.mark.parametrize("case", TAKEN)
def test_what_is_possible_is_taken(cluster: Cluster, case: str) -> None:
    answer = tried(cluster, TAKEN[case])
    assert (answer.code, answer.warnings) == (201, ())


REFUSED: dict[str, tuple[Json, str]] = {
    "a name of 64 characters": (one_host("a" * 64), "metadata.name: at most 63 characters"),
    "a project that is none": (changed(one_host(), project="Demo"), "spec.project: Invalid value"),
    "a region": (changed(one_host(), nodeLocation="us-central1"), "spec.nodeLocation: Invalid value"),
    "no nodes": (changed(one_host(), nodeCount=0), "spec.nodeCount: Invalid value: 0"),
    "fewer than no nodes": (changed(one_host(), nodeCount=-1), "spec.nodeCount: Invalid value: -1"),
    "one node in bulk": (changed(one_host(), targetSizePolicyMode="BULK"), "targetSizePolicyMode: BULK for several"),
    "several one by one": (
        changed(two_hosts(), targetSizePolicyMode="INDIVIDUAL"),
        "targetSizePolicyMode: BULK for several",
    ),
    "another mode": (changed(one_host(), targetSizePolicyMode="SOME"), 'Unsupported value: "SOME"'),
    "no mode": (changed(one_host(), targetSizePolicyMode=None), "spec.targetSizePolicyMode: Required value"),
    "another connection": (changed(one_host(), acceleratorConnectionMode="DYNAMIC"), 'Unsupported value: "DYNAMIC"'),
    "more at least than at all": (changed(two_hosts(), minNodeCount=3), "minNodeCount: at most nodeCount"),
    "an empty topology": (changed(one_host(), topology=""), "spec.topology: Invalid value"),
    "a topology of one side": (changed(one_host(), topology="4"), "spec.topology: Invalid value"),
    "neither config nor template": (
        changed(one_host(), instanceConfig=None),
        "one of instanceConfig and instanceTemplateURI is required",
    ),
    "both config and template": (
        changed(one_host(), instanceTemplateURI=TEMPLATE, bootstrapKubernetes=None),
        "instanceConfig and instanceTemplateURI exclude each other",
    ),
    "a template that we should bootstrap": (
        changed(of_a_template(), bootstrapKubernetes={"controlPlaneIP": "10.0.0.2"}),
        "hosts of an instance template of your own join by themselves",
    ),
    "a template of another project": (
        changed(of_a_template(), instanceTemplateURI="projects/other-project/global/instanceTemplates/x"),
        "instanceTemplateURI: projects/PROJECT/global/instanceTemplates/NAME",
    ),
    "a template by its name": (
        changed(of_a_template(), instanceTemplateURI="our-hosts"),
        "instanceTemplateURI: projects/PROJECT/global/instanceTemplates/NAME",
    ),
    "a machine without TPU": (
        changed(one_host(), instanceConfig__machineType="n1-standard-1"),
        "spec.instanceConfig.machineType: Invalid value",
    ),
    "no machine type": (
        changed(one_host(), instanceConfig__machineType=None),
        "spec.instanceConfig.machineType: Required value",
    ),
    "another provisioning model": (
        changed(one_host(), instanceConfig__provisioningModel="FLEX_START"),
        'Unsupported value: "FLEX_START"',
    ),
    "bound to no reservation": (
        changed(one_host(), instanceConfig__provisioningModel="RESERVATION_BOUND"),
        "provisioningModel: RESERVATION_BOUND needs a reservation",
    ),
    "a reservation for spot": (
        changed(two_hosts(), instanceConfig__provisioningModel="SPOT"),
        "reservation: it needs provisioningModel RESERVATION_BOUND, or none",
    ),
    "two service accounts": (
        changed(one_host(), instanceConfig__serviceAccounts=[{"email": "a@b", "scopes": []}] * 2),
        "spec.instanceConfig.serviceAccounts: Too many: 2",
    ),
    "a disk of nothing": (
        changed(one_host(), instanceConfig__bootDiskSizeGB=0),
        "spec.instanceConfig.bootDiskSizeGB: Invalid value: 0",
    ),
    "a tag that is none": (
        changed(one_host(), instanceConfig__networkTags=["No Tag"]),
        "spec.instanceConfig.networkTags[0]: Invalid value",
    ),
    "a version with a patch": (
        changed(one_host(), bootstrapKubernetes__version="1.31.2"),
        "spec.bootstrapKubernetes.version: Invalid value",
    ),
    "an address with a port": (
        changed(one_host(), bootstrapKubernetes__controlPlaneIP="10.0.0.2:6443"),
        "spec.bootstrapKubernetes.controlPlaneIP: Invalid value",
    ),
    "no address": (
        changed(one_host(), bootstrapKubernetes={}),
        "spec.bootstrapKubernetes.controlPlaneIP: Required value",
    ),
    "a field that is none": (changed(one_host(), nodeNumber=1), 'unknown field "spec.nodeNumber"'),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_impossible_is_refused_with_the_field(cluster: Cluster, case: str) -> None:
    group, why = REFUSED[case]
    answer = tried(cluster, group)
    assert answer.code in {400, 422}
    assert why in answer.body["message"]


EDITS: dict[str, dict[str, Any]] = {
    "more nodes": {"nodeCount": 4},
    "another topology": {"topology": "2x2x4"},
    "another reservation": {"instanceConfig__reservation": "other"},
    "no reservation any more": {"instanceConfig__reservation": None, "instanceConfig__provisioningModel": None},
    "a field that was not there": {"instanceConfig__diskType": "hyperdisk-balanced"},
    "metadata that was not there": {"instanceConfig__metadata": {"key": "value"}},
    "no bootstrapping any more": {"bootstrapKubernetes": None},
    "a least number that was not there": {"minNodeCount": 1},
    "another version": {"bootstrapKubernetes__version": "1.32"},
}


@pytest.mark.parametrize("case", EDITS)
def test_a_spec_is_never_changed_nor_are_fields_added_or_removed(cluster: Cluster, edited: Json, case: str) -> None:
    answer = cluster.api.put(f"{ROOT}/edited", changed(edited, **EDITS[case]))
    assert answer.refusal == (422, "Invalid")
    assert "spec cannot be changed, nor fields added or removed" in answer.body["message"]


def test_the_same_manifest_is_applied_again_and_labels_may_change(cluster: Cluster) -> None:
    text = orjson.dumps(two_hosts("again")).decode()
    said = [cluster.kubectl("apply", "-f", "-", stdin=text).out.split() for _ in range(2)]
    name = f"{NODE_GROUPS.replace('s.', '.', 1)}/again"
    assert said == [[name, "created"], [name, "unchanged"]]
    assert cluster.kubectl("label", PLURAL, "again", "team=research").code == 0


def test_defaults_are_those_of_tpu_operator(cluster: Cluster) -> None:
    bare = changed(one_host(), instanceConfig__subnetwork=None)
    spec = done(tried(cluster, bare))["spec"]
    assert (spec["bootstrapKubernetes"]["version"], spec["instanceConfig"]["subnetwork"]) == ("1.31", "default")


def test_a_list_shows_how_far_each_is(cluster: Cluster) -> None:
    now = "2026-11-24T12:00:00Z"
    ready = {"type": "Ready", "status": "False", "reason": "AwaitingNodeJoin", "message": "", "lastTransitionTime": now}
    status = {"status": {"observedGeneration": 1, "conditions": [ready], "nodeSummary": {"ready": 1, "reconciling": 1}}}
    cluster.api.create(ROOT, two_hosts("shown"))
    done(cluster.api.patch(f"{ROOT}/shown/status", status))
    header, row = cluster.kubectl("get", "tng", "shown").out.splitlines()
    assert header.split() == ["NAME", "TOPOLOGY", "NODES", "USABLE", "READY", "REASON", "AGE"]
    assert row.split()[:6] == ["shown", "2x2x2", "2", "1", "False", "AwaitingNodeJoin"]

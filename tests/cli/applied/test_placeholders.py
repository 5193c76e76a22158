"""`slices plan` of files in which something is to be filled in: it is asked for where slices depend on it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.applied.asking import a_jobset, answer, groups, invalid, pod_of
from tests.cli.conftest import Slices

TEMPLATE = "spec.replicatedJobs[0].template.spec.template"


def changed(jobset: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """Return the object with another value at a place, whose parents are made if they are missing."""
    inner = jobset
    for key in path[:-1]:
        inner = inner.setdefault(key, {}) if isinstance(key, str) else inner[key]
    inner[path[-1]] = value
    return jobset


JOB = ("spec", "replicatedJobs", 0)
POD = (*JOB, "template", "spec", "template", "spec")
CONTAINER = (*POD, "containers", 0)


@pytest.mark.parametrize(
    ("path", "mark"),
    [
        pytest.param((*CONTAINER, "image"), "${IMAGE}", id="an image"),
        pytest.param((*CONTAINER, "image"), "us-docker.pkg.dev/<PROJECT>/train:1", id="a project in an image"),
        pytest.param((*CONTAINER, "workingDir"), "<DIR>", id="a folder"),
        pytest.param((*POD, "serviceAccountName"), "{{ .Values.account }}", id="a service account"),
        pytest.param(
            (*POD, "volumes"), [{"name": "b", "csi": {"volumeAttributes": {"bucketName": "${B}"}}}], id="bucket"
        ),
        pytest.param(("metadata", "labels", "app.kubernetes.io/name"), "$APP", id="a label for people"),
        pytest.param(("metadata", "labels", "team"), "$TEAM", id="a label of their own"),
        pytest.param(("metadata", "annotations", "example.com/owner"), "<your-name>", id="an annotation of their own"),
    ],
)
def test_a_placeholder_on_which_no_slice_depends_is_warned_of(
    slices: Slices, path: tuple[str | int, ...], mark: Any
) -> None:
    found = answer(slices, changed(a_jobset(), path, mark))
    assert len(found["slices"]) == 1
    (warning,) = found["warnings"]
    assert warning.startswith("JobSet v5e: ")
    assert warning.endswith("no slice depends on this placeholder: fill it in before you apply the file")


def test_several_are_named_in_one_warning(slices: Slices) -> None:
    jobset = changed(a_jobset(), (*CONTAINER, "image"), "${IMAGE}")
    pod_of(jobset)["serviceAccountName"] = "<SA>"
    (warning,) = answer(slices, jobset)["warnings"]
    assert warning == (
        f"JobSet v5e: {TEMPLATE}.spec.containers[0].image: ${{IMAGE}}, {TEMPLATE}.spec.serviceAccountName: <SA>: no "
        "slice depends on these placeholders: fill them in before you apply the file"
    )


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(("metadata", "name"), id="the name"),
        pytest.param(("metadata", "namespace"), id="the namespace"),
        pytest.param(("metadata", "labels", "kueue.x-k8s.io/queue-name"), id="the queue"),
        pytest.param((*JOB, "name"), id="the name of a replicatedJob"),
        pytest.param((*JOB, "replicas"), id="replicas"),
        pytest.param((*JOB, "template", "spec", "parallelism"), id="parallelism"),
        pytest.param((*JOB, "template", "spec", "completions"), id="completions"),
        pytest.param((*CONTAINER, "resources", "limits", "google.com/tpu"), id="chips"),
        pytest.param((*CONTAINER, "resources", "requests", "memory"), id="memory"),
        pytest.param((*POD, "nodeSelector", "cloud.google.com/gke-tpu-topology"), id="the topology"),
        pytest.param((*POD, "nodeSelector", "cloud.google.com/reservation-name"), id="the reservation"),
        pytest.param((*POD, "nodeSelector", "team"), id="a selector of their own"),
        pytest.param((*POD, "tolerations"), id="tolerations"),
        pytest.param(
            (*POD[:-1], "metadata", "annotations", "tpu-provisioner.cloud.google.com/node-service-account"),
            id="the account of the hosts",
        ),
    ],
)
@pytest.mark.parametrize("mark", ["${X}", "<X>"])
def test_a_placeholder_on_which_slices_depend_is_to_be_filled_in_first(
    slices: Slices, path: tuple[str | int, ...], mark: str
) -> None:
    value: Any = [{"key": mark}] if path[-1] == "tolerations" else mark
    message = invalid(slices, changed(a_jobset(), path, value))
    assert f"{mark}: a placeholder: fill it in first" in message


@pytest.mark.parametrize(
    "path",
    [
        pytest.param((*POD[:-1], "metadata", "annotations", "network"), id="an annotation named as a field"),
        pytest.param(("metadata", "annotations", "cloud.google.com/owner"), id="an annotation of an owner"),
        pytest.param((*POD, "volumes"), id="an attribute of a volume named as a field"),
    ],
)
def test_a_placeholder_in_what_is_only_named_as_a_field_that_decides_is_warned_of(
    slices: Slices, path: tuple[str | int, ...]
) -> None:
    driver = {"driver": "parallelstore.csi.storage.gke.io", "volumeAttributes": {"size": "<X>"}}
    value: Any = [{"name": "data", "csi": driver}] if path[-1] == "volumes" else "<X>"
    found = answer(slices, changed(a_jobset(), path, value))
    assert len(found["slices"]) == 1
    assert any("<X>: no slice depends on this placeholder" in each for each in found["warnings"])


def test_what_exists_has_no_placeholders(slices: Slices) -> None:
    jobset = changed(a_jobset(), ("metadata", "labels", "kueue.x-k8s.io/queue-name"), "<big>")
    jobset["metadata"]["uid"] = "u-1"
    assert answer(slices, jobset)["warnings"] == answer(slices, a_jobset())["warnings"]


def test_who_has_a_generated_name_is_named_by_such(slices: Slices) -> None:
    jobset = changed(a_jobset(), (*CONTAINER, "image"), "${IMAGE}")
    jobset["metadata"] = {"generateName": "train-"}
    warnings = answer(slices, jobset)["warnings"]
    assert warnings
    assert all(each.startswith("JobSet train-xxxxx") for each in warnings)


def test_an_image_is_not_asked_for_beside_what_slices_depend_on(slices: Slices) -> None:
    jobset = changed(a_jobset(), (*CONTAINER, "image"), "${IMAGE}")
    jobset["metadata"]["namespace"] = "<NS>"
    assert invalid(slices, jobset) == "metadata.namespace: <NS>: a placeholder: fill it in first"


def test_everything_that_a_node_group_declares_is_its_slice(slices: Slices) -> None:
    group = {
        "apiVersion": "tpu.google.com/v1alpha1",
        "kind": "TPUNodeGroup",
        "metadata": {"name": "g", "namespace": "research"},
        "spec": {"reservation": "<RESERVATION>"},
    }
    assert "spec.reservation: <RESERVATION>: a placeholder: fill it in first" in invalid(slices, group)


def test_groups_are_read_alike(slices: Slices) -> None:
    assert "spec.leaderWorkerTemplate.size: ${SIZE}: a placeholder" in invalid(
        slices, changed(groups(), ("spec", "leaderWorkerTemplate", "size"), "${SIZE}")
    )


@pytest.mark.parametrize("text", ["a < b", "<>", "List<int> x", "1 <2> 3"])
def test_angles_around_anything_but_a_name_are_none(slices: Slices, text: str) -> None:
    jobset = changed(a_jobset(), ("metadata", "annotations", "note"), text)
    assert bool(answer(slices, jobset)["warnings"]) == ("<int>" in text)

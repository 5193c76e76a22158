import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import self_managed, settings
from tpu_slices.domain.model.slices import (
    LAST_ATTEMPT,
    ClaimId,
    ClusterId,
    Owner,
    OwnerKind,
    PoolName,
    WorkloadJob,
    WorkloadUid,
    claim_id,
    pool_name,
)
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.operations import EndedOperation, ended_operation

EVENTS = Path(__file__).parents[1] / "events" / "audit_log"
names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?", fullmatch=True)
jobs = st.builds(
    WorkloadJob,
    cluster=st.just(ClusterId("demo")),
    owner=st.builds(
        Owner,
        kind=st.sampled_from(OwnerKind),
        namespace=names,
        name=names,
        uid=st.uuids().map(lambda uid: WorkloadUid(str(uid))),
    ),
    replicated_job=names,
    job_index=st.integers(0, 100_000),
)


def entry(name: str = "create_ended") -> dict[str, Any]:
    contents: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text())
    return contents


def read(contents: dict[str, Any]) -> EndedOperation | None:
    return ended_operation(json.dumps(contents).encode())


@pytest.mark.parametrize("name", ["create_ended", "create_failed", "delete_ended"])
def test_an_ended_operation_names_its_slice(name: str) -> None:
    assert read(entry(name)) == EndedOperation(
        project="demo-project",
        cluster_path="projects/demo-project/locations/us-central2/clusters/demo",
        pool=PoolName("tpu-llama-0-ni2rmqnzkqh7a-1"),
        slice_id=ClaimId("tpu-llama-0-ni2rmqnzkqh7a"),
        attempt=1,
        operation="operation-1793534400000-0f1e2d3c-4b5a-4968-8776-655443322110",
        created=name == "create_ended",
    )


@pytest.mark.parametrize("changes", [{"severity": "ERROR"}, {"status": {"code": 8}}, {"status": None}], ids=str)
def test_a_creation_whose_end_is_logged_otherwise_than_without_error_is_to_be_looked_at(
    changes: dict[str, Any],
) -> None:
    ended = entry()
    status = {key: value for key, value in changes.items() if key == "status"}
    ended = ended | changes | {"protoPayload": ended["protoPayload"] | status}
    found = read(ended)
    assert found is not None
    assert not found.created


def test_a_call_refused_at_once_has_no_operation() -> None:
    ended = read(entry("create_refused"))
    assert ended is not None
    assert (ended.slice_id, ended.operation) == ("tpu-llama-0-ni2rmqnzkqh7a", None)


def test_an_operation_that_only_began_is_ignored() -> None:
    assert read(entry("create_began")) is None


@given(jobs, st.integers(1, LAST_ATTEMPT))
def test_every_pool_of_ours_is_recognized_by_its_name(job: WorkloadJob, attempt: int) -> None:
    contents = entry()
    contents["resource"]["labels"]["nodepool_name"] = pool_name(claim_id(job), attempt)
    ended = read(contents)
    assert ended is not None
    assert (ended.slice_id, ended.attempt) == (claim_id(job), attempt)


@pytest.mark.parametrize("pool", ["default-pool", "tpu-llama-0", "tpu-llama-0-ni2rmqnzkqh7a", "xtpu-a-ni2rmqnzkqh7a-1"])
def test_a_pool_that_is_not_ours_is_ignored(pool: str) -> None:
    contents = entry()
    contents["resource"]["labels"]["nodepool_name"] = pool
    assert read(contents) is None


@pytest.mark.parametrize("method", ["SetNodePoolSize", "SetNodePoolManagement", "CreateCluster"])
def test_another_method_is_ignored(method: str) -> None:
    contents = entry()
    contents["protoPayload"]["methodName"] = f"google.container.v1.ClusterManager.{method}"
    assert read(contents) is None


def test_the_beta_api_is_read_too() -> None:
    contents = entry()
    contents["protoPayload"]["methodName"] = "google.container.v1beta1.ClusterManager.CreateNodePool"
    assert read(contents) is not None


def test_another_resource_is_ignored() -> None:
    contents = entry()
    contents["resource"]["type"] = "gke_cluster"
    assert read(contents) is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "log entry: data: Invalid JSON"),
        (b"{}", "log entry: resource: Field required"),
        (b'{"resource": {"type": "gke_nodepool"}}', "log entry: protoPayload: Field required"),
    ],
)
def test_a_malformed_log_entry_is_an_error_that_names_the_field(data: bytes, message: str) -> None:
    with pytest.raises(Permanent, match=message):
        ended_operation(data)


def test_a_pool_without_its_cluster_is_an_error() -> None:
    contents = entry()
    del contents["resource"]["labels"]["cluster_name"]
    with pytest.raises(Permanent, match="log entry: cluster_name: Field required"):
        read(contents)


@pytest.mark.parametrize(
    "name",
    [
        "compute_policy_ended",
        "compute_template_ended",
        "compute_group_ended",
        "compute_group_failed",
        "compute_group_deleted",
    ],
)
def test_an_ended_operation_on_a_part_of_a_slice_names_the_slice_and_the_project(name: str) -> None:
    assert read(entry(name)) == EndedOperation(
        project="demo-project",
        cluster_path=None,
        pool=PoolName("tpu-llama-0-ni2rmqnzkqh7a-1"),
        slice_id=ClaimId("tpu-llama-0-ni2rmqnzkqh7a"),
        attempt=1,
        operation="operation-1793534400000-5737ae0506599-94b474c4-9c60921a",
    )


def test_a_part_that_compute_engine_refused_at_once_has_no_operation() -> None:
    ended = read(entry("compute_policy_refused"))
    assert ended is not None
    assert (ended.slice_id, ended.operation) == ("tpu-llama-0-ni2rmqnzkqh7a", None)


def test_a_part_whose_creation_only_began_is_ignored() -> None:
    assert read(entry("compute_group_began")) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("methodName", "v1.compute.instanceGroupManagers.resize"),
        ("methodName", "v1.compute.instances.insert"),
        ("methodName", "v1.compute.regionInstanceTemplates.insert"),
        ("resourceName", "projects/demo-project/zones/us-central2-b/instanceGroupManagers/gke-demo-default-pool-grp"),
        ("serviceName", "container.googleapis.com"),
    ],
)
def test_what_else_compute_engine_logs_is_ignored(field: str, value: str) -> None:
    contents = entry("compute_group_ended")
    contents["protoPayload"][field] = value
    assert read(contents) is None


def test_an_entry_of_compute_engine_without_its_project_is_an_error() -> None:
    contents = entry("compute_group_ended")
    del contents["resource"]["labels"]["project_id"]
    with pytest.raises(Permanent, match="log entry: project_id: Field required"):
        read(contents)


def test_an_operation_may_be_of_the_clusters_of_its_own_kind_and_place_only() -> None:
    of_gke, of_compute = read(entry("create_ended")), read(entry("compute_group_ended"))
    assert of_gke is not None
    assert of_compute is not None
    ours, another = settings(), self_managed(path="projects/other/locations/us-central2")
    clusters = [ours, replace(ours, path=f"{ours.path}-2"), self_managed(), another]
    assert [of_gke.may_be_of(cluster) for cluster in clusters] == [True, False, False, False]
    assert [of_compute.may_be_of(cluster) for cluster in clusters] == [False, False, True, False]

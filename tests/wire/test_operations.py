import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpu_slices.domain.model.slices import (
    LAST_ATTEMPT,
    ClusterId,
    Owner,
    OwnerKind,
    PoolName,
    SliceId,
    WorkloadJob,
    WorkloadUid,
    pool_name,
    slice_id,
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
        cluster_path="projects/demo-project/locations/us-central2/clusters/demo",
        pool=PoolName("tpu-llama-0-ni2rmqnzkqh7a-1"),
        slice_id=SliceId("tpu-llama-0-ni2rmqnzkqh7a"),
        operation="operation-1793534400000-0f1e2d3c-4b5a-4968-8776-655443322110",
    )


def test_a_call_refused_at_once_has_no_operation() -> None:
    ended = read(entry("create_refused"))
    assert ended is not None
    assert (ended.slice_id, ended.operation) == ("tpu-llama-0-ni2rmqnzkqh7a", None)


def test_an_operation_that_only_began_is_ignored() -> None:
    assert read(entry("create_began")) is None


@given(jobs, st.integers(1, LAST_ATTEMPT))
def test_every_pool_of_ours_is_recognized_by_its_name(job: WorkloadJob, attempt: int) -> None:
    contents = entry()
    contents["resource"]["labels"]["nodepool_name"] = pool_name(slice_id(job), attempt)
    ended = read(contents)
    assert ended is not None
    assert ended.slice_id == slice_id(job)


@pytest.mark.parametrize("pool", ["default-pool", "tpu-llama-0", "tpu-llama-0-ni2rmqnzkqh7a", "xtpu-a-ni2rmqnzkqh7a-1"])
def test_a_pool_that_is_not_ours_is_ignored(pool: str) -> None:
    contents = entry()
    contents["resource"]["labels"]["nodepool_name"] = pool
    assert read(contents) is None


@pytest.mark.parametrize("method", ["SetNodePoolSize", "UpdateNodePool", "CreateCluster"])
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

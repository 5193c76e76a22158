"""Decodes the audit log entries of ended operations of GKE and Compute Engine, which a log sink publishes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import ClaimId, PoolName, attempt_named
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.validation import first_error

_OF_ERRORS = frozenset({"ERROR", "CRITICAL", "ALERT", "EMERGENCY"})
_POOL = "gke_nodepool"
_POOL_METHOD = re.compile(r"\.(Create|Delete|Update)NodePool$")
_COMPUTE = "compute.googleapis.com"
_COMPUTE_METHOD = re.compile(r"\.(resourcePolicies|instanceTemplates|instanceGroupManagers)\.(insert|delete|patch)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedOperation:
    """An operation on one of our pools, or on a part of one, has ended."""

    project: str
    cluster_path: str | None
    """`projects/P/locations/L/clusters/C`; None: that of a self-managed cluster, and the entry does not say which."""
    pool: PoolName
    slice_id: ClaimId
    """The claim that the pool was made for."""
    attempt: int
    operation: str | None
    """`operation-<epoch ms>-<uuid>`; None: the call was rejected at once, and no operation began."""
    created: bool = False
    """It created the pool, and did not fail; if it did something else, a look finds out how it ended."""

    def may_be_of(self, cluster: ClusterSettings) -> bool:
        """Return whether it is of a cluster, as far as the entry tells: self-managed ones may share a project."""
        if self.cluster_path is not None:
            return cluster.path == self.cluster_path
        return cluster.self_managed and cluster.path.startswith(f"projects/{self.project}/")


class _Read(BaseModel):
    """Part of an entry."""

    model_config = ConfigDict(defer_build=True)


class _Labels(_Read):
    project_id: str


class _PoolLabels(_Labels):
    location: str
    cluster_name: str
    nodepool_name: str


class _Resource(_Read):
    type: str
    labels: dict[str, str] = {}


class _Operation(_Read):
    id: str
    last: bool = False


class _AuditLog(_Read):
    method: str = Field(alias="methodName", default="")
    status: dict[str, Any] | None = None
    """Empty: no error."""
    service: str = Field(alias="serviceName", default="")
    resource: str = Field(alias="resourceName", default="")


class _LogEntry(_Read):
    """LogEntry with an AuditLog payload (google.logging.v2, google.cloud.audit): the fields that are read."""

    resource: _Resource
    severity: str = ""
    operation: _Operation | None = None
    payload: _AuditLog = Field(alias="protoPayload")


def ended_operation(data: bytes) -> EndedOperation | None:
    """Return the operation of an Admin Activity log entry, or None if it is not the end of one on one of our pools.

    A long-running call logs two entries, the latter with `operation.last`; a rejected call logs one entry without
    `operation`. Raise Permanent if the data is no such entry.
    """
    try:
        entry = _LogEntry.model_validate_json(data)
        if entry.operation is not None and not entry.operation.last:
            return None
        if entry.resource.type == _POOL:
            return _of_gke(entry)
        return _of_compute(entry) if entry.payload.service == _COMPUTE else None
    except ValidationError as invalid:
        raise Permanent(f"log entry: {first_error(invalid)}") from invalid


def _of_gke(entry: _LogEntry) -> EndedOperation | None:
    """Return the operation on one of our node pools.

    The pool is taken from `resource.labels`: `resourceName` has `zones/` where the call had `locations/`.
    """
    if not _POOL_METHOD.search(entry.payload.method):
        return None
    labels = _PoolLabels.model_validate(entry.resource.labels)
    path = f"projects/{labels.project_id}/locations/{labels.location}/clusters/{labels.cluster_name}"
    return _ended(entry, labels.nodepool_name, labels.project_id, path)


def _of_compute(entry: _LogEntry) -> EndedOperation | None:
    """Return the operation on a policy, template or group of ours.

    The name is taken from `resourceName`: the labels of policies have none.
    """
    if not _COMPUTE_METHOD.search(entry.payload.method):
        return None
    labels = _Labels.model_validate(entry.resource.labels)
    return _ended(entry, entry.payload.resource.rpartition("/")[2], labels.project_id, None)


def _ended(entry: _LogEntry, name: str, project: str, cluster_path: str | None) -> EndedOperation | None:
    if (ours := attempt_named(name)) is None:
        return None
    slice_, attempt = ours
    creates = entry.operation is not None and entry.payload.method.endswith(".CreateNodePool")
    return EndedOperation(
        project=project,
        cluster_path=cluster_path,
        pool=PoolName(name),
        slice_id=slice_,
        attempt=attempt,
        operation=entry.operation.id if entry.operation else None,
        created=creates and entry.payload.status == {} and entry.severity not in _OF_ERRORS,
    )

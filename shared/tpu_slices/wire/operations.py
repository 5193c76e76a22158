"""Decodes the audit log entries of ended node pool operations, which a log sink publishes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic import BaseModel, Field, ValidationError

from tpu_slices.domain.model.slices import PoolName, SliceId, is_slice_id
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.validation import first_error

_OUR_POOL = re.compile(r"(.+)-[1-9][0-9]{0,3}")
_METHOD = re.compile(r"\.(Create|Delete)NodePool$")


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedOperation:
    """An operation on one of our pools has ended; the next reconcile finds out how."""

    cluster_path: str
    """`projects/P/locations/L/clusters/C`."""
    pool: PoolName
    slice_id: SliceId
    operation: str | None
    """`operation-<epoch ms>-<uuid>`; None: the call was rejected at once, and no operation began."""


class _Labels(BaseModel):
    project_id: str
    location: str
    cluster_name: str
    nodepool_name: str


class _Resource(BaseModel):
    type: str
    labels: dict[str, str] = {}


class _Operation(BaseModel):
    id: str
    last: bool = False


class _AuditLog(BaseModel):
    method: str = Field(alias="methodName", default="")


class _LogEntry(BaseModel):
    """LogEntry with an AuditLog payload (google.logging.v2, google.cloud.audit): the fields that are read."""

    resource: _Resource
    operation: _Operation | None = None
    payload: _AuditLog = Field(alias="protoPayload")


def ended_operation(data: bytes) -> EndedOperation | None:
    """Return the operation of an Admin Activity log entry, or None if it is not the end of one on one of our pools.

    A long-running call logs two entries, the latter with `operation.last`; a rejected call logs one entry without
    `operation`. The pool is taken from `resource.labels`, since `resourceName` has `zones/` where the call had
    `locations/`. Raise Permanent if the data is no such entry.
    """
    try:
        entry = _LogEntry.model_validate_json(data)
        ended = entry.operation is None or entry.operation.last
        if not ended or entry.resource.type != "gke_nodepool" or not _METHOD.search(entry.payload.method):
            return None
        labels = _Labels.model_validate(entry.resource.labels)
    except ValidationError as invalid:
        raise Permanent(f"log entry: {first_error(invalid)}") from invalid
    ours = _OUR_POOL.fullmatch(labels.nodepool_name)
    if ours is None or not is_slice_id(ours[1]):
        return None
    return EndedOperation(
        cluster_path=f"projects/{labels.project_id}/locations/{labels.location}/clusters/{labels.cluster_name}",
        pool=PoolName(labels.nodepool_name),
        slice_id=SliceId(ours[1]),
        operation=entry.operation.id if entry.operation else None,
    )

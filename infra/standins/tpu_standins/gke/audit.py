"""The audit log of node pool operations, and the log sink's filter.

Format: real entries in [khi]. An operation that ends writes an entry with `operation.last`, whether it succeeded or
failed; its `protoPayload.status` is {} or {code, message}, its severity NOTICE or ERROR.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from google.cloud.container_v1 import Operation as Wire

from tpu_standins.cloud.sink import Filter
from tpu_standins.cloud.timed import Entry
from tpu_standins.gke.paths import parse_cluster, timestamp
from tpu_standins.gke.state import Operation

_METHODS = {
    Wire.Type.CREATE_NODE_POOL: "CreateNodePool",
    Wire.Type.DELETE_NODE_POOL: "DeleteNodePool",
    Wire.Type.UPGRADE_NODES: "UpdateNodePool",
}
"""GKE calls most updates of node pools upgrades [py-gke Operation.Type.UPGRADE_NODES]."""
_SERVICE = "container.googleapis.com"
_FILTER = Filter(_SERVICE, {"gke_nodepool"}, re.compile(r"ClusterManager\.(Create|Delete|Update)NodePool$"))


def started_entry(operation: Operation) -> Entry | None:
    """Return the entry of an operation's start; None for operations not requested through the node pool methods."""
    return _entry(operation, operation.started, {"first": True}, {})


def ended_entry(operation: Operation) -> Entry | None:
    error = operation.error
    status = {"code": error.code, "message": error.message} if error else {}
    return _entry(operation, operation.ended or operation.due, {"last": True}, status)


def _entry(operation: Operation, at: float, edge: Mapping[str, bool], status: Mapping[str, Any]) -> Entry | None:
    cluster = parse_cluster(operation.cluster)
    if operation.kind not in _METHODS or cluster is None:
        return None
    return {
        "insertId": hashlib.sha256(f"{operation.name}{sorted(edge)}".encode()).hexdigest()[:16],
        "logName": f"projects/{cluster.project}/logs/cloudaudit.googleapis.com%2Factivity",
        "protoPayload": {
            "@type": "type.googleapis.com/google.cloud.audit.AuditLog",
            "serviceName": _SERVICE,
            "methodName": f"google.container.v1.ClusterManager.{_METHODS[operation.kind]}",
            "resourceName": operation.target,
            "status": dict(status),
        },
        "resource": {
            "type": "gke_nodepool",
            "labels": {
                "project_id": cluster.project,
                "location": cluster.location,
                "cluster_name": cluster.name,
                "nodepool_name": operation.target.rpartition("/")[2],
            },
        },
        "operation": {"id": operation.name, "producer": _SERVICE, **edge},
        "timestamp": timestamp(at),
        "receiveTimestamp": timestamp(at),
        "severity": "ERROR" if status else "NOTICE",
    }


def passes_sink(entry: Mapping[str, Any], pools: str = "") -> bool:
    """Return whether the sink exports an entry. `pools`: prefix of the node pools' names, empty for all."""
    labels = entry.get("resource", {}).get("labels", {})
    return _FILTER.passes(entry) and str(labels.get("nodepool_name", "")).startswith(pools)

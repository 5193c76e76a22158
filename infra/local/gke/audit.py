"""The audit log of node pool operations, and the log sink: its filter, and its export to Pub/Sub.

Format: real entries in [khi]. An operation that ends writes an entry with `operation.last`, whether it succeeded or
failed; its `protoPayload.status` is {} or {code, message}, its severity NOTICE or ERROR.
"""

import contextlib
import hashlib
import json
import logging
import re
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from google.api_core.exceptions import GoogleAPIError
from google.cloud.container_v1 import Operation as Wire
from google.cloud.pubsub_v1 import PublisherClient

from infra.local.gke.paths import parse_cluster, timestamp
from infra.local.gke.state import Operation
from infra.local.patience import PATIENCE_SECONDS
from infra.local.timed import Entry

_log = logging.getLogger(__name__)

_METHODS = {
    Wire.Type.CREATE_NODE_POOL: "CreateNodePool",
    Wire.Type.DELETE_NODE_POOL: "DeleteNodePool",
    Wire.Type.UPGRADE_NODES: "UpdateNodePool",
}
"""GKE calls most updates of node pools upgrades [py-gke Operation.Type.UPGRADE_NODES]."""
_SERVICE = "container.googleapis.com"
_METHOD = re.compile(r"ClusterManager\.(Create|Delete|Update)NodePool$")


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
    """Apply the sink's filter as Cloud Logging would [doc:logging configure_export_v2].

    `pools`: prefix of the node pools' names, empty for all.
    """
    payload, resource = entry.get("protoPayload", {}), entry.get("resource", {})
    return (
        resource.get("type") == "gke_nodepool"
        and payload.get("serviceName") == _SERVICE
        and _METHOD.search(payload.get("methodName", "")) is not None
        and entry.get("operation", {}).get("last") is True
        and str(resource.get("labels", {}).get("nodepool_name", "")).startswith(pools)
    )


class PubSubSink:
    """Publishes to one topic, `projects/P/topics/T`; PUBSUB_EMULATOR_HOST selects the emulator, as for any client."""

    def __init__(self, topic: str, publisher: Any = None) -> None:
        self._topic = topic
        self._publisher = publisher or PublisherClient()

    def __call__(self, entry: Entry) -> None:
        """Publish an entry and wait for it; an entry that is refused is lost, as with a sink that lacks permission."""
        data = json.dumps(entry).encode()
        attributes = {"logging.googleapis.com/timestamp": entry["timestamp"]}
        try:
            self._publisher.publish(self._topic, data, **attributes).result(timeout=PATIENCE_SECONDS)
        except (GoogleAPIError, TimeoutError) as error:
            _log.warning("log entry %s was lost: %s", entry["insertId"], error)

    def close(self) -> None:
        self._publisher.stop()
        self._publisher.transport.close()


def sink(topic: str | None, closing: ExitStack) -> PubSubSink | None:
    """Return the sink of a topic, until all is closed; None: there is none."""
    return closing.enter_context(contextlib.closing(PubSubSink(topic))) if topic else None

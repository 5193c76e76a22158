"""The audit log of Compute Engine's operations, and the log sink's filter.

Format: entries of Compute Engine in public samples ("operation-1622018793735-5c337ae050659-94b474c4-9c60921a");
resource types and their labels: the list of monitored resources [doc:monitoring/api/resources]. An operation that ends
writes an entry with `operation.last`, whether it succeeded or failed; a failure has the severity ERROR, the code's name
as its status' message, and the errors where public runbooks ask for them, `protoPayload.response.error.errors.code`.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from tpu_standins.cloud.sink import Filter
from tpu_standins.cloud.timed import Entry
from tpu_standins.compute.messages import identifier
from tpu_standins.compute.paths import Resource, timestamp
from tpu_standins.compute.state import Operation, State

_SERVICE = "compute.googleapis.com"
_TYPES = {
    "instanceGroupManagers": "gce_instance_group_manager",
    "instanceTemplates": "gce_instance_template",
    "resourcePolicies": "gce_resource_policy",
    "instances": "gce_instance",
}
_METHOD = re.compile(r"compute\.(instanceGroupManagers|instanceTemplates|resourcePolicies)\.(insert|delete|patch)$")
_FILTER = Filter(_SERVICE, frozenset(_TYPES.values()), _METHOD)
_UNKNOWN = 2
"""google.rpc.Code.UNKNOWN: which code a failure's status has is not known."""


def started_entry(state: State, operation: Operation) -> Entry:
    return _entry(state, operation, operation.started, {"first": True})


def ended_entry(state: State, operation: Operation) -> Entry:
    return _entry(state, operation, operation.ended or operation.due, {"last": True})


def _entry(state: State, operation: Operation, at: float, edge: Mapping[str, bool]) -> Entry:
    target, error = operation.target, operation.error
    method = f"compute.{operation.method}"
    status = {"status": {"code": _UNKNOWN, "message": error.code}} if error else {}
    errors = {"errors": [{"code": error.code, "message": error.message}]} if error else {}
    response = {"response": {"@type": "type.googleapis.com/error", "error": errors}} if error else {}
    return {
        "insertId": hashlib.sha256(f"{operation.path}{sorted(edge)}".encode()).hexdigest()[:16],
        "logName": f"projects/{target.project}/logs/cloudaudit.googleapis.com%2Factivity",
        "protoPayload": {
            "@type": "type.googleapis.com/google.cloud.audit.AuditLog",
            "serviceName": _SERVICE,
            "methodName": f"v1.{method}",
            "resourceName": str(target),
            "request": {"@type": f"type.googleapis.com/{method}"},
            **status,
            **response,
        },
        "resource": {"type": _TYPES[target.collection], "labels": _labels(state, operation)},
        "operation": {"id": operation.path.name, "producer": _SERVICE, **edge},
        "timestamp": timestamp(at),
        "receiveTimestamp": timestamp(at),
        "severity": "ERROR" if error else "NOTICE",
    }


def _labels(state: State, operation: Operation) -> Mapping[str, str]:
    target = operation.target
    known = {"project_id": target.project}
    number = str(_number(state, target, operation.started))
    match target.collection:
        case "instanceGroupManagers":
            named = {"instance_group_manager_id": number, "instance_group_manager_name": target.name}
            return {**known, **named, "location": target.location}
        case "instanceTemplates":
            return {**known, "instance_template_id": number, "instance_template_name": target.name}
        case "resourcePolicies":
            return {**known, "resource_policy_id": number, "region": target.location}
        case _:
            return {**known, "instance_id": number, "zone": target.location}


def _number(state: State, target: Resource, started: float) -> int:
    found = state.groups.get(target) or state.templates.get(target) or state.policies.get(target)
    return identifier(target, found.created if found else started)


def passes_sink(entry: Mapping[str, Any], names: str = "") -> bool:
    """Return whether the sink exports an entry. `names`: prefix of the resources' names, empty for all."""
    target = str(entry.get("protoPayload", {}).get("resourceName", ""))
    return _FILTER.passes(entry) and target.rpartition("/")[2].startswith(names)

"""metav1.Table: the columns of `kubectl get` (pure).

Facts: pkg/printers/internalversion/printers.go for the core kinds, the CRD's additionalPrinterColumns for
JobSet. Ages are relative to `now`, as on the server.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

from infra.local.cluster import plain_tables, rbac_tables
from infra.local.cluster.durations import moment, since
from infra.local.cluster.kueue_api import columns as kueue_columns
from infra.local.cluster.pod_phase import readiness, restarts, summary
from infra.local.cluster.resources import Resource

Cells = Callable[[dict[str, Any], datetime], list[Any]]


@dataclass(frozen=True, slots=True)
class Column:
    """A column; one with a priority above 0 is shown only by `-o wide`."""

    name: str
    type: str = "string"
    priority: int = 0


def _age(obj: dict[str, Any], now: datetime) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)


def _condition(obj: dict[str, Any], kind: str) -> dict[str, Any]:
    conditions = obj.get("status", {}).get("conditions", [])
    return next((c for c in conditions if c.get("type") == kind), {})


def _namespace(obj: dict[str, Any], now: datetime) -> list[Any]:
    return [obj["metadata"]["name"], obj["status"]["phase"], _age(obj, now)]


def _pod(obj: dict[str, Any], now: datetime) -> list[Any]:
    ready, total = readiness(obj)
    status = obj.get("status", {})
    gates = status.get("conditions", [])
    named = [
        next((c["status"] for c in gates if c["type"] == gate["conditionType"]), "False")
        for gate in obj["spec"].get("readinessGates", [])
    ]
    return [
        obj["metadata"]["name"],
        f"{ready}/{total}",
        summary(obj),
        str(restarts(obj)),
        _age(obj, now),
        status.get("podIP") or "<none>",
        obj["spec"].get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        f"{named.count('True')}/{len(named)}" if named else "<none>",
    ]


def _node(obj: dict[str, Any], now: datetime) -> list[Any]:
    ready = _condition(obj, "Ready").get("status", "Unknown")
    status = {"True": "Ready"}.get(ready, "NotReady") if _condition(obj, "Ready") else "Unknown"
    if obj["spec"].get("unschedulable"):
        status += ",SchedulingDisabled"
    prefix = "node-role.kubernetes.io/"
    roles = sorted(k.removeprefix(prefix) for k in obj["metadata"].get("labels", {}) if k.startswith(prefix))
    info = obj.get("status", {}).get("nodeInfo", {})
    addresses = {a["type"]: a["address"] for a in obj.get("status", {}).get("addresses", [])}
    return [
        obj["metadata"]["name"],
        status,
        ",".join(roles) or "<none>",
        _age(obj, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", "<none>"),
        addresses.get("ExternalIP", "<none>"),
        info.get("osImage") or "<unknown>",
        info.get("kernelVersion") or "<unknown>",
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _service(obj: dict[str, Any], now: datetime) -> list[Any]:
    spec = obj["spec"]
    ports = ",".join(f"{port['port']}/{port['protocol']}" for port in spec.get("ports", []))
    selector = ",".join(f"{key}={value}" for key, value in sorted(spec.get("selector", {}).items()))
    shown = [spec["type"], spec["clusterIP"], "<none>", ports or "<none>"]
    return [obj["metadata"]["name"], *shown, _age(obj, now), selector or "<none>"]


def _event(obj: dict[str, Any], now: datetime) -> list[Any]:
    involved = obj.get("involvedObject", {})
    series = obj.get("series") or {}
    first = obj.get("firstTimestamp") or obj.get("eventTime")
    last = series.get("lastObservedTime") or obj.get("lastTimestamp") or first
    source = obj.get("source") or {}
    return [
        since(last, now),
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{involved.get('kind', '').lower()}/{involved.get('name', '')}",
        involved.get("fieldPath", ""),
        ", ".join(filter(None, [source.get("component") or obj.get("reportingComponent"), source.get("host")])),
        obj.get("message", "").strip(),
        since(first, now),
        series.get("count") or obj.get("count") or 1,
        obj["metadata"]["name"],
    ]


def _job(obj: dict[str, Any], now: datetime) -> list[Any]:
    spec, status = obj["spec"], obj.get("status", {})
    succeeded = status.get("succeeded", 0)
    wanted = spec.get("completions")
    parallelism = spec.get("parallelism", 1)
    of = str(wanted) if wanted is not None else f"1 of {parallelism}" if parallelism > 1 else "1"
    start, end = status.get("startTime"), status.get("completionTime")
    duration = since(start, moment(end) if end else now, missing="")
    pods = spec["template"]["spec"]["containers"]
    selector = spec.get("selector", {}).get("matchLabels", {})
    return [
        obj["metadata"]["name"],
        _job_state(obj),
        f"{succeeded}/{of}",
        duration,
        _age(obj, now),
        ",".join(container["name"] for container in pods),
        ",".join(container["image"] for container in pods),
        ",".join(f"{key}={value}" for key, value in sorted(selector.items())),
    ]


def _job_state(obj: dict[str, Any]) -> str:
    for kind in ("Complete", "Failed"):
        if _condition(obj, kind).get("status") == "True":
            return kind
    if "deletionTimestamp" in obj["metadata"]:
        return "Terminating"
    for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if _condition(obj, kind).get("status") == "True":
            return kind
    return "Running"


def _jobset(obj: dict[str, Any], now: datetime) -> list[Any]:
    """Return the cells of the CRD's columns; a JSONPath without a match is an empty cell."""
    status = obj.get("status", {})
    suspended = obj["spec"].get("suspend")
    return [
        obj["metadata"]["name"],
        status.get("terminalState"),
        status.get("restarts"),
        _condition(obj, "Completed").get("status"),
        None if suspended is None else str(suspended).lower(),
        _age(obj, now),
    ]


_NAME, _AGE = Column("Name"), Column("Age")
_OTHERS = {**rbac_tables.COLUMNS, **kueue_columns.COLUMNS, **plain_tables.COLUMNS}

TABLES: Mapping[str, tuple[tuple[Column, ...], Cells]] = MappingProxyType(
    {
        "namespaces": ((_NAME, Column("Status"), _AGE), _namespace),
        "pods": (
            (
                _NAME,
                Column("Ready"),
                Column("Status"),
                Column("Restarts"),
                _AGE,
                Column("IP", priority=1),
                Column("Node", priority=1),
                Column("Nominated Node", priority=1),
                Column("Readiness Gates", priority=1),
            ),
            _pod,
        ),
        "nodes": (
            (
                _NAME,
                Column("Status"),
                Column("Roles"),
                _AGE,
                Column("Version"),
                Column("Internal-IP", priority=1),
                Column("External-IP", priority=1),
                Column("OS-Image", priority=1),
                Column("Kernel-Version", priority=1),
                Column("Container-Runtime", priority=1),
            ),
            _node,
        ),
        "services": (
            (
                _NAME,
                Column("Type"),
                Column("Cluster-IP"),
                Column("External-IP"),
                Column("Port(s)"),
                _AGE,
                Column("Selector", priority=1),
            ),
            _service,
        ),
        "events": (
            (
                Column("Last Seen"),
                Column("Type"),
                Column("Reason"),
                Column("Object"),
                Column("Subobject", priority=1),
                Column("Source", priority=1),
                Column("Message"),
                Column("First Seen", priority=1),
                Column("Count", priority=1),
                Column("Name", priority=1),
            ),
            _event,
        ),
        "jobs": (
            (
                _NAME,
                Column("Status"),
                Column("Completions"),
                Column("Duration"),
                _AGE,
                Column("Containers", priority=1),
                Column("Images", priority=1),
                Column("Selector", priority=1),
            ),
            _job,
        ),
        "jobsets": (
            (
                _NAME,
                Column("TerminalState"),
                Column("Restarts"),
                Column("Completed"),
                Column("Suspended"),
                _AGE,
            ),
            _jobset,
        ),
        **{
            plural: (tuple(Column(name, priority=1 if name in wide else 0) for name in (*shown, *wide)), cells)
            for plural, (shown, wide, cells) in _OTHERS.items()
        },
    }
)
"""Columns and cells, by plural name."""


def table(resource: Resource, objects: Sequence[dict[str, Any]], now: datetime, include: str) -> dict[str, Any]:
    """Return a Table without metadata. `include`: None, Metadata or Object, the object included in each row."""
    columns, cells = TABLES[resource.plural]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": [
            {
                "name": column.name,
                "type": column.type,
                "format": "name" if column.name == "Name" and not column.priority else "",
                "description": "",
                "priority": column.priority,
            }
            for column in columns
        ],
        "rows": [{"cells": cells(obj, now), "object": _carried(obj, include)} for obj in objects],
    }


def _carried(obj: dict[str, Any], include: str) -> dict[str, Any] | None:
    match include:
        case "None":
            return None
        case "Object":
            return obj
        case _:
            partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
            return partial | {"metadata": obj["metadata"]}

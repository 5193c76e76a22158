"""The columns that `kubectl get` shows for Kueue's objects: the CRDs' additionalPrinterColumns (pure).

A JSONPath without a match is an empty cell.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from infra.local.cluster.durations import since

Cells = Callable[[dict[str, Any], datetime], list[Any]]


def _age(obj: dict[str, Any], now: datetime) -> str:
    return since(obj["metadata"]["creationTimestamp"], now)


def _resource_flavor(obj: dict[str, Any], now: datetime) -> list[Any]:
    return [obj["metadata"]["name"], _age(obj, now)]


def _priority_class(obj: dict[str, Any], _: datetime) -> list[Any]:
    return [obj["metadata"]["name"], obj["value"]]


def _cluster_queue(obj: dict[str, Any], _: datetime) -> list[Any]:
    spec, status = obj["spec"], obj.get("status", {})
    shown = [obj["metadata"]["name"], spec.get("cohort"), status.get("pendingWorkloads")]
    return [*shown, spec["queueingStrategy"], status.get("admittedWorkloads")]


def _local_queue(obj: dict[str, Any], _: datetime) -> list[Any]:
    status = obj.get("status", {})
    counts = [status.get("pendingWorkloads"), status.get("admittedWorkloads")]
    return [obj["metadata"]["name"], obj["spec"].get("clusterQueue"), *counts]


def _workload(obj: dict[str, Any], now: datetime) -> list[Any]:
    status = obj.get("status", {})
    conditions = {c["type"]: c["status"] for c in status.get("conditions", [])}
    return [
        obj["metadata"]["name"],
        obj["spec"].get("queueName"),
        status.get("admission", {}).get("clusterQueue"),
        conditions.get("Admitted"),
        conditions.get("Finished"),
        _age(obj, now),
    ]


COLUMNS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], Cells]] = MappingProxyType(
    {
        "resourceflavors": (("Name", "Age"), (), _resource_flavor),
        "workloadpriorityclasses": (("Name", "Value"), (), _priority_class),
        "clusterqueues": (("Name", "Cohort", "Pending Workloads"), ("Strategy", "Admitted Workloads"), _cluster_queue),
        "localqueues": (("Name", "ClusterQueue", "Pending Workloads", "Admitted Workloads"), (), _local_queue),
        "workloads": (("Name", "Queue", "Reserved in", "Admitted", "Finished", "Age"), (), _workload),
    }
)
"""By plural name: the columns that are always shown, those that `-o wide` adds, and the cells of both."""

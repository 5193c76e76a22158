"""Columns of `kubectl get` for kinds that are only stored (pkg/printers/internalversion/printers.go; pure)."""

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from infra.local.cluster.durations import since

Cells = Callable[[dict[str, Any], datetime], list[Any]]

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _name(obj: dict[str, Any]) -> str:
    return str(obj["metadata"]["name"])


def _age(obj: dict[str, Any], now: datetime) -> str:
    return since(obj["metadata"]["creationTimestamp"], now)


def _modes(spec: dict[str, Any]) -> str:
    return ",".join(_MODES.get(mode, mode) for mode in spec.get("accessModes", []))


def _claim(obj: dict[str, Any], now: datetime) -> list[Any]:
    spec, status = obj["spec"], obj.get("status", {})
    phase = "Terminating" if "deletionTimestamp" in obj["metadata"] else status.get("phase", "")
    bound = bool(spec.get("volumeName"))
    return [
        _name(obj),
        phase,
        spec.get("volumeName", ""),
        status.get("capacity", {}).get("storage", "") if bound else "",
        _modes(spec) if bound else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName", "<unset>"),
        _age(obj, now),
        spec["volumeMode"],
    ]


def _volume(obj: dict[str, Any], now: datetime) -> list[Any]:
    spec, status = obj["spec"], obj.get("status", {})
    claim = spec.get("claimRef")
    return [
        _name(obj),
        spec.get("capacity", {}).get("storage", ""),
        _modes(spec),
        spec["persistentVolumeReclaimPolicy"],
        "Terminating" if "deletionTimestamp" in obj["metadata"] else status.get("phase", ""),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName", "<unset>"),
        status.get("reason", ""),
        _age(obj, now),
        spec["volumeMode"],
    ]


def _config(obj: dict[str, Any], now: datetime) -> list[Any]:
    return [_name(obj), len(obj.get("data", {})) + len(obj.get("binaryData", {})), _age(obj, now)]


def _pods(spec: dict[str, Any]) -> list[str]:
    containers = spec["template"]["spec"]["containers"]
    labels = spec.get("selector", {}).get("matchLabels", {})
    return [
        ",".join(container["name"] for container in containers),
        ",".join(container["image"] for container in containers),
        ",".join(f"{key}={value}" for key, value in sorted(labels.items())),
    ]


def _deployment(obj: dict[str, Any], now: datetime) -> list[Any]:
    spec, status = obj["spec"], obj.get("status", {})
    ready = f"{status.get('readyReplicas', 0)}/{spec['replicas']}"
    counts = [status.get("updatedReplicas", 0), status.get("availableReplicas", 0)]
    return [_name(obj), ready, *counts, _age(obj, now), *_pods(spec)]


def _daemon_set(obj: dict[str, Any], now: datetime) -> list[Any]:
    status = obj.get("status", {})
    kinds = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled")
    counts = [status.get(kind, 0) for kind in (*kinds, "numberAvailable")]
    selector = obj["spec"]["template"]["spec"].get("nodeSelector", {})
    shown = ",".join(f"{key}={value}" for key, value in sorted(selector.items())) or "<none>"
    return [_name(obj), *counts, shown, _age(obj, now), *_pods(obj["spec"])]


def _lease(obj: dict[str, Any], now: datetime) -> list[Any]:
    return [_name(obj), obj["spec"].get("holderIdentity", ""), _age(obj, now)]


def _priority(obj: dict[str, Any], now: datetime) -> list[Any]:
    default = str(obj.get("globalDefault", False)).lower()
    return [_name(obj), obj["value"], default, _age(obj, now), obj["preemptionPolicy"]]


_OF_PODS = ("Containers", "Images", "Selector")
_STORAGE = ("StorageClass", "VolumeAttributesClass")

COLUMNS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], Cells]] = MappingProxyType(
    {
        "persistentvolumeclaims": (
            ("Name", "Status", "Volume", "Capacity", "Access Modes", *_STORAGE, "Age"),
            ("VolumeMode",),
            _claim,
        ),
        "persistentvolumes": (
            ("Name", "Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", *_STORAGE, "Reason", "Age"),
            ("VolumeMode",),
            _volume,
        ),
        "configmaps": (("Name", "Data", "Age"), (), _config),
        "deployments": (("Name", "Ready", "Up-to-date", "Available", "Age"), _OF_PODS, _deployment),
        "daemonsets": (
            ("Name", "Desired", "Current", "Ready", "Up-to-date", "Available", "Node Selector", "Age"),
            _OF_PODS,
            _daemon_set,
        ),
        "leases": (("Name", "Holder", "Age"), (), _lease),
        "priorityclasses": (("Name", "Value", "Global-Default", "Age", "PreemptionPolicy"), (), _priority),
    }
)
"""By plural name: the columns that are always shown, those that `-o wide` adds, and the cells of both."""

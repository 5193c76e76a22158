"""A VM as its cluster sees it: what is to be seen of a host, and the status of its Node."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tpu_standins.cloud.machines import Machine

Manifest = dict[str, Any]
"""A Kubernetes object as JSON."""

TERMINATION = "cloud.google.com/impending-node-termination"
"""Key of the taint of a host that has received a termination notice; its effect is NoSchedule."""


class Readiness(Enum):
    """A Node's condition Ready: status, reason and message, set by the kubelet or (Unknown) the node controller."""

    READY = ("True", "KubeletReady", "kubelet is posting ready status")
    STARTING = ("False", "KubeletNotReady", "container runtime network not ready")
    BROKEN = ("False", "KubeletNotReady", "[container runtime is down]")
    SILENT = ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
    SHUTTING_DOWN = ("False", "KubeletNotReady", "node is shutting down")


@dataclass(frozen=True, slots=True, kw_only=True)
class Appearance:
    """The observable state of a host: a change of it is sent to the API server.

    `drains`: its pods are to be evicted, because its pool is being deleted. `maintenance`: when it is, or was, due.
    """

    life: int
    readiness: Readiness
    chips: bool
    cordoned: bool
    drains: bool
    maintenance: float | None
    maintained: bool
    labels: Mapping[str, str] = field(default_factory=dict)
    """Those of its pool, which an update of the pool changes."""


def status(machine: Machine, seen: Appearance, max_pods: int = 110) -> Manifest:
    chips = {"google.com/tpu": str(machine.chips if seen.chips else 0)}
    pods = str(max_pods)
    return {
        "capacity": {"cpu": str(machine.vcpus), "memory": f"{machine.ram_gib}Gi", "pods": pods, **chips},
        "allocatable": {
            "cpu": f"{machine.cpu_milli}m",
            "memory": f"{machine.memory_gib}Gi",
            "pods": pods,
            **chips,
        },
        "conditions": [ready_condition(seen.readiness)],
    }


def ready_condition(readiness: Readiness) -> Manifest:
    status, reason, message = readiness.value
    return {"type": "Ready", "status": status, "reason": reason, "message": message}

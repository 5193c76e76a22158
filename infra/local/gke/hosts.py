"""VMs as Node objects: what a host shows at a moment, and the manifest of it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from google.cloud.container_v1 import NodeTaint, WorkloadMetadataConfig

from infra.local.gke.paths import parse_cluster
from infra.local.gke.state import Host, Pool, State

Manifest = dict[str, Any]
"""A Kubernetes object as JSON."""

_EFFECTS = {
    NodeTaint.Effect.NO_SCHEDULE: "NoSchedule",
    NodeTaint.Effect.PREFER_NO_SCHEDULE: "PreferNoSchedule",
    NodeTaint.Effect.NO_EXECUTE: "NoExecute",
}
_GKE_METADATA = WorkloadMetadataConfig.Mode.GKE_METADATA
_RESERVED = {
    "projects": "reservation-project",
    "reservations": "reservation-name",
    "reservationBlocks": "reservation-blocks",
    "reservationSubBlocks": "reservation-subblocks",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Appearance:
    """What the kubelet says of a host: a change of it is news for the API server."""

    life: int
    ready: bool
    chips: bool
    cordoned: bool


def appearances(state: State, now: float) -> Mapping[str, Appearance]:
    """Find the hosts whose Nodes should stand in the API at `now`, by name."""
    return {
        host.name: _appearance(host, state, now)
        for host in state.hosts.values()
        if host.boots is not None and host.boots <= now and not host.leaving
    }


def _appearance(host: Host, state: State, now: float) -> Appearance:
    age = now - (host.boots or 0.0)
    ready = state.pace.ready
    return Appearance(
        life=host.life,
        ready=age >= ready and not host.broken,
        chips=age >= ready + state.pace.chips,
        cordoned=host.cordoned,
    )


def node(host: Host, pool: Pool, seen: Appearance) -> Manifest:
    """Write the Node as GKE's kubelet registers it [CA gke/labels/system_labels.go, reserved.go]."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": host.name, "labels": _labels(host, pool)},
        "spec": spec(host, pool, seen),
        "status": status(pool, seen),
    }


def spec(host: Host, pool: Pool, seen: Appearance) -> Manifest:
    project = path.project if (path := parse_cluster(pool.cluster)) else ""
    return {
        "providerID": f"gce://{project}/{host.zone}/{host.name}",
        **({"unschedulable": True} if seen.cordoned else {}),
        "taints": _taints(pool, seen),
    }


def status(pool: Pool, seen: Appearance) -> Manifest:
    machine = pool.machine
    chips = {"google.com/tpu": str(machine.chips if seen.chips else 0)}
    pods = str(pool.spec.max_pods_constraint.max_pods_per_node or 110)
    return {
        "capacity": {"cpu": str(machine.vcpus), "memory": f"{machine.ram_gib}Gi", "pods": pods, **chips},
        "allocatable": {
            "cpu": f"{machine.cpu_milli}m",
            "memory": f"{machine.memory_gib}Gi",
            "pods": pods,
            **chips,
        },
        "conditions": [_ready_condition(seen)],
    }


def _ready_condition(seen: Appearance) -> Manifest:
    if seen.ready:
        return {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
        }
    return {
        "type": "Ready",
        "status": "False",
        "reason": "KubeletNotReady",
        "message": "container runtime network not ready",
    }


def _labels(host: Host, pool: Pool) -> dict[str, str]:
    machine = pool.machine
    region = host.zone.rpartition("-")[0]
    config = pool.spec.config
    spot = {"cloud.google.com/gke-spot": "true"} if config.spot else {}
    metadata_server = {"iam.gke.io/gke-metadata-server-enabled": "true"}  # [doc:how-to/workload-identity]
    return {
        **dict(config.labels),
        **spot,
        **(metadata_server if config.workload_metadata_config.mode == _GKE_METADATA else {}),
        **_reservation(pool),
        **_placement(pool),
        "kubernetes.io/hostname": host.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": machine.name,
        "topology.kubernetes.io/zone": host.zone,
        "topology.kubernetes.io/region": region,
        "cloud.google.com/gke-nodepool": pool.name,
        "cloud.google.com/gke-tpu-accelerator": machine.accelerator,
        "cloud.google.com/gke-tpu-topology": pool.topology,
        "cloud.google.com/gke-accelerator-count": str(machine.chips),
    }


def _reservation(pool: Pool) -> dict[str, str]:
    """[CA gke/labels/system_labels.go]: what a named reservation's hosts carry."""
    parts = next(iter(pool.spec.config.reservation_affinity.values), "").split("/")
    if parts == [""]:
        return {}
    named = ["reservations", *parts] if len(parts) % 2 else parts
    return {f"cloud.google.com/{_RESERVED[kind]}": value for kind, value in zip(named[::2], named[1::2], strict=True)}


def _placement(pool: Pool) -> dict[str, str]:
    name = pool.spec.placement_policy.policy_name
    return {"cloud.google.com/placement-policy-name": name} if name else {}


def _taints(pool: Pool, seen: Appearance) -> list[dict[str, str]]:
    """Join the pool's, GKE's for TPUs [CA, xpk, docs], and those of Kubernetes' node lifecycle controller."""
    own = [
        {"key": taint.key, "value": taint.value, "effect": _EFFECTS[taint.effect]} for taint in pool.spec.config.taints
    ]
    tpu = {"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}
    taints = [*own, *([] if tpu in own else [tpu])]
    if not seen.ready:
        taints += [{"key": "node.kubernetes.io/not-ready", "effect": effect} for effect in ("NoSchedule", "NoExecute")]
    if seen.cordoned:
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    return taints

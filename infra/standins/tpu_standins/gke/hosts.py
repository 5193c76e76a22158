"""VMs as Node objects: a host's observable state at a moment, and its manifest. Pure."""

from collections.abc import Mapping

from google.cloud.container_v1 import NodePool, NodeTaint, WorkloadMetadataConfig

from tpu_standins.clients.labels import HOST
from tpu_standins.cloud.hosts import TERMINATION, Appearance, Manifest, Readiness, status
from tpu_standins.cloud.nodes import Describe
from tpu_standins.gke.paths import parse_cluster
from tpu_standins.gke.state import Ailment, Host, Pool, State

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


_MAINTENANCE_TIME = "cloud.google.com/scheduled-maintenance-time"
_MAINTENANCE = "cloud.google.com/active-node-maintenance"
_NOT_READY = "node.kubernetes.io/not-ready"


_READINESS_OF = {Ailment.NOT_READY: Readiness.BROKEN, Ailment.SILENT: Readiness.SILENT}


def appearances(state: State, now: float) -> Mapping[str, Appearance]:
    """Return, by name, the hosts whose Nodes should exist in the API at `now`."""
    return {
        host.name: _appearance(host, state, now)
        for host in state.hosts.values()
        if host.boots is not None and host.boots <= now and not host.leaving
    }


def _appearance(host: Host, state: State, now: float) -> Appearance:
    age = now - (host.boots or 0.0)
    return Appearance(
        life=host.life,
        readiness=_readiness(host, age, state.pace.ready),
        chips=age >= state.pace.ready + state.pace.chips,
        cordoned=host.cordoned,
        drains=state.pools[host.pool].status == NodePool.Status.STOPPING,
        maintenance=host.maintenance,
        maintained=host.maintenance is not None and host.maintenance <= now,
        labels=dict(state.pools[host.pool].spec.config.labels),
    )


def _readiness(host: Host, age: float, ready: float) -> Readiness:
    if host.ails is not None:
        return _READINESS_OF[host.ails]
    if host.stops is not None:
        return Readiness.SHUTTING_DOWN
    return Readiness.READY if age >= ready else Readiness.STARTING


def described(state: State) -> Describe:
    """Return how the hosts of a control plane are described."""

    def describe(name: str, seen: Appearance) -> Manifest:
        host = state.hosts[name]
        return node(host, state.pools[host.pool], seen)

    return describe


def node(host: Host, pool: Pool, seen: Appearance) -> Manifest:
    """Return the Node as GKE's kubelet registers it [CA gke/labels/system_labels.go, reserved.go]."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": host.name, "labels": {**_labels(host, pool), **_maintenance(seen)}},
        "spec": spec(host, pool, seen),
        "status": status(pool.machine, seen, pool.spec.max_pods_constraint.max_pods_per_node or 110),
    }


def spec(host: Host, pool: Pool, seen: Appearance) -> Manifest:
    project = path.project if (path := parse_cluster(pool.cluster)) else ""
    return {
        "providerID": f"gce://{project}/{host.zone}/{host.name}",
        **({"unschedulable": True} if seen.cordoned else {}),
        "taints": _taints(pool, seen),
    }


def _maintenance(seen: Appearance) -> dict[str, str]:
    """Return the labels of scheduled (seconds since 1970) and ongoing maintenance [skills gke-ai-troubleshooting]."""
    planned = {} if seen.maintenance is None else {_MAINTENANCE_TIME: str(int(seen.maintenance))}
    return {**planned, **({_MAINTENANCE: "ONGOING"} if seen.maintained else {})}


def _labels(host: Host, pool: Pool) -> dict[str, str]:
    machine = pool.machine
    region = host.zone.rpartition("-")[0]
    config = pool.spec.config
    spot = {"cloud.google.com/gke-spot": "true"} if config.spot else {}
    flex_start = {"cloud.google.com/gke-flex-start": "true"} if config.flex_start else {}
    metadata_server = {"iam.gke.io/gke-metadata-server-enabled": "true"}  # [doc:how-to/workload-identity]
    return {
        **dict(config.labels),
        **spot,
        **flex_start,
        **(metadata_server if config.workload_metadata_config.mode == _GKE_METADATA else {}),
        **_reservation(pool),
        **_placement(pool),
        "kubernetes.io/hostname": host.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": machine.name,
        "topology.kubernetes.io/zone": host.zone,
        "topology.kubernetes.io/region": region,
        HOST: "true",
        "cloud.google.com/gke-nodepool": pool.name,
        "cloud.google.com/gke-tpu-accelerator": machine.accelerator,
        "cloud.google.com/gke-tpu-topology": pool.topology,
        "cloud.google.com/gke-accelerator-count": str(machine.chips),
    }


def _reservation(pool: Pool) -> dict[str, str]:
    """Return the labels of the hosts of a specific reservation [CA gke/labels/system_labels.go]."""
    parts = next(iter(pool.spec.config.reservation_affinity.values), "").split("/")
    if parts == [""]:
        return {}
    named = ["reservations", *parts] if len(parts) % 2 else parts
    return {f"cloud.google.com/{_RESERVED[kind]}": value for kind, value in zip(named[::2], named[1::2], strict=True)}


def _placement(pool: Pool) -> dict[str, str]:
    name = pool.spec.placement_policy.policy_name
    return {"cloud.google.com/placement-policy-name": name} if name else {}


def _taints(pool: Pool, seen: Appearance) -> list[dict[str, str]]:
    """Return the pool's taints, GKE's for TPUs [CA, xpk, docs], and the taint of the termination notice.

    A new Node is also tainted as not ready, as admission does; the cluster's node controller maintains it later.
    """
    own = [
        {"key": taint.key, "value": taint.value, "effect": _EFFECTS[taint.effect]} for taint in pool.spec.config.taints
    ]
    tpu = {"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}
    taints = [*own, *([] if tpu in own else [tpu])]
    if seen.readiness is Readiness.STARTING:
        taints.append({"key": _NOT_READY, "effect": "NoSchedule"})
    if seen.readiness is Readiness.SHUTTING_DOWN:
        taints.append({"key": TERMINATION, "effect": "NoSchedule"})
    return taints

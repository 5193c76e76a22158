"""State as Google's messages: node pools, operations and clusters as the API returns them."""

import hashlib

from google.cloud import container_v1
from google.cloud.container_v1 import NodeConfig, NodePool, NodeTaint, ReleaseChannel, StatusCondition
from google.cloud.container_v1 import Operation as Wire

from tpu_standins.gke.paths import group_link, link, timestamp
from tpu_standins.gke.state import Cluster, Failure, Operation, Pool, State

_DISK_GB = 100
_MAX_PODS = 110
_CGROUPS = NodeConfig.EffectiveCgroupMode
_SCOPES = tuple(
    f"https://www.googleapis.com/auth/{name}"
    for name in (
        "devstorage.read_only",
        "logging.write",
        "monitoring",
        "service.management.readonly",
        "servicecontrol",
        "trace.append",
    )
)
PROVISIONING_MODEL = "goog-gke-node-pool-provisioning-model"
"""A label of machines that GKE adds to those of the request."""


def cluster_message(state: State, cluster: Cluster) -> container_v1.Cluster:
    path = cluster.path
    pools = [pool_message(state, pool) for pool in state.pools.values() if pool.cluster == str(path)]
    return container_v1.Cluster(
        name=path.name,
        id=cluster.id,
        self_link=link(str(path), path.project),
        zone=path.location,
        location=path.location,
        locations=cluster.zones,
        release_channel=ReleaseChannel({"channel": cluster.release_channel or "UNSPECIFIED"}),
        current_master_version=cluster.version,
        initial_cluster_version=cluster.version,
        status=container_v1.Cluster.Status.RUNNING,
        node_pools=pools,
        current_node_count=len(state.nodes),
    )


def pool_message(state: State, pool: Pool) -> NodePool:
    """Return the requested pool with what GKE adds by itself [kcc], and its own TPU taint [mm effective_taints]."""
    cluster = state.clusters[pool.cluster]
    message = NodePool(pool.spec)
    message.self_link = link(pool.path, cluster.path.project)
    message.version = cluster.version
    message.status = NodePool.Status(pool.status)
    message.locations = list(pool.zones)
    message.instance_group_urls = [group_link(cluster.path.project, zone, pool.stem) for zone in pool.zones]
    _fill_pool(message)
    _fill_network(message, cluster)
    _fill_config(message.config, pool)
    message.etag = etag(pool)
    if pool.failure is not None:
        message.status_message = pool.failure.detail
        message.conditions = [_condition(pool.failure, pool.failure.detail)]
    return message


def etag(pool: Pool) -> str:
    """Return what changes with each update of a pool [py-gke NodePool.etag]."""
    return hashlib.sha256(NodePool.to_json(pool.spec, sort_keys=True).encode()).hexdigest()[:16]


def _fill_pool(message: NodePool) -> None:
    """Add what the request left out. A node gets at least twice as many addresses as pods [doc:flexible-pod-cidr]."""
    if "management" not in message:
        message.management = container_v1.NodeManagement(auto_upgrade=True, auto_repair=True)
    if "upgrade_settings" not in message:
        surge = container_v1.NodePoolUpdateStrategy.SURGE
        message.upgrade_settings = NodePool.UpgradeSettings(max_surge=1, strategy=surge)
    pods = message.max_pods_constraint.max_pods_per_node or _MAX_PODS
    message.max_pods_constraint = container_v1.MaxPodsConstraint(max_pods_per_node=pods)
    message.pod_ipv4_cidr_size = 32 - (2 * pods - 1).bit_length()


def _fill_network(message: NodePool, cluster: Cluster) -> None:
    path, network = cluster.path, message.network_config
    digest = hashlib.sha256(str(path).encode()).hexdigest()
    network.subnetwork = network.subnetwork or f"projects/{path.project}/regions/{path.region}/subnetworks/default"
    network.pod_range = network.pod_range or f"gke-{path.name}-pods-{digest[:8]}"
    network.pod_ipv4_cidr_block = network.pod_ipv4_cidr_block or "10.96.0.0/14"
    tier = container_v1.NetworkTierConfig.NetworkTier.NETWORK_TIER_DEFAULT
    network.network_tier_config = container_v1.NetworkTierConfig(network_tier=tier)


def _fill_config(config: NodeConfig, pool: Pool) -> None:
    config.disk_size_gb = config.disk_size_gb or config.boot_disk.size_gb or _DISK_GB
    config.disk_type = config.disk_type or config.boot_disk.disk_type or pool.machine.disks[0]
    config.boot_disk.size_gb = config.disk_size_gb
    config.boot_disk.disk_type = config.disk_type
    config.image_type = config.image_type or "COS_CONTAINERD"
    config.service_account = config.service_account or "default"
    config.oauth_scopes = list(config.oauth_scopes) or list(_SCOPES)
    config.metadata = {"disable-legacy-endpoints": "true", **config.metadata}
    config.resource_labels = {**config.resource_labels, **_provisioning(config)}
    config.effective_cgroup_mode = _CGROUPS(_CGROUPS.EFFECTIVE_CGROUP_MODE_V2)
    config.kubelet_config.insecure_kubelet_readonly_port_enabled = False
    config.windows_node_config = container_v1.WindowsNodeConfig()
    if "shielded_instance_config" not in config:
        config.shielded_instance_config = container_v1.ShieldedInstanceConfig(enable_integrity_monitoring=True)
    if not any(taint.key == "google.com/tpu" for taint in config.taints):
        config.taints = [
            *config.taints,
            NodeTaint(key="google.com/tpu", value="present", effect=NodeTaint.Effect.NO_SCHEDULE),
        ]


def _provisioning(config: NodeConfig) -> dict[str, str]:
    """Return the label with how the machines are had: `on-demand` [kcc], `spot` as seen in others' Terraform files.

    What it is for flex-start and reservations is not known.
    """
    if config.spot or config.preemptible:
        return {PROVISIONING_MODEL: "spot"}
    special = config.flex_start or config.reservation_affinity.values
    return {} if special else {PROVISIONING_MODEL: "on-demand"}


def operation_message(state: State, operation: Operation, now: float) -> Wire:
    """Return the operation; DONE only means that it ended, `error` whether it failed [py-gke Operation.error].

    `zone` is its zone or region, and `location` is empty [kcc].
    """
    path = state.clusters[operation.cluster].path
    name = f"projects/{path.project}/locations/{path.location}/operations/{operation.name}"
    message = Wire(
        name=operation.name,
        operation_type=operation.kind,
        status=_status(state, operation, now),
        self_link=link(name, state.project_number),
        target_link=link(operation.target, state.project_number),
        zone=path.location,
        start_time=timestamp(operation.started),
    )
    if operation.ended is not None:
        message.end_time = timestamp(operation.ended)
    if operation.error is not None:
        _fill_error(message, operation.error)
    return message


def _status(state: State, operation: Operation, now: float) -> int:
    if operation.ended is not None:
        return Wire.Status.DONE
    if operation.aborting:
        return Wire.Status.ABORTING
    return Wire.Status.RUNNING if now >= operation.started + state.pace.pending else Wire.Status.PENDING


def _fill_error(message: Wire, failure: Failure) -> None:
    """Fill in the error as in kubernetes-sigs/sig-storage-local-static-provisioner#526, with node pool conditions."""
    if not failure.conditions_only:
        message.error.code = failure.code
        message.error.message = failure.message
        message.detail = failure.detail
        message.status_message = failure.detail
    message.nodepool_conditions = [_condition(failure, failure.message)]


def _condition(failure: Failure, text: str) -> StatusCondition:
    return StatusCondition(code=failure.condition, message=text, canonical_code=int(failure.code))

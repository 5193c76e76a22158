"""State as Google's messages: node pools, operations and clusters as the API returns them."""

import hashlib

from google.cloud import container_v1
from google.cloud.container_v1 import NodePool, NodeTaint, ReleaseChannel, StatusCondition
from google.cloud.container_v1 import Operation as Wire

from infra.local.gke.paths import group_link, link, timestamp
from infra.local.gke.state import Cluster, Failure, Operation, Pool, State

_DISK_GB = 100
_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)


def cluster_message(state: State, cluster: Cluster) -> container_v1.Cluster:
    path = cluster.path
    pools = [pool_message(state, pool) for pool in state.pools.values() if pool.cluster == str(path)]
    return container_v1.Cluster(
        name=path.name,
        id=cluster.id,
        self_link=link(str(path), state.project_number),
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
    """Return the requested pool with GKE's defaults filled in, including its own TPU taint [mm effective_taints]."""
    cluster = state.clusters[pool.cluster]
    message = NodePool(pool.spec)
    message.self_link = link(pool.path, state.project_number)
    message.version = cluster.version
    message.status = NodePool.Status(pool.status)
    message.locations = list(pool.zones)
    message.instance_group_urls = [group_link(cluster.path.project, zone, pool.stem) for zone in pool.zones]
    if "management" not in pool.spec and cluster.release_channel is not None:
        message.management = container_v1.NodeManagement(auto_upgrade=True, auto_repair=True)
    _fill_config(message, pool)
    message.etag = etag(pool)
    if pool.failure is not None:
        message.status_message = pool.failure.detail
        message.conditions = [_condition(pool.failure, pool.failure.detail)]
    return message


def etag(pool: Pool) -> str:
    """Return what changes with each update of a pool [py-gke NodePool.etag]."""
    return hashlib.sha256(NodePool.to_json(pool.spec, sort_keys=True).encode()).hexdigest()[:16]


def _fill_config(message: NodePool, pool: Pool) -> None:
    config = message.config
    config.disk_size_gb = config.disk_size_gb or _DISK_GB
    config.disk_type = config.disk_type or pool.machine.disks[0]
    config.image_type = config.image_type or "COS_CONTAINERD"
    config.service_account = config.service_account or "default"
    config.oauth_scopes = list(config.oauth_scopes) or list(_SCOPES)
    if not any(taint.key == "google.com/tpu" for taint in config.taints):
        config.taints = [
            *config.taints,
            NodeTaint(key="google.com/tpu", value="present", effect=NodeTaint.Effect.NO_SCHEDULE),
        ]


def operation_message(state: State, operation: Operation, now: float) -> Wire:
    """Return the operation; DONE only means that it ended, `error` whether it failed [py-gke Operation.error]."""
    path = state.clusters[operation.cluster].path
    name = f"projects/{path.project}/locations/{path.location}/operations/{operation.name}"
    message = Wire(
        name=operation.name,
        operation_type=operation.kind,
        status=_status(state, operation, now),
        self_link=link(name, state.project_number),
        target_link=link(operation.target, state.project_number),
        zone=path.location,
        location=path.location,
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

"""From an order to GKE's request for a node pool (google.container.v1), and the paths of what it names. Pure."""

from __future__ import annotations

from datetime import timedelta

from google.cloud.container_v1 import (
    CreateNodePoolRequest,
    MaxPodsConstraint,
    NodeConfig,
    NodeManagement,
    NodePool,
    ReservationAffinity,
    ShieldedInstanceConfig,
    WorkloadMetadataConfig,
)

from shared.adapters.pool_labels import labels_of
from shared.domain.accelerators import Placement
from shared.domain.slices import CapacityKind, SliceSpec, pool_name
from shared.ports import PoolOrder

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_RESERVATION_KEY = "compute.googleapis.com/reservation-name"
_DRAIN_GRACE = timedelta(minutes=2)
"""How long a leaving node's pods may take to end. GKE's own hour would hold one of the cluster's few operations."""


class CannotBeMade(ValueError):
    """No request can be written for this order; the text says what is missing."""


def create_request(order: PoolOrder) -> CreateNodePoolRequest:
    """Write the request for an order's pool, the same one every time; CannotBeMade."""
    return CreateNodePoolRequest(parent=order.cluster_path, node_pool=_node_pool(order, _spec(order)))


def pool_path(order: PoolOrder) -> str:
    return f"{order.cluster_path}/nodePools/{pool_name(order.slice_id, order.attempt)}"


def location_path(cluster_path: str) -> str:
    """Give `projects/P/locations/L` of a cluster: where its operations are."""
    return cluster_path.partition("/clusters/")[0]


def operation_path(cluster_path: str, operation: str) -> str:
    return f"{location_path(cluster_path)}/operations/{operation}"


def _spec(order: PoolOrder) -> SliceSpec:
    if order.spec is None:
        raise CannotBeMade("The slice was found without a record: what it was asked to be is not known.")
    if order.spec.placement is Placement.WORKLOAD_POLICY:
        raise CannotBeMade("Node pools placed by a Compute Engine workload policy are not implemented.")
    return order.spec


def _node_pool(order: PoolOrder, spec: SliceSpec) -> NodePool:
    settings = order.settings
    pool = NodePool(
        name=pool_name(order.slice_id, order.attempt),
        initial_node_count=spec.hosts,
        locations=[spec.zone],
        config=_config(order, spec),
        management=NodeManagement(auto_repair=True, auto_upgrade=settings.auto_upgrade),
        max_pods_constraint=MaxPodsConstraint(max_pods_per_node=settings.max_pods_per_node),
        upgrade_settings=NodePool.UpgradeSettings(max_surge=1),
        node_drain_config=NodePool.NodeDrainConfig(
            grace_termination_duration=_DRAIN_GRACE, respect_pdb_during_node_pool_deletion=False
        ),
    )
    if spec.placement is Placement.COMPACT:
        pool.placement_policy = NodePool.PlacementPolicy(
            type_=NodePool.PlacementPolicy.Type.COMPACT, tpu_topology=str(spec.topology)
        )
    return pool


def _config(order: PoolOrder, spec: SliceSpec) -> NodeConfig:
    settings = order.settings
    config = NodeConfig(
        machine_type=spec.machine_type,
        disk_type=spec.boot_disk,
        disk_size_gb=settings.boot_disk_gb,
        labels={**dict(spec.node_labels), **labels_of(order, spec.fingerprint)},
        oauth_scopes=[_SCOPE],
        service_account=settings.service_account or "",
        spot=spec.capacity.kind is CapacityKind.SPOT,
        tags=settings.network_tags,
        workload_metadata_config=WorkloadMetadataConfig(mode=WorkloadMetadataConfig.Mode.GKE_METADATA),
        shielded_instance_config=ShieldedInstanceConfig(enable_secure_boot=True, enable_integrity_monitoring=True),
    )
    if spec.capacity.reservation is not None:
        config.reservation_affinity = ReservationAffinity(
            consume_reservation_type=ReservationAffinity.Type.SPECIFIC_RESERVATION,
            key=_RESERVATION_KEY,
            values=[spec.capacity.reservation],
        )
    return config

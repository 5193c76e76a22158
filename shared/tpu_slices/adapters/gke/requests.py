"""Builds GKE's request for a node pool (google.container.v1) from an order, and the paths of GKE's resources. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from google.cloud.container_v1 import (
    AdditionalNodeNetworkConfig,
    CreateNodePoolRequest,
    GcfsConfig,
    MaxPodsConstraint,
    NodeConfig,
    NodeLabels,
    NodeManagement,
    NodeNetworkConfig,
    NodePool,
    NodePoolAutoscaling,
    NodePoolUpdateStrategy,
    NodeTaint,
    ReservationAffinity,
    SecondaryBootDisk,
    ShieldedInstanceConfig,
    UpdateNodePoolRequest,
    VirtualNIC,
    WorkloadMetadataConfig,
)

from tpu_slices.adapters.billing_labels import billing_labels
from tpu_slices.adapters.cloud_errors import WITHOUT_SPEC, CannotBeMade
from tpu_slices.domain.catalogue.machines import Placement
from tpu_slices.domain.model.clusters import PoolSettings, Upgrades
from tpu_slices.domain.model.slices import CapacityKind, SliceSpec
from tpu_slices.domain.planning.host_labels import network_labels, network_profile_of, workload_policy_of
from tpu_slices.domain.planning.pool_labels import labels_of_pool, lacking, naming_labels
from tpu_slices.ports.backend import PoolOrder

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_RESERVATION_KEY = "compute.googleapis.com/reservation-name"
_DRAIN_GRACE = timedelta(minutes=2)
"""How long a drained node's pods may take to end; GKE's default hour would hold one of the cluster's few operations."""


def create_request(order: PoolOrder) -> CreateNodePoolRequest:
    """Return the request for an order's pool, always the same for the same order; raise CannotBeMade without a spec."""
    if order.spec is None:
        raise CannotBeMade(WITHOUT_SPEC)
    return CreateNodePoolRequest(parent=order.cluster_path, node_pool=_node_pool(order, order.spec))


def relabel_request(order: PoolOrder, pool: NodePool) -> UpdateNodePoolRequest | None:
    """Return the request that puts back the labels of an order's pool that are missing; None if none is.

    It replaces all labels of the pool, and GKE applies them to its nodes without making these anew ("Update Kubernetes
    node labels and taints for node pools" in GKE's documentation: since 1.19.7-gke.1500, and with autoscaling since
    1.23.4-gke.300). So those that others have set are sent as they are, and the etag keeps what is set meanwhile.
    `node_version` and `image_type` are documented as required, and are not when something else is updated (gcloud and
    Terraform send none). What the request says beside the slice's name is only added where it is missing: it may have
    changed since the pool was made.
    """
    found = dict(pool.config.labels)
    named = naming_labels_of(order)
    if not lacking(found, named):
        return None
    asked = _labels(order, order.spec) if order.spec and order.legacy_pool is None else {}
    labels = {**asked, **found, **named}
    return UpdateNodePoolRequest(name=pool_path(order), labels=NodeLabels(labels=labels), etag=pool.etag)


def naming_labels_of(order: PoolOrder) -> dict[str, str]:
    """Return the labels that name the slice of an order's pool."""
    crosses = order.spec is not None and order.spec.crosses
    return naming_labels(order.job, order.attempt, legacy_pool=order.legacy_pool is not None, crosses=crosses)


def as_rest(order: PoolOrder) -> Mapping[str, Any]:
    """Return the order's node pool as in GKE's REST API: camelCase, enums by name, only the fields that are set.

    The keys are sorted: the order of a protocol buffer's map differs from process to process.
    """
    text = NodePool.to_json(
        create_request(order).node_pool,
        use_integers_for_enums=False,
        preserving_proto_field_name=False,
        sort_keys=True,
        always_print_fields_with_no_presence=False,
    )
    pool: Mapping[str, Any] = json.loads(text)
    interval = order.settings.host_maintenance_interval
    if interval is None:
        return pool
    return {**pool, "config": {**pool["config"], "hostMaintenancePolicy": {"maintenanceInterval": interval}}}


def pool_path(order: PoolOrder) -> str:
    return f"{order.cluster_path}/nodePools/{order.name}"


def location_path(cluster_path: str) -> str:
    """Return `projects/P/locations/L` of a cluster, the parent of its operations."""
    return cluster_path.partition("/clusters/")[0]


def operation_path(cluster_path: str, operation: str) -> str:
    return f"{location_path(cluster_path)}/operations/{operation}"


def _node_pool(order: PoolOrder, spec: SliceSpec) -> NodePool:
    settings = order.settings
    return NodePool(
        name=order.name,
        **_size(spec),
        locations=[spec.zone],
        config=_config(order, spec),
        placement_policy=_placement(spec, settings),
        network_config=_network(spec, settings),
        management=NodeManagement(auto_repair=not spec.is_flex_start, auto_upgrade=settings.auto_upgrade),
        max_pods_constraint=MaxPodsConstraint(max_pods_per_node=settings.max_pods_per_node),
        upgrade_settings=_upgrades(spec),
        maintenance_policy=_maintenance(settings),
        node_drain_config=NodePool.NodeDrainConfig(
            grace_termination_duration=_DRAIN_GRACE, respect_pdb_during_node_pool_deletion=False
        ),
    )


def _size(spec: SliceSpec) -> Mapping[str, Any]:
    """Return the number of hosts; a flex-start pool is empty until GKE's autoscaler adds them all."""
    if not spec.is_flex_start:
        return {"initial_node_count": spec.hosts}
    anywhere = NodePoolAutoscaling.LocationPolicy.ANY
    return {"autoscaling": NodePoolAutoscaling(enabled=True, max_node_count=spec.hosts, location_policy=anywhere)}


def _upgrades(spec: SliceSpec) -> NodePool.UpgradeSettings:
    """Return how nodes are upgraded: in their places, as a slice has no other host to move to.

    Those of flex-start only when GKE replaces them at the end of their time.
    """
    if spec.is_flex_start:
        return NodePool.UpgradeSettings(strategy=NodePoolUpdateStrategy.SHORT_LIVED)
    return NodePool.UpgradeSettings(max_surge=0, max_unavailable=1)


def _maintenance(settings: PoolSettings) -> NodePool.NodePoolMaintenancePolicy | None:
    """Return what keeps automatic upgrades off until the version's end of support.

    Release channels take it, which refuse `auto_upgrade: false`; GKE's own autoscaler sets it for a ComputeClass.
    """
    if not settings.auto_upgrade or settings.upgrades is Upgrades.GKE:
        return None
    excluded = NodePool.ExclusionUntilEndOfSupport(enabled=True)
    return NodePool.NodePoolMaintenancePolicy(exclusion_until_end_of_support=excluded)


def _placement(spec: SliceSpec, settings: PoolSettings) -> NodePool.PlacementPolicy | None:
    """Return the placement policy; a single host has none, and a workload policy itself states the topology."""
    match spec.placement:
        case Placement.COMPACT:
            compact = NodePool.PlacementPolicy.Type.COMPACT
            return NodePool.PlacementPolicy(type_=compact, tpu_topology=str(spec.topology))
        case Placement.WORKLOAD_POLICY:
            return NodePool.PlacementPolicy(policy_name=workload_policy_of(spec, settings))
        case None:
            return None


def _network(spec: SliceSpec, settings: PoolSettings) -> NodeNetworkConfig | None:
    networks = settings.additional_networks if spec.networks is None else spec.networks
    profile = network_profile_of(spec, settings)
    if not networks and profile is None:
        return None
    return NodeNetworkConfig(
        accelerator_network_profile=profile or "",
        additional_node_network_configs=[
            AdditionalNodeNetworkConfig(network=each.network, subnetwork=each.subnetwork) for each in networks
        ],
    )


def _config(order: PoolOrder, spec: SliceSpec) -> NodeConfig:
    settings = order.settings
    image = settings.secondary_boot_disk
    return NodeConfig(
        machine_type=spec.machine_type,
        disk_type=spec.boot_disk,
        disk_size_gb=settings.boot_disk_gb,
        boot_disk_kms_key=settings.boot_disk_kms_key or "",
        enable_confidential_storage=settings.confidential_storage,
        secondary_boot_disks=[_image_cache(image)] if image else [],
        gvnic=VirtualNIC(enabled=True) if settings.gvnic else None,
        gcfs_config=GcfsConfig(enabled=True) if settings.image_streaming or image else None,
        labels=_labels(order, spec),
        resource_labels=billing_labels(order.job, settings.resource_labels),
        taints=[_taint(taint.key, taint.value) for taint in spec.taints],
        oauth_scopes=[_SCOPE],
        service_account=spec.service_account or settings.service_account or "",
        spot=spec.capacity.kind is CapacityKind.SPOT,
        flex_start=spec.is_flex_start or None,
        max_run_duration=spec.capacity.max_run_duration,
        reservation_affinity=_reservation(spec),
        tags=settings.network_tags,
        workload_metadata_config=WorkloadMetadataConfig(mode=WorkloadMetadataConfig.Mode.GKE_METADATA),
        shielded_instance_config=ShieldedInstanceConfig(
            enable_secure_boot=settings.secure_boot, enable_integrity_monitoring=settings.integrity_monitoring
        ),
    )


def _labels(order: PoolOrder, spec: SliceSpec) -> dict[str, str]:
    return {**labels_of_pool(order.job, order.attempt, spec), **network_labels(spec, order.settings)}


def _image_cache(disk_image: str) -> SecondaryBootDisk:
    return SecondaryBootDisk(mode=SecondaryBootDisk.Mode.CONTAINER_IMAGE_CACHE, disk_image=disk_image)


def _taint(key: str, value: str) -> NodeTaint:
    return NodeTaint(key=key, value=value, effect=NodeTaint.Effect.NO_SCHEDULE)


def _reservation(spec: SliceSpec) -> ReservationAffinity | None:
    if spec.is_flex_start:
        return ReservationAffinity(consume_reservation_type=ReservationAffinity.Type.NO_RESERVATION)
    if spec.capacity.reservation is None:
        return None
    return ReservationAffinity(
        consume_reservation_type=ReservationAffinity.Type.SPECIFIC_RESERVATION,
        key=_RESERVATION_KEY,
        values=[spec.capacity.reservation],
    )

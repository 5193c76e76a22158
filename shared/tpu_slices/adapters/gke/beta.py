"""The creation of node pools with what only google.container.v1beta1 has: the maintenance interval of hosts.

The messages of both versions have the same fields at the same numbers, except for some that are not set here.
"""

from __future__ import annotations

from typing import Any, cast

from google.cloud import container_v1
from google.cloud.container_v1.services.cluster_manager import transports
from google.cloud.container_v1beta1 import ClusterManagerClient, CreateNodePoolRequest, HostMaintenancePolicy
from google.cloud.container_v1beta1.services.cluster_manager.transports import ClusterManagerGrpcTransport


def create(
    client: container_v1.ClusterManagerClient, request: container_v1.CreateNodePoolRequest, interval: str, **how: Any
) -> str:
    """Request a node pool over the client's connection, its hosts with this interval; return the operation's name.

    Raise what the client itself raises.
    """
    connection = cast("transports.ClusterManagerGrpcTransport", client.transport).grpc_channel
    beta = ClusterManagerClient(transport=ClusterManagerGrpcTransport(channel=connection))
    return str(beta.create_node_pool(request=with_interval(request, interval), **how).name)


def with_interval(request: container_v1.CreateNodePoolRequest, interval: str) -> CreateNodePoolRequest:
    """Return the request in the beta version, its hosts with a maintenance interval: PERIODIC or AS_NEEDED."""
    written = container_v1.CreateNodePoolRequest.serialize(request)
    beta: CreateNodePoolRequest = CreateNodePoolRequest.deserialize(written)
    beta.node_pool.config.host_maintenance_policy = HostMaintenancePolicy(maintenance_interval=interval)
    return beta

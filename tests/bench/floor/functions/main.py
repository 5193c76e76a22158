"""Functions that decide nothing: the first passes a message on, the second creates the pool that it names."""

from __future__ import annotations

import base64
import os
import uuid
from functools import cache

import functions_framework
import grpc
from cloudevents.http import CloudEvent
from google.cloud.container_v1 import ClusterManagerClient
from google.cloud.container_v1.services.cluster_manager.transports import ClusterManagerGrpcTransport
from google.cloud.pubsub_v1 import PublisherClient

from infra.local.plan import Plan
from tests.bench.reconciling import order_of
from tests.builders import a_record
from tpu_slices.adapters.gke.requests import create_request
from tpu_slices.adapters.pubsub import connect_publisher

PROJECT = os.environ["GOOGLE_CLOUD_PROJECT"]
CLUSTER = f"projects/{PROJECT}/locations/{Plan().location}/clusters/{os.environ['CLUSTER']}"


@cache
def _publisher() -> PublisherClient:
    return connect_publisher()


@cache
def _gke() -> ClusterManagerClient:
    channel = grpc.insecure_channel(os.environ["GKE_EMULATOR_HOST"])
    return ClusterManagerClient(transport=ClusterManagerGrpcTransport(channel=channel))


@functions_framework.cloud_event
def receive(event: CloudEvent) -> None:
    """Pass the message on."""
    data = base64.b64decode(event.data["message"]["data"])
    _publisher().publish(f"projects/{PROJECT}/topics/requests-{os.environ['CLUSTER']}", data).result()


@functions_framework.cloud_event
def reconcile(event: CloudEvent) -> None:
    """Create a node pool; nothing if an operation has ended."""
    if "cloud-operations" in event["source"]:
        return
    request = create_request(order_of(a_record()))
    request.parent, request.node_pool.name = CLUSTER, f"tpu-{uuid.uuid4().hex[:12]}"
    _gke().create_node_pool(request)


@functions_framework.cloud_event
def sweep(event: CloudEvent) -> None:
    """Do nothing."""
    assert event

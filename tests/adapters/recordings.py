"""GKE's messages as recorded, and a client that plays them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from google.api_core import exceptions as google
from google.cloud import container_v1 as gke
from google.rpc import status_pb2

from tests.builders import a_job, a_spec, settings
from tpu_slices.adapters.gke.backend import GkeBackend
from tpu_slices.domain.model.clusters import PoolSettings
from tpu_slices.domain.model.slices import claim_id, pool_name
from tpu_slices.domain.planning.pool_labels import labels_of
from tpu_slices.ports.backend import PoolOrder

PATH = settings().path
ORDER = PoolOrder(
    cluster_path=PATH,
    cluster_gke_id=None,
    slice_id=claim_id(a_job()),
    attempt=1,
    job=a_job(),
    spec=a_spec(),
    settings=PoolSettings(),
)
NOTED = replace(ORDER, operation="operation-1")
POOL = pool_name(ORDER.slice_id, 1)
LINK = f"https://container.googleapis.com/v1/projects/123456789012/zones/us-central2-b/clusters/demo/nodePools/{POOL}"
STOCKOUT = "Google Compute Engine: [GCE_STOCKOUT]"

Status = gke.NodePool.Status
Ends = gke.Operation.Status
Answer = Any
"""One of Google's messages, or an exception to raise."""


def an_error(kind: type[google.GoogleAPICallError], text: str) -> google.GoogleAPICallError:
    return kind(text)


@dataclass
class Recording:
    """Plays one answer per method, and keeps the calls; a method without an answer fails the test."""

    answers: Mapping[str, Answer]
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def __getattr__(self, method: str) -> Any:
        def answer(**arguments: Any) -> Any:
            self.calls.append((method, arguments))
            found = self.answers[method]
            if isinstance(found, Exception):
                raise found
            return found

        return answer

    @property
    def methods(self) -> list[str]:
        return [method for method, _ in self.calls]


def backend(recording: Recording) -> GkeBackend:
    return GkeBackend(cast("gke.ClusterManagerClient", recording))


def a_pool(status: int, **changes: Any) -> gke.NodePool:
    config = gke.NodeConfig(labels=labels_of(ORDER.job, 1, a_spec(fingerprint="v1-abc")))
    return gke.NodePool(**{"name": POOL, "status": status, "config": config, **changes})


def a_creation(status: int = Ends.DONE, **changes: Any) -> gke.Operation:
    fields = {
        "name": "operation-1",
        "operation_type": gke.Operation.Type.CREATE_NODE_POOL,
        "status": status,
        "target_link": LINK,
        **changes,
    }
    return gke.Operation(**fields)


def failed(**changes: Any) -> gke.Operation:
    return a_creation(error=status_pb2.Status(code=8, message=STOCKOUT), **changes)


def listed(*operations: gke.Operation) -> gke.ListOperationsResponse:
    return gke.ListOperationsResponse(operations=operations)

"""Warns if another provisioner is active in this cluster too: both would create nodes for the same pods."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import structlog

from relay.events import COMPONENT
from tpu_slices.domain.model.reasons import ClusterReason
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.wire.operator_objects import OPERATOR, OPERATOR_NAMESPACE

_log = structlog.get_logger()


class Provisioner(NamedTuple):
    """A provisioner that may run beside ours."""

    name: str
    namespace: str
    deployment: str
    both: str
    """What both would do."""

    @property
    def place(self) -> tuple[str, str]:
        """The namespace and the name of its Deployment."""
        return self.namespace, self.deployment

    @property
    def message(self) -> str:
        """What is told if it is active."""
        return (
            f"{self.name} runs in this cluster beside the TPU slice provisioner: {self.both}, and both are billed. "
            f"Stop one of them: kubectl scale deployment {self.deployment} --namespace {self.namespace} --replicas 0"
        )


TPU_PROVISIONER = Provisioner(
    "TPU Provisioner",
    "tpu-provisioner-system",
    "tpu-provisioner-controller-manager",
    "both create node pools for the same JobSets",
)
"""By its names in ai-on-gke/tpu-provisioner@6789e2a, config/default, config/manager."""
TPU_OPERATOR = Provisioner(
    "TPU operator", OPERATOR_NAMESPACE, OPERATOR, "both make instance groups for the same TPUNodeGroups"
)
OURS = ("tpu-slice-provisioner", "relay")
"""As infra/kubernetes/relay/base/deployment.yaml names them."""
LOOK_EVERY = 600.0


class Cluster(Protocol):
    """Single calls, as in `relay.cluster.Cluster`."""

    def deployment(self, namespace: str, name: str) -> Mapping[str, Any] | None: ...

    def post(self, event: Mapping[str, Any]) -> None: ...


class LegacyProvisionerCheck:
    """Checks at the start, and then every ten minutes; without permission to read the Deployment it does not warn."""

    def __init__(self, cluster: Cluster, now: Callable[[], datetime], other: Provisioner) -> None:
        self._cluster = cluster
        self._now = now
        self._other = other
        self._stopping = threading.Event()

    def run(self) -> None:
        """Check until `stop` is called."""
        self.look()
        while not self._stopping.wait(LOOK_EVERY):
            self.look()

    def stop(self) -> None:
        self._stopping.set()

    def look(self) -> None:
        """Warn, in the log and by an Event, if both are active."""
        try:
            if not is_active(self._cluster.deployment(*self._other.place)):
                return
            _log.warning(LogEvent.LEGACY_PROVISIONER_DETECTED, message=self._other.message)
            ours = self._cluster.deployment(*OURS)
            if ours is not None:
                self._cluster.post(warning(ours, self._other.message, self._now()))
        except (Temporary, Permanent) as trouble:
            _log.debug(LogEvent.LEGACY_PROVISIONER_UNKNOWN, error=str(trouble))


def is_active(deployment: Mapping[str, Any] | None) -> bool:
    """Return whether an apps/v1 Deployment has an available pod."""
    available: int = ((deployment or {}).get("status") or {}).get("availableReplicas", 0)
    return available > 0


def warning(ours: Mapping[str, Any], message: str, now: datetime) -> Mapping[str, Any]:
    """Return the v1 Event on our own Deployment; its name is fixed, so it is posted once until it expires."""
    namespace, name = OURS
    at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    about = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": namespace, "name": name}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.both-provisioners-active", "namespace": namespace},
        "involvedObject": {**about, "uid": ours["metadata"]["uid"]},
        "type": "Warning",
        "reason": ClusterReason.BOTH_PROVISIONERS_ACTIVE.value,
        "message": message,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": name,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }

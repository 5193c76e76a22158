"""Warns if TPU Provisioner is active in this cluster too: both would create nodes for the same pods."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Protocol

import structlog

from relay.events import COMPONENT
from tpu_slices.domain.model.reasons import ClusterReason
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent

_log = structlog.get_logger()

THEIRS = ("tpu-provisioner-system", "tpu-provisioner-controller-manager")
"""Its namespace and Deployment (ai-on-gke/tpu-provisioner@6789e2a, config/default, config/manager)."""
OURS = ("tpu-slice-provisioner", "relay")
"""As infra/kubernetes/relay/base/deployment.yaml names them."""
LOOK_EVERY = 600.0

MESSAGE = (
    "TPU Provisioner runs in this cluster beside the TPU slice provisioner: both create node pools for the same "
    "JobSets, and both are billed. Stop one of them: kubectl scale deployment "
    f"{THEIRS[1]} --namespace {THEIRS[0]} --replicas 0"
)


class Cluster(Protocol):
    """Single calls, as in `relay.cluster.Cluster`."""

    def deployment(self, namespace: str, name: str) -> Mapping[str, Any] | None: ...

    def post(self, event: Mapping[str, Any]) -> None: ...


class LegacyProvisionerCheck:
    """Checks at the start, and then every ten minutes; without permission to read the Deployment it does not warn."""

    def __init__(self, cluster: Cluster, now: Callable[[], datetime]) -> None:
        self._cluster = cluster
        self._now = now
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
            if not is_active(self._cluster.deployment(*THEIRS)):
                return
            _log.warning(LogEvent.LEGACY_PROVISIONER_DETECTED, message=MESSAGE)
            ours = self._cluster.deployment(*OURS)
            if ours is not None:
                self._cluster.post(warning(ours, self._now()))
        except (Temporary, Permanent) as trouble:
            _log.debug(LogEvent.LEGACY_PROVISIONER_UNKNOWN, error=str(trouble))


def is_active(deployment: Mapping[str, Any] | None) -> bool:
    """Return whether an apps/v1 Deployment has an available pod."""
    available: int = ((deployment or {}).get("status") or {}).get("availableReplicas", 0)
    return available > 0


def warning(ours: Mapping[str, Any], now: datetime) -> Mapping[str, Any]:
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
        "message": MESSAGE,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": name,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }

"""JobSet's placement by node selector: the nodes of a Job's slice must be marked for that Job alone.

GKE refuses that placement's label on a node pool, so the nodes are labelled once they are there; JobSet leaves that to
others (kubernetes-sigs/jobset pkg/controllers/jobset_controller.go, constructJob). Their taint comes with the pool, so
that nobody else is quicker; here it is only put back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

import structlog

from relay.objects import Host
from tpu_slices.domain.planning.host_labels import JOBSET_TAINT, NAMESPACED_JOB
from tpu_slices.domain.planning.pool_labels import EXCLUSIVE_NODES_LABEL, PARENT_NAME_LABEL, PARENT_NAMESPACE_LABEL
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent

_log = structlog.get_logger()

TAINT: Mapping[str, str] = {"key": JOBSET_TAINT, "value": "true", "effect": "NoSchedule"}
"""JobSet's pods tolerate it by its key and effect."""
RETRY_AFTER = timedelta(minutes=1)
_LONGEST = 63
"""Of a label's value. A longer namespace and name JobSet itself could not select by."""


def missing_labels(node: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Give the JSON merge patch that marks a v1 Node of ours for its Job; None where it is marked, or need not be.

    The patch names the resourceVersion that it rests on: it replaces all taints, and must not undo another's.
    """
    metadata = node["metadata"]
    labels: Mapping[str, str] = metadata.get("labels") or {}
    if labels.get(EXCLUSIVE_NODES_LABEL) != "true":
        return None
    job = f"{labels.get(PARENT_NAMESPACE_LABEL)}_{labels.get(PARENT_NAME_LABEL)}"
    if PARENT_NAMESPACE_LABEL not in labels or PARENT_NAME_LABEL not in labels or len(job) > _LONGEST:
        return None
    taints: Sequence[Mapping[str, str]] = node["spec"].get("taints") or ()
    tainted = any(TAINT.items() <= taint.items() for taint in taints)
    if tainted and labels.get(NAMESPACED_JOB) == job:
        return None
    others = [taint for taint in taints if (taint["key"], taint["effect"]) != (TAINT["key"], TAINT["effect"])]
    return {
        "metadata": {"resourceVersion": metadata["resourceVersion"], "labels": {NAMESPACED_JOB: job}},
        "spec": {"taints": [*others, dict(TAINT)]},
    }


class Nodes(Protocol):
    """As `relay.cluster.Cluster`: Temporary and Permanent where the API server refuses."""

    def label_node(self, node: str, patch: Mapping[str, Any]) -> None: ...


class NodeLabeler:
    """Sends the patches that hosts need; for a while none to a pool one of whose hosts refused.

    A host is tried again when it changed, and after `RETRY_AFTER`: that its patch was taken is known by the watch.
    """

    def __init__(
        self,
        unlabeled: Callable[[], Sequence[Host]],
        nodes: Nodes,
        now: Callable[[], datetime],
        look_every: float = 1.0,
    ) -> None:
        self._unlabeled = unlabeled
        self._nodes = nodes
        self._now = now
        self._look_every = look_every
        self._tried: dict[str, tuple[Mapping[str, Any] | None, datetime]] = {}
        self._refused: dict[Hashable, datetime] = {}
        self._stopping = threading.Event()

    def run(self) -> None:
        """Look for hosts to mark until it is time to stop."""
        while not self._stopping.wait(self._look_every):
            self.look()

    def stop(self) -> None:
        self._stopping.set()

    def look(self) -> None:
        """Try each host that is due."""
        hosts = self._unlabeled()
        self._forget_all_but(hosts)
        for host in hosts:
            if self._is_due(host, self._now()):
                self._label(host)

    def _label(self, host: Host) -> None:
        assert host.unlabeled is not None
        self._tried[host.node] = (host.unlabeled, self._now())
        try:
            self._nodes.label_node(host.node, host.unlabeled)
        except (Temporary, Permanent) as trouble:
            if host.pool not in self._refused:
                _log.warning(LogEvent.NODE_LABEL_FAILED, node=host.node, error=str(trouble))
            self._refused[host.pool] = self._now()

    def _is_due(self, host: Host, now: datetime) -> bool:
        refused, (patch, tried) = self._refused.get(host.pool), self._tried.get(host.node, (None, now))
        if refused is not None and now - refused < RETRY_AFTER:
            return False
        return patch != host.unlabeled or now - tried >= RETRY_AFTER

    def _forget_all_but(self, hosts: Sequence[Host]) -> None:
        nodes, pools = {host.node for host in hosts}, {host.pool for host in hosts}
        self._tried = {node: tried for node, tried in self._tried.items() if node in nodes}
        self._refused = {pool: at for pool, at in self._refused.items() if pool in pools}

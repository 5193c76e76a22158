"""JobSet's exclusive placement by node selector: the nodes of a Job's slice are labeled for that Job alone.

GKE refuses that placement's label on a node pool, so the nodes are labeled once they exist; JobSet leaves that to
others (kubernetes-sigs/jobset pkg/controllers/jobset_controller.go, constructJob). The taint is part of the node pool,
so that no other pod is scheduled there first; here it is only restored where it is missing.
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
"""JobSet's pods tolerate it, by key and effect."""
RETRY_AFTER = timedelta(minutes=1)
_LONGEST = 63
"""Characters of a label's value. JobSet itself cannot select by a longer namespace and name."""


def missing_labels(node: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the JSON merge patch that labels a v1 Node for its Job; None if it is labeled, or need not or cannot be.

    The patch has the resourceVersion that it is based on: it replaces all taints, and must not undo another's change.
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
    """As `relay.cluster.Cluster`: raises Temporary or Permanent if the API server refuses."""

    def label_node(self, node: str, patch: Mapping[str, Any]) -> None: ...


class NodeLabeler:
    """Sends the patches that hosts need; after a failure, no others to that pool for `RETRY_AFTER`.

    A host is retried once it has changed, or after `RETRY_AFTER`: the watch shows whether its patch was applied.
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
        """Label hosts until `stop` is called."""
        while not self._stopping.wait(self._look_every):
            self.look()

    def stop(self) -> None:
        self._stopping.set()

    def look(self) -> None:
        """Patch each host that is due."""
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

"""Labels nodes that came to a self-managed cluster without our startup script, if their machines are a slice's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

import structlog

from relay.objects import PoolKey
from tpu_slices.domain.model.node_groups import NodesExpected
from tpu_slices.domain.planning.pool_labels import ATTEMPT_LABEL, SLICE_ID_LABEL
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent

_log = structlog.get_logger()

EXPECTED_FOR = timedelta(minutes=25)
"""How long nodes are looked for after they were last said to be expected; that is said every 10 minutes."""


class Nodes(Protocol):
    """As `relay.cluster.Cluster`: raises Temporary or Permanent if the API server refuses."""

    def nodes(self) -> Sequence[Mapping[str, Any]]: ...

    def patch_node(self, node: str, patch: Mapping[str, Any]) -> None: ...


class NodeLabeler:
    """Looks at all nodes while some are expected, as no watch shows those without our labels."""

    def __init__(self, nodes: Nodes, now: Callable[[], datetime], look_every: float = 10.0) -> None:
        self._nodes = nodes
        self._now = now
        self._look_every = look_every
        self._expected: dict[PoolKey, tuple[NodesExpected, datetime]] = {}
        self._failed = False
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    def expect(self, expected: NodesExpected) -> None:
        """Look for these nodes from now on; may be called by any thread."""
        with self._lock:
            self._expected[PoolKey(expected.slice_id, expected.attempt)] = (expected, self._now())

    def run(self) -> None:
        """Label nodes until `stop` is called."""
        while not self._stopping.wait(self._look_every):
            self.look()

    def stop(self) -> None:
        self._stopping.set()

    def look(self) -> None:
        """Label the nodes that are there and lack labels."""
        with self._lock:
            now = self._now()
            self._expected = {key: each for key, each in self._expected.items() if now - each[1] < EXPECTED_FOR}
            expected = [each for each, _ in self._expected.values()]
        if not expected:
            return
        troubles = list(self._troubles(expected))
        if troubles and not self._failed:
            _log.warning(LogEvent.NODE_LABEL_FAILED, error=troubles[0])
        self._failed = bool(troubles)

    def _troubles(self, expected: Sequence[NodesExpected]) -> Iterator[str]:
        """Label what lacks labels, and yield what went wrong: one node that is refused keeps no other waiting."""
        try:
            nodes = self._nodes.nodes()
        except (Temporary, Permanent) as trouble:
            yield str(trouble)
            return
        for node in nodes:
            patch = next((found for each in expected if (found := patch_of(node, each)) is not None), None)
            try:
                if patch is not None:
                    self._nodes.patch_node(node["metadata"]["name"], patch)
            except (Temporary, Permanent) as trouble:
                yield f"{node['metadata']['name']}: {trouble}"


def patch_of(node: Mapping[str, Any], expected: NodesExpected) -> Mapping[str, Any] | None:
    """Return the JSON merge patch that labels a v1 Node; None if it is not one of these, or has its labels.

    Its machine must be an instance of the pool's group, and nobody may have said that it is another pool's.
    """
    metadata, labels = node["metadata"], node["metadata"].get("labels") or {}
    provider = str((node.get("spec") or {}).get("providerID", ""))
    of = labels.get(SLICE_ID_LABEL, expected.slice_id), labels.get(ATTEMPT_LABEL, str(expected.attempt))
    if not provider.startswith(expected.instances) or of != (expected.slice_id, str(expected.attempt)):
        return None
    missing = {key: value for key, value in expected.labels if key not in labels}
    return {"metadata": {"resourceVersion": metadata["resourceVersion"], "labels": missing}} if missing else None

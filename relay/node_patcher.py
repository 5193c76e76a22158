"""How the patches that nodes need are sent."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

import structlog

from relay.agenda import rising_pause
from relay.node_patches import NodePatch
from relay.objects import Pool
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent

_log = structlog.get_logger()

RETRY_AFTER = timedelta(minutes=1)
"""How long a patch that was accepted may have no effect."""
AT_ONCE = 20
"""The most patches that are sent before it is looked up again which ones are needed."""


class Nodes(Protocol):
    """As `relay.cluster.Cluster`: raises Temporary or Permanent if the API server refuses."""

    def patch_node(self, node: str, patch: Mapping[str, Any]) -> None: ...


class NodePatcher:
    """Sends each patch once; after a failure, no others of its kind to that pool for a pause that rises.

    A node is patched again once it has changed, or after RETRY_AFTER: the watch shows whether its patch was applied.
    """

    def __init__(
        self,
        needed: Callable[[], Sequence[NodePatch]],  # raises Temporary
        nodes: Nodes,
        now: Callable[[], datetime],
        look_every: float = 1.0,
    ) -> None:
        self._needed = needed
        self._nodes = nodes
        self._now = now
        self._look_every = look_every
        self._tried: dict[str, tuple[Mapping[str, Any] | None, datetime]] = {}
        self._failures: dict[tuple[Pool, LogEvent], tuple[int, datetime]] = {}
        self._stopping = threading.Event()

    def run(self) -> None:
        """Patch nodes until `stop` is called."""
        pause = self._look_every
        while not self._stopping.wait(pause):
            pause = 0.0 if self.look() else self._look_every

    def stop(self) -> None:
        self._stopping.set()

    def look(self) -> bool:
        """Send the first patches that are due; return whether there are more. Nodes that were tried last come last."""
        try:
            needed = self._needed()
        except Temporary:
            return False
        self._forget_all_but(needed)
        due = sorted((each for each in needed if self._is_due(each)), key=self._turn)
        for each in due[:AT_ONCE]:
            if self._is_due(each):
                self._send(each)
        return len(due) > AT_ONCE

    def _send(self, needed: NodePatch) -> None:
        kind, now = (needed.pool, needed.failure), self._now()
        self._tried[needed.node] = (needed.patch, now)
        try:
            self._nodes.patch_node(needed.node, needed.patch)
        except (Temporary, Permanent) as trouble:
            failures, _ = self._failures.get(kind, (0, now))
            event = needed.failure
            if not failures:
                _log.warning(event, node=needed.node, error=str(trouble))
            self._tried[needed.node] = (None, now)
            pause = timedelta(seconds=rising_pause(1.0, failures))
            self._failures[kind] = (failures + 1, self._now() + pause)
        else:
            self._failures.pop(kind, None)

    def _turn(self, needed: NodePatch) -> tuple[float, str]:
        tried = self._tried.get(needed.node)
        return (tried[1].timestamp() if tried else 0.0, needed.node)

    def _is_due(self, needed: NodePatch) -> bool:
        now = self._now()
        _, paused_until = self._failures.get((needed.pool, needed.failure), (0, now))
        patch, tried = self._tried.get(needed.node, (None, now))
        return now >= paused_until and (patch != needed.patch or now - tried >= RETRY_AFTER)

    def _forget_all_but(self, needed: Sequence[NodePatch]) -> None:
        nodes, kinds = {each.node for each in needed}, {(each.pool, each.failure) for each in needed}
        self._tried = {node: tried for node, tried in self._tried.items() if node in nodes}
        self._failures = {kind: failed for kind, failed in self._failures.items() if kind in kinds}

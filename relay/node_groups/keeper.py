"""Holds the objects of TPUNodeGroups by a finalizer: nothing is bought for one that could vanish unnoticed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

import structlog

from relay.agenda import rising_pause
from relay.cluster_cache import ClusterCache
from relay.node_groups.status import held
from relay.objects import Workload
from tpu_slices.domain.model.slices import Owner
from tpu_slices.domain.planning.tpu_operator import holds
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent

_log = structlog.get_logger()

RETRY_AFTER = timedelta(seconds=30)
"""How long a patch that was accepted may have no effect."""

_ADOPT = "it has finalizers of TPU operator: adopt it with `slices adopt`, or delete it while TPU operator runs"


class Groups(Protocol):
    """As `relay.cluster.Cluster`: raises Temporary or Permanent if the API server refuses."""

    def patch_group(self, owner: Owner, patch: Mapping[str, Any]) -> None: ...


def not_held(cache: ClusterCache) -> tuple[Workload, ...]:
    """Return the TPUNodeGroups that stand and that we do not hold yet."""
    return tuple(each for each in cache.groups() if not (each.held or each.state.ended))


class NodeGroupKeeper:
    """Patches each group once; again after a while, or after a failure with rising pauses.

    One that TPU operator holds is not ours to hold: its slice would be bought twice.
    """

    def __init__(
        self,
        needed: Callable[[], Sequence[Workload]],  # raises Temporary
        groups: Groups,
        now: Callable[[], datetime],
        look_every: float = 1.0,
    ) -> None:
        self._needed = needed
        self._groups = groups
        self._now = now
        self._look_every = look_every
        self._again_at: dict[str, tuple[int, datetime]] = {}
        self._stopping = threading.Event()

    def run(self) -> None:
        """Hold groups until `stop` is called."""
        while not self._stopping.wait(self._look_every):
            self.look()

    def stop(self) -> None:
        self._stopping.set()

    def look(self) -> None:
        """Hold the groups that are not held, and whose turn it is."""
        try:
            needed = self._needed()
        except Temporary:
            return
        known = {each.identity for each in needed}
        self._again_at = {uid: tried for uid, tried in self._again_at.items() if uid in known}
        for each in needed:
            failures, again_at = self._again_at.get(each.identity, (0, self._now()))
            if self._now() >= again_at:
                self._hold(each, failures)

    def _hold(self, group: Workload, failures: int) -> None:
        trouble = _ADOPT if holds(group.finalizers) else self._patch(group)
        if not trouble:
            self._again_at[group.identity] = (0, self._now() + RETRY_AFTER)
            return
        if not failures:
            _log.warning(LogEvent.NODE_GROUP_HOLD_FAILED, owner=group.ref.owner.full_name, error=trouble)
        pause = timedelta(seconds=rising_pause(1.0, failures))
        self._again_at[group.identity] = (failures + 1, self._now() + pause)

    def _patch(self, group: Workload) -> str:
        """Hold a group; return why it is not held, empty if it is."""
        metadata = {"resourceVersion": group.ref.resource_version, "finalizers": group.finalizers}
        try:
            self._groups.patch_group(group.ref.owner, held(metadata))
        except (Temporary, Permanent) as trouble:
            return str(trouble)
        return ""

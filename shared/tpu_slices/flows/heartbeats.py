"""Notices that a cluster's relay fell silent, and that it is heard again."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.reconciling.inventory import RelayHeartbeat, silent_since
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.errors import StaleRecord
from tpu_slices.ports.store import Change, Stored


@dataclass(frozen=True, slots=True)
class RelaySilence:
    """A relay that is silent, or was until now."""

    cluster: ClusterId
    since: datetime
    over: bool


def listen(cluster: ClusterId, deps: ReconcileDeps) -> RelaySilence | None:
    """Return the silence of the cluster's relay at each call while it lasts, and once when it is over.

    The heartbeat's document is written when a heartbeat is first expected, and when a silence begins or ends.
    """
    now = deps.clock.now()
    stored = deps.store.heartbeat(cluster)
    heartbeat = stored.value if stored else RelayHeartbeat(cluster=cluster)
    if heartbeat.received_at is None and heartbeat.expected_since is None:
        _write(stored, replace(heartbeat, expected_since=now), deps)
        return None
    since = silent_since(heartbeat, now)
    if since is not None:
        if heartbeat.silent_since is None:
            _write(stored, replace(heartbeat, silent_since=since), deps)
        return RelaySilence(cluster, since, over=False)
    if heartbeat.silent_since is not None and _write(stored, replace(heartbeat, silent_since=None), deps):
        return RelaySilence(cluster, heartbeat.silent_since, over=True)
    return None


def _write(before: Stored[RelayHeartbeat] | None, after: RelayHeartbeat, deps: ReconcileDeps) -> bool:
    """Return whether it was written; if a heartbeat was received meanwhile, the next sweep writes it."""
    with suppress(StaleRecord):
        deps.store.commit(Change(before, after))
        return True
    return False

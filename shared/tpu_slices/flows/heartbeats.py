"""Notices that a relay fell silent, or a cluster is paused, and when that ends; calls for reports that say so."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.reconciling.inventory import BEFORE_ALL
from tpu_slices.domain.records.heartbeats import RelayHeartbeat, silent_since
from tpu_slices.domain.reporting.reports import called_for
from tpu_slices.ports.deps import IntakeDeps, ReconcileDeps
from tpu_slices.ports.errors import Permanent, StaleRecord
from tpu_slices.ports.store import Change, Stored, Together

PAGE = 200
"""The most JobSets whose reports become due with one sweep: as many as it reports on."""


@dataclass(frozen=True, slots=True)
class RelaySilence:
    """A relay that is silent, or was until now."""

    cluster: ClusterId
    since: datetime
    over: bool


def change_heartbeat(
    change: Callable[[RelayHeartbeat, datetime], RelayHeartbeat], cluster: ClusterId, deps: IntakeDeps
) -> None:
    """Write the cluster's heartbeat as `change` returns it, which is called with the known one and the time."""
    stored = deps.store.heartbeat(cluster)
    known = stored.value if stored else RelayHeartbeat.of(cluster)
    deps.store.commit(Change(stored, change(known, deps.clock.now())))


def listen(read: Together, deps: ReconcileDeps) -> RelaySilence | None:
    """Return the silence of a cluster's relay at each call while it lasts, and once when it is over.

    The heartbeat's document is written when a heartbeat is first expected, and when a silence or a pause begins or
    ends, when reports of all JobSets are to be called for.
    """
    settings, stored, now = read.settings, read.heartbeat, deps.clock.now()
    assert settings is not None
    cluster = settings.cluster
    heartbeat = stored.value if stored else RelayHeartbeat.of(cluster)
    since = silent_since(heartbeat, now)
    after = _listened(heartbeat, since, settings.paused, now)
    is_written = after == heartbeat or _write(stored, after, deps)
    if since is not None:
        return RelaySilence(cluster, since, over=False)
    was_silent_since = heartbeat.silent_since
    return RelaySilence(cluster, was_silent_since, over=True) if was_silent_since and is_written else None


def _listened(heartbeat: RelayHeartbeat, since: datetime | None, paused: str | None, now: datetime) -> RelayHeartbeat:
    """Return the heartbeat once it is known since when the relay is silent, if it is, and why the cluster is paused."""
    if heartbeat.received_at is None and heartbeat.expected_since is None:
        return replace(heartbeat, expected_since=now, paused=paused)
    if (heartbeat.silent_since is None, heartbeat.paused) == (since is None, paused):
        return heartbeat
    silent = (heartbeat.silent_since or since) if since else None
    return replace(heartbeat, silent_since=silent, paused=paused, reported_up_to=BEFORE_ALL)


def call_for_reports(cluster: ClusterId, deps: ReconcileDeps) -> None:
    """Make the reports of some JobSets due, until all tell that the relay fell silent or is heard again.

    It begins with the same JobSet again if it fails: a report that is due is not written once more.
    """
    stored = deps.store.heartbeat(cluster)
    if stored is None or stored.value.reported_up_to is None:
        return
    uids = [uid for uid, _ in islice(deps.store.live_standings(cluster, after=stored.value.reported_up_to), PAGE)]
    for workload in deps.store.workloads(cluster, uids).values():
        has_slices = workload.value.state is WorkloadState.ACTIVE and workload.value.demand
        called = called_for(workload.value, deps.clock.now()) if has_slices else None
        if called is not None:
            with suppress(Permanent):  # nor can any other report of it be saved
                deps.store.commit(Change(workload, called))
    last = uids[-1] if len(uids) == PAGE else None
    deps.store.commit(Change(stored, replace(stored.value, reported_up_to=last)))


def _write(before: Stored[RelayHeartbeat] | None, after: RelayHeartbeat, deps: ReconcileDeps) -> bool:
    """Return whether it was written; if a heartbeat was received meanwhile, the next sweep writes it."""
    with suppress(StaleRecord):
        deps.store.commit(Change(before, after))
        return True
    return False

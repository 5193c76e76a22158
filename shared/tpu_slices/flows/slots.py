"""The governor's slots: taken before a creation is remembered, freed after its end is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.reconciling.limiter import Candidate, Governor, Slot, admit, cell_of, widened
from tpu_slices.ports.deps import Ports
from tpu_slices.ports.errors import StaleRecord
from tpu_slices.ports.store import Change, Stored


def take(record: SliceRecord, settings: ClusterSettings, ports: Ports) -> int | None:
    """Take a slot for the record's attempt; the one it already has, if a crash came in between. None: none is free."""
    if record.spec is None:
        return None
    cluster, now = settings.cluster, ports.clock.now()
    running = [slot.value for slot in ports.store.slots(cluster)]
    for slot in running:
        if (slot.slice_id, slot.attempt) == (record.id, record.attempt):
            return slot.number
    _, governor = _governor(cluster, now, ports)
    me = Candidate(record.id, cell_of(record.spec), record.since)
    if not admit([me], running, governor, now, settings.limits):
        return None
    number = _first_free({slot.number for slot in running})
    slot = Slot(cluster=cluster, number=number, slice_id=record.id, attempt=record.attempt, cell=me.cell, taken_at=now)
    ports.store.commit(Change(None, slot))
    return number


def free(slot: Stored[Slot], settings: ClusterSettings, ports: Ports) -> None:
    """Give a slot back, and nudge those who may start now. If somebody else freed it, they did both."""
    with suppress(StaleRecord):
        ports.store.commit(Change(slot, None))
        change_governor(lambda governor, now: widened(governor, now, settings.limits), settings.cluster, ports)
        _admit_next(settings, ports)


def change_governor(change: Callable[[Governor, datetime], Governor], cluster: ClusterId, ports: Ports) -> None:
    """Change the governor; if somebody else did so at the same moment, theirs is as good as ours."""
    now = ports.clock.now()
    stored, before = _governor(cluster, now, ports)
    after = change(before, now)
    if after != before:
        with suppress(StaleRecord):
            ports.store.commit(Change(stored, after))


def _governor(cluster: ClusterId, now: datetime, ports: Ports) -> tuple[Stored[Governor] | None, Governor]:
    stored = ports.store.governor(cluster)
    return stored, stored.value if stored else Governor(cluster=cluster, changed_at=now, shortages={})


def _admit_next(settings: ClusterSettings, ports: Ports) -> None:
    cluster, now = settings.cluster, ports.clock.now()
    _, governor = _governor(cluster, now, ports)
    waiting = ports.store.queued_slices(cluster, 2 * governor.width)
    candidates = [Candidate(record.id, cell_of(record.spec), record.since) for record in waiting if record.spec]
    running = [slot.value for slot in ports.store.slots(cluster)]
    admitted = admit(candidates, running, governor, now, settings.limits)
    if admitted:
        ports.bus.nudge(cluster, [candidate.slice_id for candidate in admitted])


def _first_free(taken: set[int]) -> int:
    number = 0
    while number in taken:
        number += 1
    return number

"""Attempts that are left behind: their pools are gone after until they are gone, their names never used again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.decisions import Action, DeletePool
from tpu_slices.domain.model.facts import Occupant
from tpu_slices.domain.model.observations import (
    Absent,
    Broken,
    Busy,
    Creating,
    Observation,
    Running,
    Unowned,
    Unreadable,
)
from tpu_slices.domain.model.records import SliceRecord, TerminatingAttempt

OCCUPANTS_KNOWN_WITHIN = timedelta(minutes=6)
"""A pool that was found is spared so long: the relay repeats every 5 minutes who is on which hosts."""


def begin_next_attempt(
    record: SliceRecord,
    *,
    delete_requested_at: datetime | None = None,
    occupants: tuple[Occupant, ...] = (),
    delete_after: datetime | None = None,
) -> SliceRecord:
    """Leave the current attempt behind: its name is never used again."""
    left = TerminatingAttempt(
        attempt=record.attempt, delete_requested_at=delete_requested_at, occupants=occupants, delete_after=delete_after
    )
    return replace(
        record,
        terminating=(*record.terminating, left),
        attempt=max(record.attempt, *(earlier.attempt for earlier in record.terminating), 0) + 1,
        create_requested_at=None,
        creating=False,
        operation=None,
        rebuild_allowed=False,
        hosts_usable=0,
        hosts_joined=0,
        hosts_sequence=0,
        occupants=(),
        vacant_since=None,
    )


def follow(
    record: SliceRecord, seen: Mapping[int, Observation], now: datetime, limits: Limits
) -> tuple[SliceRecord, tuple[Action, ...]]:
    """Go after the earlier attempts: forget what is gone, order again what shows no sign of going."""
    stay: list[TerminatingAttempt] = []
    deletes: list[Action] = []
    for left in record.terminating:
        match seen.get(left.attempt, Unreadable("not looked at")):
            case Absent() | Unowned():
                continue
            case Creating() | Running() | Busy() | Broken() if not left.occupants and _delete_due(left, now, limits):
                deletes.append(DeletePool(left.attempt))
                stay.append(replace(left, delete_requested_at=now))
            case _:
                stay.append(left)
    return replace(record, terminating=tuple(stay)), tuple(deletes)


def _delete_due(left: TerminatingAttempt, now: datetime, limits: Limits) -> bool:
    if left.delete_after is not None and now < left.delete_after:
        return False
    return left.delete_requested_at is None or now - left.delete_requested_at >= limits.delete_retry_after

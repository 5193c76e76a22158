"""Terminating attempts: their pools are deleted until they no longer exist, and their names are never used again."""

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
"""How long a found or adopted pool is kept before it may be deleted: the relay repeats occupants every 5 minutes."""


def begin_next_attempt(
    record: SliceRecord,
    *,
    delete_requested_at: datetime | None = None,
    occupants: tuple[Occupant, ...] = (),
    delete_after: datetime | None = None,
) -> SliceRecord:
    """Return the record with its current attempt terminating and the next one, not yet requested, as current."""
    previous = TerminatingAttempt(
        attempt=record.attempt, delete_requested_at=delete_requested_at, occupants=occupants, delete_after=delete_after
    )
    return replace(
        record,
        terminating=(*record.terminating, previous),
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
    """Return the record without attempts whose pools no longer exist, and the deletions to request (again)."""
    kept: list[TerminatingAttempt] = []
    deletes: list[Action] = []
    for earlier in record.terminating:
        match seen.get(earlier.attempt, Unreadable("not observed")):
            case Absent() | Unowned():
                continue
            case Creating() | Running() | Busy() | Broken() if not earlier.occupants and _delete_due(
                earlier, now, limits
            ):
                deletes.append(DeletePool(earlier.attempt))
                kept.append(replace(earlier, delete_requested_at=now))
            case _:
                kept.append(earlier)
    return replace(record, terminating=tuple(kept)), tuple(deletes)


def _delete_due(earlier: TerminatingAttempt, now: datetime, limits: Limits) -> bool:
    if earlier.delete_after is not None and now < earlier.delete_after:
        return False
    return earlier.delete_requested_at is None or now - earlier.delete_requested_at >= limits.delete_retry_after

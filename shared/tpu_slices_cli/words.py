"""Times, observations and actions in words. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import assert_never

from tpu_slices.domain.model.decisions import Action, CreatePool
from tpu_slices.domain.model.observations import (
    Absent,
    Broken,
    Busy,
    Creating,
    Deleting,
    Observation,
    Running,
    Unowned,
    Unreadable,
)
from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.domain.model.slices import LAST_ATTEMPT

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def span(duration: timedelta) -> str:
    """Say how long in its largest unit, as in `12 min`; nothing at all is `0 s`."""
    seconds = max(0, int(duration.total_seconds()))
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), _UNITS[-1])
    return f"{seconds // size} {unit}"


def moment(at: datetime, now: datetime) -> str:
    """Say when, from now on: `in 4 min (14:20:00 UTC)`, `12 min ago (14:04:00 UTC)`; with the date on another day."""
    if at > now:
        return f"in {span(at - now)} ({clock(at, now)})"
    return f"{span(now - at)} ago ({clock(at, now)})"


def clock(at: datetime, now: datetime) -> str:
    return f"{at:%H:%M:%S} UTC" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M:%S} UTC"


def seen(observation: Observation) -> str:
    match observation:
        case Absent():
            return "there is none"
        case Creating(operation_runs=True):
            return "being created"
        case Creating():
            return "in creation, although no operation runs for it"
        case Running():
            return "running"
        case Busy(message):
            return f"GKE works on it: {message}"
        case Broken(failure):
            return f"broken: {failure.message}"
        case Deleting():
            return "being deleted"
        case Unowned(message):
            return f"not ours: {message}"
        case Unreadable(message):
            return f"cannot be read: {message}"
        case _:
            assert_never(observation)


def ordered(action: Action, record: SliceRecord) -> str:
    pool = record.pool_of(min(action.attempt, LAST_ATTEMPT))
    return f"create node pool {pool}" if isinstance(action, CreatePool) else f"delete node pool {pool}"


def shape(record: SliceRecord) -> str:
    spec = record.spec
    if spec is None:
        return "not known" if record.refusal is None else "none: refused"
    how = spec.capacity.reservation or spec.capacity.kind.lower().replace("_", " ")
    hosts = f"{spec.hosts} x {spec.machine_type}"
    return f"{spec.accelerator} {spec.topology}: {hosts}, {spec.chips} chips, {spec.zone}, {how}"


def paragraph(record: SliceRecord, now: datetime) -> str:
    """Say in a few sentences where a slice stands: what, since when, why, and what comes next."""
    since = f"for {span(now - record.since)} (since {clock(record.since, now)})"
    parts = [f"This slice has been {record.phase} {since}: {record.message or record.reason}"]
    if record.retry_at is not None and record.retry_at > now:
        parts.append(f"It is tried again {moment(record.retry_at, now)}.")
    elif record.next_reconcile_at is not None:
        parts.append(
            f"It is looked at again {moment(record.next_reconcile_at, now)}."
            if record.next_reconcile_at > now
            else "A look is due."
        )
    if record.hold:
        parts.append("A person holds it: nothing is created or deleted until `slices resume`.")
    if record.release_requested:
        parts.append("A person asked for its release.")
    return " ".join(parts)

"""Texts for times, observations, actions, specs and the state of a slice. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import assert_never

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.observations import (
    Absent,
    Begun,
    Broken,
    Busy,
    Creating,
    Deleting,
    Observation,
    Running,
    Unowned,
    Unreadable,
)
from tpu_slices.domain.model.reasons import UNUSED, Reason
from tpu_slices.domain.model.slices import LAST_ATTEMPT
from tpu_slices.domain.model.vendors import Vendor
from tpu_slices.domain.planning.costs import billed
from tpu_slices.domain.reconciling.decisions import (
    Action,
    AskJoin,
    CancelCreation,
    CloseHosts,
    CreatePool,
    DeletePool,
    DeleteRemains,
    EndJoin,
    OpenHosts,
    Relabel,
)
from tpu_slices.domain.records.slices import SliceRecord

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def span(duration: timedelta) -> str:
    """Return a duration in its largest unit, as in `12 min`; `0 s` if it is shorter than a second."""
    seconds = max(0, int(duration.total_seconds()))
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), _UNITS[-1])
    return f"{seconds // size} {unit}"


def moment(at: datetime, now: datetime) -> str:
    """Return a time relative to now: `in 4 min (14:20:00 UTC)`, `12 min ago (14:04:00 UTC)`; see `clock`."""
    if at > now:
        return f"in {span(at - now)} ({clock(at, now)})"
    return f"{span(now - at)} ago ({clock(at, now)})"


def clock(at: datetime, now: datetime) -> str:
    """Return a time in UTC, with its date if that is not today's."""
    return f"{at:%H:%M:%S} UTC" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M:%S} UTC"


_STATES: Mapping[type[Observation], str] = {
    Begun: "begun, so far there is",
    Busy: "busy",
    Unowned: "unowned",
    Unreadable: "cannot be read",
}


def seen(observation: Observation) -> str:
    """Return the observed state of what holds a slice's hosts."""
    match observation:
        case Absent():
            return "does not exist"
        case Creating(operation_runs):
            return "being created" if operation_runs else "being created, but no operation is in progress"
        case Running(awaiting=why) if why:
            return f"running, but without all of its hosts: {why}"
        case Running(lacking=why):
            return f"running, but somebody replaced what names its slice: {why}" if why else "running"
        case Broken(failure):
            return f"broken: {failure.message}"
        case Deleting(what):
            return f"being deleted, now {what}" if what else "being deleted"
        case Begun(message) | Busy(message) | Unowned(message) | Unreadable(message):
            return f"{_STATES[type(observation)]}: {message}"
        case _:
            assert_never(observation)


def ordered(action: Action, record: SliceRecord, vendor: Vendor) -> str:
    """Return an action as text, as in `create node pool tpu-llama-0-x-1`."""
    pool = record.pool_of(min(action.attempt, LAST_ATTEMPT))
    match action:
        case CreatePool():
            return f"create {vendor.pool} {pool}"
        case DeletePool():
            return f"delete {vendor.pool} {pool}"
        case DeleteRemains():
            return f"delete what is left of {pool} beside its hosts"
        case CancelCreation():
            return f"cancel the creation of {vendor.pool} {pool}"
        case Relabel():
            return f"put back {vendor.labels} of {vendor.pool} {pool}"
        case CloseHosts():
            return f"ask the relay to close the hosts of {pool} to new pods, and who is on them"
        case OpenHosts(key=key):
            return f"ask the relay to open the hosts of {pool}" + (f", with the key {key}" if key else " again")
        case AskJoin():
            return f"ask the relay for a token with which the hosts of {pool} join"
        case EndJoin():
            return f"remove the token with which the hosts of {pool} joined"


def hosts(record: SliceRecord) -> str:
    """Return how many hosts of a slice work, of how many, as in `3/4`."""
    return f"{record.current.hosts.working}/{record.made_as.hosts if record.made_as else '?'}"


def shape(record: SliceRecord) -> str:
    """Return accelerator, topology, hosts, chips, zone and capacity of a slice, and its rung if it has a ladder."""
    spec = record.spec
    if spec is None:
        return "unknown" if record.claim.refusal is None else "none: refused"
    how = spec.capacity.reservation or spec.capacity.kind.lower().replace("_", " ")
    hosts = f"{spec.hosts} x {spec.machine_type}"
    rung = f", {spec.standing} of ladder {spec.ladder.partition('@')[0]}" if spec.ladder else ""
    return f"{spec.accelerator} {spec.topology}: {hosts}, {spec.chips} chips, {spec.zone}, {how}{rung}"


def meanwhile(record: SliceRecord, settings: ClusterSettings | None) -> str:
    """Return what the hosts of a slice cost, as part of a sentence; nothing if there are none. See `billed`."""
    costs = billed([record], settings)
    return f", while {costs}" if costs else ""


def reason(record: SliceRecord) -> str:
    """Return the reason of a slice, and that it is on hold."""
    held = record.hold and record.reason is not Reason.HELD
    return f"{Reason.HELD} ({record.reason})" if held else record.reason


def message(record: SliceRecord, settings: ClusterSettings | None) -> str:
    """Return the message of a slice, and what it costs if it is costly. See `billed`."""
    said = record.message
    if record.hold and record.held[1:] not in said:
        said = f"H{record.held[1:]}. {said}"
    return f"{said.rstrip('.')}{meanwhile(record, settings)}." if is_costly(record) else said


def is_costly(record: SliceRecord) -> bool:
    """Return whether a slice costs what somebody should know of: it is on hold, or stands and is not used."""
    return record.hold or record.reason in UNUSED


def paragraph(record: SliceRecord, now: datetime, settings: ClusterSettings | None) -> str:
    """Return the state of a slice: phase, since when, message, next attempt, and what an operator requested."""
    since = f"for {span(now - record.since)} (since {clock(record.since, now)})"
    parts = [f"{record.phase} {since}: {(record.message or record.reason).rstrip('.')}."]
    if record.claim.retry_at is not None and record.claim.retry_at > now:
        parts.append(f"Next attempt {moment(record.claim.retry_at, now)}.")
    elif record.next_reconcile_at is not None:
        parts.append(
            f"Reconciled again {moment(record.next_reconcile_at, now)}."
            if record.next_reconcile_at > now
            else "Reconciliation is due."
        )
    if record.hold:
        parts.append(f"On hold, {record.held}{meanwhile(record, settings)}: `slices resume {record.name}` ends that.")
    if record.release_requested:
        parts.append("Its release was requested: its own workload keeps it no longer.")
    return " ".join(parts)

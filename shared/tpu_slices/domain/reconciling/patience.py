"""The next reconcile time of a slice, and what becomes of a slice whose attempt failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from tpu_slices.domain.capacity.spares import STOOD_AFTER
from tpu_slices.domain.model.clusters import ClusterSettings, Limits
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.domain.model.reasons import IN_LINE, Phase, Reason
from tpu_slices.domain.reconciling.decisions import Arm
from tpu_slices.domain.reconciling.deletion import Assessment
from tpu_slices.domain.reconciling.messages import failed_so_far
from tpu_slices.domain.records.claims import Rejection
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.use import UNUSED_FOR, not_running_since, vacant_since

FAILED: Mapping[FailureKind, Reason] = MappingProxyType(
    {
        FailureKind.STOCKOUT: Reason.STOCKOUT,
        FailureKind.QUOTA: Reason.QUOTA_EXCEEDED,
        FailureKind.EXHAUSTED: Reason.RESOURCES_EXHAUSTED,
        FailureKind.RESERVATION: Reason.RESERVATION_UNAVAILABLE,
        FailureKind.RESERVATION_AWAITED: Reason.RESERVATION_AWAITED,
        FailureKind.IP_SPACE: Reason.IP_SPACE_EXHAUSTED,
        FailureKind.RATE: Reason.TOO_MANY_OPERATIONS,
        FailureKind.BUSY: Reason.CLUSTER_BUSY,
        FailureKind.NAME_TAKEN: Reason.CREATION_STARTED,
        FailureKind.CONFIGURATION: Reason.INVALID_CONFIGURATION,
        FailureKind.IMPOSSIBLE: Reason.IMPOSSIBLE_SHAPE,
        FailureKind.HOSTS: Reason.HOSTS_NOT_USABLE,
        FailureKind.UNKNOWN: Reason.CREATION_FAILED,
    }
)
"""The reason of a slice after a failed attempt."""

IN_THE_WAY = frozenset({FailureKind.BUSY, FailureKind.RATE})
"""Another operation prevents this one: it is requested again, and is no attempt that failed."""

_MEANING: Mapping[FailureKind, str] = MappingProxyType(
    {
        FailureKind.STOCKOUT: "{zone} is out of {what}",
        FailureKind.QUOTA: "The project's quota does not allow {what_in_zone}",
        FailureKind.EXHAUSTED: "{zone} is out of {what}, or the project's quota does not allow more of them; {vendor} "
        "does not say which",
        FailureKind.RESERVATION: "{Reservation} cannot provide {what_in_zone} now",
        FailureKind.RESERVATION_AWAITED: "{Reservation} is not there, or cannot be used yet",
        FailureKind.IP_SPACE: "No addresses are left in the {vendor.addresses} for {hosts} hosts",
        FailureKind.RATE: "{vendor} accepts no more operations at the moment",
        FailureKind.BUSY: "Another operation on {vendor.scope} is in progress",
        FailureKind.NAME_TAKEN: "{vendor.a_pool} of this name exists; checking whether it is ours",
        FailureKind.CONFIGURATION: "{vendor} rejected the {vendor.pool}; fix its settings or the permissions",
        FailureKind.IMPOSSIBLE: "{vendor} does not support {vendor.pool}s like this one",
        FailureKind.HOSTS: "The {vendor.pool} was given up",
        FailureKind.UNKNOWN: "The {vendor.pool} could not be created",
    }
)


def failure(record: SliceRecord, why: Failure, now: datetime, settings: ClusterSettings) -> Arm:
    """Return the reason and message of a slice after a failed attempt, and what changes on its record."""
    why = _of_the_slice(why, record)
    reason, meaning = FAILED[why.kind], _meaning(record, why, settings)
    message = f"{meaning}: {why.message}"
    if reason.phase is Phase.PROVISIONING:
        return Arm(reason, message, current={"operation": None})
    failures = _in_a_row(record, reason)
    setbacks = record.claim.setbacks
    if why.kind not in IN_THE_WAY:
        setbacks = {**setbacks, reason: setbacks.get(reason, 0) + 1}
    claim: dict[str, Any] = {"failures": failures, "setbacks": setbacks, "retry_at": None, "stocked": why.zones}
    if reason.phase is Phase.WAITING:
        claim["retry_at"] = now + settings.limits.backoff[why.kind].after(failures)
        so_far = failed_so_far(record.with_claim(setbacks=setbacks), now)
        message = f"{meaning}{so_far}; next attempt at {claim['retry_at']:%H:%M:%S} UTC. Cause: {why.message}"
    if reason.phase is Phase.BLOCKED:
        claim["blocked_settings_version"] = settings.version
        claim["retry_at"] = now + settings.limits.blocked_retry_after
    if reason.phase is Phase.REFUSED:
        claim["rejection"] = Rejection(reason=reason, message=message, settings_version=settings.version)
    return Arm(reason, message, claim, {"operation": None, "slot": None, "create_requested_at": None, "seen": None})


def failed(record: SliceRecord, why: Failure, now: datetime, settings: ClusterSettings) -> SliceRecord:
    """Return the record after its create request was refused."""
    arm = failure(record, why, now, settings)
    return arm.said_of(record, now)


def _of_the_slice(why: Failure, record: SliceRecord) -> Failure:
    """Return the failure as one of this slice: without a reservation it is stock that is reserved for others."""
    unreserved = record.spec is not None and record.spec.capacity.reservation is None
    return replace(why, kind=FailureKind.STOCKOUT) if unreserved and why.kind is FailureKind.RESERVATION else why


def _in_a_row(record: SliceRecord, reason: Reason) -> int:
    """Return the number of consecutive failures for this reason, this one included."""
    last = next(
        (transition.reason for transition in reversed(record.transitions) if transition.phase is Phase.WAITING), reason
    )
    return record.claim.failures + 1 if last is reason else 1


def _meaning(record: SliceRecord, failure: Failure, settings: ClusterSettings) -> str:
    spec = record.spec
    zone, what, hosts, reservation = "The zone", "such hosts", "its", None
    if spec is not None:
        zone, what, hosts = spec.zone, f"{spec.accelerator} {spec.topology}", str(spec.hosts)
        reservation = spec.capacity.reservation
    words = {
        "zone": zone,
        "what": what,
        "what_in_zone": f"{what} in {zone}" if spec is not None else what,
        "hosts": hosts,
        "Reservation": f"The reservation {reservation}" if reservation else "The reservation",
        "vendor": settings.vendor,
    }
    return _MEANING[failure.kind].format_map(words)


def due(
    record: SliceRecord, still: Assessment | None, now: datetime, limits: Limits, held_until: datetime | None = None
) -> datetime | None:
    """Return the next reconcile time of a slice, or None for a settled slice; `still`: why one that goes still stands.

    `held_until`: until when it is held for its gang; None: it is not.

    | slice                           | reconciled again                                                         |
    |---------------------------------|--------------------------------------------------------------------------|
    | READY, of a TPUNodeGroup;       | after `resync_after`                                                     |
    | REFUSED, of a spare             |                                                                          |
    | READY, a spare                  | not by itself: the inventory check compares it with the settings         |
    | - that failed before            | once it has stood for STOOD_AFTER                                        |
    | - whose hosts are to be         | an hour before that begins                                               |
    |   maintained                    |                                                                          |
    | QUEUED, of a spare              | after `requeue_after`: nobody tells it                                   |
    | READY, in use                   | not by itself                                                            |
    | - some pods do not run          | after `not_running_after`, if that is set                                |
    | READY, unused                   | after UNUSED_FOR, and after `idle_after`; held: when that may end        |
    | REFUSED, GONE                   | not by itself                                                            |
    | REFUSED, of LIMITED             | not by itself: who releases chips, or the sweep, requests it             |
    | REFUSED, ClusterRetired         | after `resync_after`: the cluster may be resumed                         |
    | QUEUED, DemandStale             | after `demand_ttl`; after `requeue_after` while an order may take effect |
    | QUEUED, OperationLimit,         | not by itself: who frees a slot hands it on to the slice and requests it |
    | AwaitingTurn                    |                                                                          |
    | PROVISIONING                    | after `resync_after`: the operation's end and host counts are reported;  |
    |                                 | PoolBroken: after `requeue_after`;                                       |
    |                                 | hosts come back: when nobody waits for them any longer, if that is       |
    |                                 | sooner;                                                                  |
    |                                 | no operation known yet: after `act_window`                               |
    | WAITING                         | at `retry_at`                                                            |
    | BLOCKED                         | after `resync_after`: settings may have changed                          |
    | RELEASING                       | when why it still stands may change; a deletion that waits for a slot is |
    |                                 | handed one on, and a claim whose earlier slices are there is told when   |
    |                                 | the last of them is gone                                                 |
    | any that is needed, with closed | after `requeue_after`: the question that opens them may be lost          |
    | hosts                           |                                                                          |
    | without a host yet, for which   | `restart_grace` after that began, but not before `requeue_after`         |
    | no leader waits                 |                                                                          |
    """
    times = [_due_by_itself(record, now, limits, held_until)]
    if not record.goes and record.current.hosts.closed:
        times.append(now + limits.requeue_after)
    if (since := record.claim.unawaited_since) is not None:
        times.append(max(since + limits.restart_grace, now + limits.requeue_after))
    if still is not None and still.reason is not Reason.DELETION_QUEUED:
        times.append(max(still.until, now) if still.until else now + limits.requeue_after)
    if still is None and record.phase is Phase.RELEASING:  # for the earlier slices of its claim
        times.append(now + limits.resync_after)
    return min((time for time in times if time is not None), default=None)


def is_forgotten(record: SliceRecord, limits: Limits) -> bool:
    """Return whether a slice whose pods do not run is to be let go at a time, and nobody looks at it then.

    The settings say so since it was looked at last.
    """
    ends = limits.not_running_after is not None and not_running_since(record) is not None
    return ends and record.next_reconcile_at is None


def due_after(record: SliceRecord, now: datetime, limits: Limits) -> datetime | None:
    """Return the next reconcile time after an action or an announcement: what `due` said, or sooner."""
    times = [_due_by_itself(record, now, limits)]
    if record.goes and record.current.create_requested_at is not None:
        times.append(now + limits.delete_retry_after)
    return min((time for time in times if time is not None), default=None)


def _due_by_itself(
    record: SliceRecord, now: datetime, limits: Limits, held_until: datetime | None = None
) -> datetime | None:
    if not record.owner.kind.is_spare:
        return _due_by_phase(record, now, limits, held_until)
    if record.reason is Reason.SPARE:
        return _end_of_standing(record, now)
    if record.phase is Phase.REFUSED:
        return now + limits.resync_after
    if record.phase is Phase.QUEUED:
        return now + limits.requeue_after
    return _due_by_phase(record, now, limits, held_until)


def _end_of_standing(record: SliceRecord, now: datetime) -> datetime | None:
    """Return when what is said of a spare that stands changes by itself; None: it does not."""
    announced = record.current.hosts.announced
    stood = record.since + STOOD_AFTER if record.claim.failures else None
    times = (stood, announced.near_from if announced is not None else None)
    return min((time for time in times if time is not None and time > now), default=None)


def _due_by_phase(
    record: SliceRecord, now: datetime, limits: Limits, held_until: datetime | None = None
) -> datetime | None:
    match record.phase:
        case Phase.READY if record.owner.kind.declares:
            return now + limits.resync_after
        case Phase.READY if not record.current.hosts.occupants:
            idle_at, ends = vacant_since(record) + UNUSED_FOR, held_until or _end_of_idleness(record, now, limits)
            return idle_at if now < idle_at < ends else ends
        case Phase.REFUSED if record.reason is Reason.CLUSTER_RETIRED:
            return now + limits.resync_after
        case Phase.READY if limits.not_running_after is not None and (since := not_running_since(record)) is not None:
            ends = since + limits.not_running_after
            return ends if now < ends else now + limits.resync_after
        case Phase.READY | Phase.REFUSED | Phase.GONE | Phase.RELEASING:
            return None
        case Phase.QUEUED:
            return _end_of_queueing(record, now, limits)
        case Phase.PROVISIONING:
            return _end_of_patience(record, now + _patience(record, limits), now, limits)
        case Phase.WAITING:
            return record.claim.retry_at or now
        case Phase.BLOCKED:
            return now + limits.resync_after


def _end_of_idleness(record: SliceRecord, now: datetime, limits: Limits) -> datetime:
    """Return when a READY slice that nobody uses is let go."""
    return max(vacant_since(record), now - limits.idle_after) + limits.idle_after + limits.requeue_after


def _end_of_queueing(record: SliceRecord, now: datetime, limits: Limits) -> datetime | None:
    if record.reason in IN_LINE:
        return None
    return now + (limits.demand_ttl if record.current.create_requested_at is None else limits.requeue_after)


def _patience(record: SliceRecord, limits: Limits) -> timedelta:
    match record.reason:
        case Reason.CREATION_STARTED if record.current.operation is None:
            return limits.act_window
        case Reason.POOL_BROKEN:
            return limits.requeue_after
        case _:
            return limits.resync_after


def _end_of_patience(record: SliceRecord, at: datetime, now: datetime, limits: Limits) -> datetime:
    """Return when hosts that are away need not be awaited any more, if that is before `at`."""
    ends = record.current.returning.ends(limits) if record.current.returning is not None else at
    return ends if now < ends < at else at

"""The next reconcile time of a slice, and the record of a slice whose pool could not be created."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType

from tpu_slices.domain.model.clusters import ClusterSettings, Limits
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.records import Phase, Refusal, SliceRecord

FAILED: Mapping[FailureKind, tuple[Phase, Reason]] = MappingProxyType(
    {
        FailureKind.STOCKOUT: (Phase.WAITING, Reason.STOCKOUT),
        FailureKind.QUOTA: (Phase.WAITING, Reason.QUOTA_EXCEEDED),
        FailureKind.RESERVATION: (Phase.WAITING, Reason.RESERVATION_UNAVAILABLE),
        FailureKind.IP_SPACE: (Phase.WAITING, Reason.IP_SPACE_EXHAUSTED),
        FailureKind.RATE: (Phase.WAITING, Reason.TOO_MANY_OPERATIONS),
        FailureKind.BUSY: (Phase.WAITING, Reason.CLUSTER_BUSY),
        FailureKind.NAME_TAKEN: (Phase.PROVISIONING, Reason.CREATION_STARTED),
        FailureKind.CONFIGURATION: (Phase.BLOCKED, Reason.INVALID_CONFIGURATION),
        FailureKind.IMPOSSIBLE: (Phase.REFUSED, Reason.IMPOSSIBLE_SHAPE),
        FailureKind.UNKNOWN: (Phase.WAITING, Reason.CREATION_FAILED),
    }
)
"""The phase and reason of a slice after a failed create."""

_MEANING: Mapping[FailureKind, str] = MappingProxyType(
    {
        FailureKind.STOCKOUT: "{zone} is out of {what}",
        FailureKind.QUOTA: "The project's quota does not allow {what_in_zone}",
        FailureKind.RESERVATION: "The reservation cannot provide {what_in_zone}",
        FailureKind.IP_SPACE: "The cluster has no pod IP addresses left for {hosts} hosts",
        FailureKind.RATE: "GKE accepts no more operations on the cluster at the moment",
        FailureKind.BUSY: "Another operation on the cluster is in progress",
        FailureKind.NAME_TAKEN: "A node pool of this name exists; checking whether it is ours",
        FailureKind.CONFIGURATION: "GKE rejected the node pool; fix its settings or the permissions",
        FailureKind.IMPOSSIBLE: "GKE does not support such a node pool",
        FailureKind.UNKNOWN: "The node pool could not be created",
    }
)


def failed(record: SliceRecord, failure: Failure, now: datetime, settings: ClusterSettings) -> SliceRecord:
    """Return the record after its create failed: waiting, blocked or refused, by the kind of failure."""
    phase, reason = FAILED[failure.kind]
    meaning = _meaning(record, failure)
    message = f"{meaning}: {failure.message}"
    before = record.failures
    record = replace(record, creating=False, operation=None, failures=_in_a_row(record, reason), retry_at=None)
    match phase:
        case Phase.WAITING:
            retry_at = now + settings.limits.backoff[failure.kind].after(record.failures)
            message = f"{meaning}; next attempt at {retry_at:%H:%M:%S} UTC. Cause: {failure.message}"
            record = replace(record, retry_at=retry_at)
        case Phase.BLOCKED:
            record = replace(
                record, blocked_settings_version=settings.version, retry_at=now + settings.limits.blocked_retry_after
            )
        case Phase.REFUSED:
            record = replace(record, refusal=Refusal(reason=reason, message=message))
        case _:
            return replace(record, creating=True, failures=before, message=message)
    return replace(record, slot=None, create_requested_at=None).transitioned(now, phase, reason, message)


def _in_a_row(record: SliceRecord, reason: Reason) -> int:
    """Return the number of consecutive failures for this reason, this one included."""
    last = next(
        (transition.reason for transition in reversed(record.transitions) if transition.phase is Phase.WAITING), reason
    )
    return record.failures + 1 if last is reason else 1


def _meaning(record: SliceRecord, failure: Failure) -> str:
    spec = record.spec
    zone, what, hosts = "The zone", "such hosts", "its"
    if spec is not None:
        zone, what, hosts = spec.zone, f"{spec.accelerator} {spec.topology}", str(spec.hosts)
    in_zone = f"{what} in {zone}" if spec is not None else what
    return _MEANING[failure.kind].format(zone=zone, what=what, what_in_zone=in_zone, hosts=hosts)


def due(record: SliceRecord, now: datetime, limits: Limits) -> datetime | None:
    """Return the next reconcile time of a slice, or None for a settled slice.

    | slice                           | reconciled again                                                         |
    |---------------------------------|--------------------------------------------------------------------------|
    | READY, REFUSED, GONE            | not by itself                                                            |
    | READY, but desire ABSENT        | after `requeue_after`: what prevents its release passes                  |
    | REFUSED, ChipLimitReached            | after `requeue_after`: other slices may release chips                    |
    | QUEUED                          | after `requeue_after`; DemandStale: after `demand_ttl`                   |
    | PROVISIONING                    | after `resync_after`: the operation's end and host counts are reported;  |
    |                                 | PoolBusy, PoolBroken: after `requeue_after`;                             |
    |                                 | no operation known yet: after `act_window`                               |
    | WAITING                         | at `retry_at`                                                            |
    | BLOCKED                         | after `resync_after`: settings may have changed                          |
    | RELEASING                       | after `delete_retry_after`                                               |
    | any, with terminating attempts  | after `delete_retry_after`; all occupied: after `requeue_after`          |
    | any, with transitions that are  | after `requeue_after`                                                    |
    | not announced                   |                                                                          |
    """
    times = [_due_by_phase(record, now, limits)]
    if record.terminating:
        times.append(now + (limits.requeue_after if _all_occupied(record) else limits.delete_retry_after))
    if record.announced_count < record.transition_count:
        times.append(now + limits.requeue_after)
    return min((time for time in times if time is not None), default=None)


def _due_by_phase(record: SliceRecord, now: datetime, limits: Limits) -> datetime | None:
    match record.phase:
        case Phase.READY if not record.wanted:
            return now + limits.requeue_after
        case Phase.REFUSED if record.reason is Reason.CHIP_LIMIT_REACHED:
            return now + limits.requeue_after
        case Phase.READY | Phase.REFUSED | Phase.GONE:
            return None
        case Phase.QUEUED:
            return now + (limits.demand_ttl if record.reason is Reason.DEMAND_STALE else limits.requeue_after)
        case Phase.PROVISIONING:
            return now + _patience(record, limits)
        case Phase.WAITING:
            return record.retry_at or now
        case Phase.BLOCKED:
            return now + limits.resync_after
        case Phase.RELEASING:
            return now + limits.delete_retry_after


def _patience(record: SliceRecord, limits: Limits) -> timedelta:
    match record.reason:
        case Reason.CREATION_STARTED if record.operation is None:
            return limits.act_window
        case Reason.POOL_BUSY | Reason.POOL_BROKEN:
            return limits.requeue_after
        case _:
            return limits.resync_after


def _all_occupied(record: SliceRecord) -> bool:
    return all(earlier.occupants for earlier in record.terminating)

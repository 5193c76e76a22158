"""When an unsettled slice is looked at again, and what becomes of one whose pool could not be made."""

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
        FailureKind.IP_SPACE: (Phase.WAITING, Reason.NO_IP_SPACE),
        FailureKind.RATE: (Phase.WAITING, Reason.TOO_MANY_OPERATIONS),
        FailureKind.BUSY: (Phase.WAITING, Reason.CLUSTER_BUSY),
        FailureKind.NAME_TAKEN: (Phase.PROVISIONING, Reason.CREATION_STARTED),
        FailureKind.CONFIGURATION: (Phase.BLOCKED, Reason.CONFIGURATION),
        FailureKind.IMPOSSIBLE: (Phase.REFUSED, Reason.IMPOSSIBLE_SHAPE),
        FailureKind.UNKNOWN: (Phase.WAITING, Reason.CREATION_FAILED),
    }
)
"""Where a failed create leaves the slice."""

_MEANING: Mapping[FailureKind, str] = MappingProxyType(
    {
        FailureKind.STOCKOUT: "{zone} has no {accelerator} {topology} to give",
        FailureKind.QUOTA: "The project's quota does not allow {accelerator} {topology} in {zone}",
        FailureKind.RESERVATION: "The reservation cannot serve {accelerator} {topology} in {zone}",
        FailureKind.IP_SPACE: "The cluster has no pod addresses left for {hosts} hosts",
        FailureKind.RATE: "The cluster takes no more node pool operations at the moment",
        FailureKind.BUSY: "Another operation on the cluster is in the way",
        FailureKind.NAME_TAKEN: "A node pool of this name exists: looking whose it is",
        FailureKind.CONFIGURATION: "GKE refused the node pool for its settings; they or the permissions need a person",
        FailureKind.IMPOSSIBLE: "GKE makes no such node pool",
        FailureKind.UNKNOWN: "The node pool could not be created",
    }
)


def failed(record: SliceRecord, failure: Failure, now: datetime, settings: ClusterSettings) -> SliceRecord:
    """Give the record after its create failed: by the kind of failure it waits, is blocked or is refused."""
    phase, reason = FAILED[failure.kind]
    meaning = _meaning(record, failure)
    message = f"{meaning}: {failure.message}"
    before = record.failures
    record = replace(record, creating=False, operation=None, failures=_in_a_row(record, reason), retry_at=None)
    match phase:
        case Phase.WAITING:
            retry_at = now + settings.limits.backoff[failure.kind].after(record.failures)
            message = f"{meaning}; next try {retry_at:%H:%M:%S} UTC: {failure.message}"
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
    """Count a failure: patience begins anew where the last one was another."""
    last = next(
        (transition.reason for transition in reversed(record.transitions) if transition.phase is Phase.WAITING), reason
    )
    return record.failures + 1 if last is reason else 1


def _meaning(record: SliceRecord, failure: Failure) -> str:
    spec = record.spec
    words = {"zone": "The zone", "accelerator": "slice", "topology": "", "hosts": "the"}
    if spec is not None:
        words = {
            "zone": spec.zone,
            "accelerator": spec.accelerator,
            "topology": str(spec.topology),
            "hosts": str(spec.hosts),
        }
    return _MEANING[failure.kind].format_map(words)


def due(record: SliceRecord, now: datetime, limits: Limits) -> datetime | None:
    """Say by when to look again; None for a settled slice.

    | phase                       | looked at again                                                       |
    |-----------------------------|-----------------------------------------------------------------------|
    | READY, REFUSED, GONE        | never, unless pools are leaving or somebody is still to be told        |
    | READY, and not wanted       | soon: what kept us from releasing it passes                            |
    | REFUSED for want of chips   | soon: others may give theirs back                                      |
    | QUEUED                      | soon; without a fresh want only the want's end matters                 |
    | PROVISIONING                | soon, until somebody else tells us its end (an operation, host counts) |
    | WAITING                     | at `retry_at`                                                         |
    | BLOCKED                     | at the backstop: settings may have changed                             |
    | RELEASING, or pools leaving | after `delete_retry_after`                                                  |
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
        case Phase.REFUSED if record.reason is Reason.NO_CHIPS_LEFT:
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
    return all(left.occupants for left in record.terminating)

"""The central decision: a slice's next record and actions, from its record and what is observed of its pools."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import assert_never

from tpu_slices.domain.model.clusters import ClusterSettings, Limits
from tpu_slices.domain.model.decisions import Action, CreatePool, Decision, DeletePool
from tpu_slices.domain.model.observations import (
    Absent,
    Broken,
    Busy,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    Observation,
    PoolObservations,
    Running,
    Unowned,
    Unreadable,
    Visible,
)
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.records import Phase, Refusal, SliceRecord
from tpu_slices.domain.model.slices import LAST_ATTEMPT, same_request
from tpu_slices.domain.planning.policy import Held, NotAllowed, check, over_budget
from tpu_slices.domain.reconciling.patience import due, failed
from tpu_slices.domain.reconciling.terminating import OCCUPANTS_KNOWN_WITHIN, begin_next_attempt, follow


def decide(
    record: SliceRecord, seen: PoolObservations, now: datetime, settings: ClusterSettings, held: Held | None = None
) -> Decision:
    """Return the decision on a slice. Pure, so that `slices explain` can show it at any time.

    `held`: the chips that other slices hold; only needed if the settings limit them.

    | seen, by desire   | PRESENT                                               | ABSENT                        |
    |-------------------|-------------------------------------------------------|-------------------------------|
    | Absent            | demand fresh, allowed, and a slot: create;            | GONE once no create request   |
    |                   | else REFUSED, QUEUED, WAITING, ...                    | can arrive                    |
    | Creating          | wait while its operation runs                         | delete until GKE accepts      |
    | Running           | READY when every host is usable                       | delete                        |
    | - other occupants | leave the pool to them; next attempt                  | keep until they end           |
    | - other request   | rebuild if changed while suspended and unoccupied,    | delete                        |
    |                   | else SPEC_DRIFTED                                     |                               |
    | Busy              | wait                                                  | delete until GKE accepts      |
    | Broken            | unoccupied: delete, next attempt by kind of failure   | delete                        |
    | Deleting          | next attempt                                          | wait                          |
    | Unowned           | BLOCKED                                               | as Absent; never touched      |
    | Unreadable        | change nothing                                        | change nothing                |

    Earlier attempts (`seen.terminating`) follow the ABSENT column, whatever the desire. While an operator holds the
    slice, or the cluster is paused, nothing is created or deleted.
    """
    current = seen.current
    if record.hold:
        message = "Held by an operator: nothing is created or deleted."
        return _frozen(record, current, now, settings, (Reason.HELD, message))
    if settings.paused is not None:
        message = f"The cluster is paused, so nothing is created or deleted: {settings.paused}"
        return _frozen(record, current, now, settings, (Reason.PAUSED, message))
    if isinstance(current, Unreadable):
        return _keep(record, now, settings, Reason.POOL_UNREADABLE, current.message)
    record, deletes = follow(record, seen.terminating, now, settings.limits)
    refusal = record.refusal or _disallowed(record, settings, held)
    decision = _decide_current(replace(record, refusal=refusal), current, now, settings)
    after = decision.record if decision.record.creating else replace(decision.record, slot=None)
    if after.refusal is refusal:  # what the policy refuses now may be allowed at the next reconcile
        after = replace(after, refusal=record.refusal)
    after = replace(after, next_reconcile_at=due(after, now, settings.limits))
    return replace(decision, record=after, actions=(*deletes, *decision.actions))


def _frozen(
    record: SliceRecord, seen: Observation, now: datetime, settings: ClusterSettings, why: tuple[Reason, str]
) -> Decision:
    """Return a decision that does nothing; a queued slice becomes BLOCKED with the reason."""
    if record.phase is Phase.QUEUED and record.wanted and isinstance(seen, Absent):
        blocked = _become(record, now, (Phase.BLOCKED, why[0]), why[1])
        return replace(blocked, record=replace(blocked.record, next_reconcile_at=now + settings.limits.requeue_after))
    return _keep(record, now, settings, *why)


def _disallowed(record: SliceRecord, settings: ClusterSettings, held: Held | None) -> Refusal | None:
    """Return why the current settings do not allow the slice, or None if they do."""
    if record.spec is None or not record.wanted:
        return None
    try:
        check(record.spec, record.owner.namespace, settings.policy)
    except NotAllowed as no:
        return Refusal(reason=Reason.NOT_ALLOWED, message=f"{no}.")
    over = None if held is None else over_budget(record.spec, record.owner.namespace, held, settings.policy)
    return Refusal(reason=Reason.CHIP_LIMIT_REACHED, message=f"{over}; retried automatically.") if over else None


def _decide_current(record: SliceRecord, seen: Visible, now: datetime, settings: ClusterSettings) -> Decision:
    match seen:
        case Creating() | Running() | Busy() | Broken() if record.other_workload_occupants:
            return _absent(begin_next_attempt(record, occupants=record.other_workload_occupants), now, settings)
        case Absent():
            return _absent(_after_legacy_pool(record), now, settings)
        case Creating():
            return _creating(record, seen, now, settings)
        case Running():
            return _running(record, seen, now, settings)
        case Busy():
            return _busy(record, seen, now, settings)
        case Broken():
            return _broken(record, seen.failure, now, settings)
        case Deleting():
            return _absent(begin_next_attempt(record), now, settings)
        case Unowned():
            return _unowned(record, seen, now, settings)
        case _:
            assert_never(seen)


def _become(record: SliceRecord, now: datetime, to: tuple[Phase, Reason], message: str, *actions: Action) -> Decision:
    phase, reason = to
    return Decision(record.transitioned(now, phase, reason, message), actions, reason, message)


def _keep(record: SliceRecord, now: datetime, settings: ClusterSettings, reason: Reason, message: str) -> Decision:
    at = None if record.next_reconcile_at is None else now + settings.limits.requeue_after
    return Decision(replace(record, next_reconcile_at=at), (), reason, message)


def _absent(record: SliceRecord, now: datetime, settings: ClusterSettings) -> Decision:
    if not record.wanted:
        return _released(record, now, settings.limits)
    if record.refusal is not None:
        refused = replace(record, retry_at=None, blocked_settings_version=None)
        return _become(refused, now, (Phase.REFUSED, record.refusal.reason), record.refusal.message)
    if _has_to_wait(record, now, settings):
        return Decision(record, (), record.reason, record.message)
    if record.demand_confirmed_at is None or now - record.demand_confirmed_at > settings.limits.demand_ttl:
        message = "Waiting for the relay to confirm that the leader pod still needs this slice."
        return _become(record, now, (Phase.QUEUED, Reason.DEMAND_STALE), message)
    if record.attempt > LAST_ATTEMPT:
        message = f"All {LAST_ATTEMPT} attempts failed: delete and re-create the JobSet."
        return _become(record, now, (Phase.BLOCKED, Reason.ATTEMPTS_EXHAUSTED), message)
    if record.slot is None:
        message = "Waiting for a node pool operation to end: the cluster's limit is reached."
        return _become(record, now, (Phase.QUEUED, Reason.OPERATION_LIMIT), message)
    return _create(record, now, settings)


def _after_legacy_pool(record: SliceRecord) -> SliceRecord:
    """Return the record with attempt 1 after an adopted pool (attempt 0), whose name is not ours to use."""
    return replace(begin_next_attempt(record), terminating=record.terminating) if record.attempt == 0 else record


def _has_to_wait(record: SliceRecord, now: datetime, settings: ClusterSettings) -> bool:
    """Return whether to wait for `retry_at`; a slice blocked under other settings is retried at once."""
    if record.blocked_settings_version not in {None, settings.version}:
        return False
    return record.retry_at is not None and now < record.retry_at


def _create(record: SliceRecord, now: datetime, settings: ClusterSettings) -> Decision:
    ordered = replace(
        record,
        create_requested_at=now,
        creating=True,
        operation=None,
        retry_at=None,
        blocked_settings_version=None,
        expire_at=None,
        pinned_settings=settings.pools if record.create_requested_at is None else record.pinned_settings,
    )
    spec = record.spec
    what = f"{spec.hosts} x {spec.machine_type} in {spec.zone}" if spec else "hosts"
    message = f"Creating node pool {record.pool}: {what}."
    action = CreatePool(record.attempt)
    return _become(ordered, now, (Phase.PROVISIONING, Reason.CREATION_STARTED), message, action)


def _released(record: SliceRecord, now: datetime, limits: Limits) -> Decision:
    """Return RELEASING, or GONE once neither a terminating pool nor a late create request is left."""
    record = replace(record, creating=False, operation=None, retry_at=None, failures=0, blocked_settings_version=None)
    if record.terminating:
        if all(earlier.occupants for earlier in record.terminating):
            message = "Another live JobSet runs on these hosts: the node pool is deleted when it ends."
            return _become(record, now, (Phase.RELEASING, Reason.OCCUPIED), message)
        message = f"Deleting the node pool: {record.desire_message or 'no longer in demand'}."
        return _become(record, now, (Phase.RELEASING, Reason.DELETION_STARTED), message)
    if record.create_requested_at is not None and now < record.create_requested_at + 2 * limits.act_window:
        message = "A creation was requested moments ago: waiting until it can no longer take effect."
        return _become(record, now, (Phase.RELEASING, Reason.CREATION_IN_DOUBT), message)
    record = replace(record, expire_at=record.expire_at or now + limits.gone_ttl)
    if record.attempt == 1 and record.create_requested_at is None and record.legacy_pool is None:
        message = f"No node pool was created: {record.desire_message or 'no longer in demand'}."
        return _become(record, now, (Phase.GONE, Reason.NEVER_CREATED), message)
    message = f"Released: {record.desire_message or 'no longer in demand'}."
    return _become(record, now, (Phase.GONE, Reason.RELEASED), message)


def _creating(record: SliceRecord, seen: Creating, now: datetime, settings: ClusterSettings) -> Decision:
    if not record.wanted:
        return _release(record, now, settings)
    patience = settings.limits.create_timeout
    if (
        not seen.operation_runs
        and record.create_requested_at is not None
        and now - record.create_requested_at > patience
    ):
        lost = Failure(FailureKind.UNKNOWN, "No operation runs for it any more, and it is still not created.")
        return _broken(record, lost, now, settings)
    spec = record.spec
    what = f"{spec.hosts} hosts ({spec.chips} chips) in {spec.zone}" if spec else "its hosts"
    message = f"GKE is creating {what}; it may take half an hour to report a stockout."
    underway = replace(record, creating=True)
    return _become(underway, now, (Phase.PROVISIONING, Reason.CREATING), message)


def _running(record: SliceRecord, seen: Running, now: datetime, settings: ClusterSettings) -> Decision:
    if not record.wanted:
        return _release(record, now, settings)
    record = replace(record, creating=False)
    if record.spec is None or (record.attempt == 0 and record.hosts_sequence == 0):
        found = "Found without a record" if record.legacy_pool is None else "Made by TPU Provisioner"
        return _become(record, now, (Phase.READY, Reason.ADOPTED), f"{found}; kept while its JobSet is live.")
    drifted = not same_request(seen.fingerprint, record.spec)
    if drifted and record.rebuild_allowed and not record.occupants:
        return _release(record, now, settings)
    if record.hosts_usable < record.spec.hosts:
        lost = record.phase is Phase.READY or record.reason is Reason.HOSTS_LOST
        reason = Reason.HOSTS_LOST if lost else Reason.HOSTS_JOINING
        message = f"{record.hosts_usable} of {record.spec.hosts} hosts are ready and offer their chips."
        return _become(record, now, (Phase.PROVISIONING, reason), message)
    return _ready(record, now, settings.limits, drifted=drifted)


def _ready(record: SliceRecord, now: datetime, limits: Limits, *, drifted: bool) -> Decision:
    hosts = record.spec.hosts if record.spec else record.hosts_usable
    served = replace(record, failures=0, retry_at=None)
    if drifted:
        message = "Ready, but the JobSet's request has changed since; not rebuilt under a running Job."
        return _become(served, now, (Phase.READY, Reason.SPEC_DRIFTED), message)
    if _leader_should_be_here(record, limits):
        message = "All hosts are ready, but the leader pod is not scheduled: see its events. No other slice is bought."
        return _become(served, now, (Phase.READY, Reason.LEADER_STILL_WAITING), message)
    return _become(served, now, (Phase.READY, Reason.READY), f"All {hosts} hosts are ready and offer their chips.")


def _leader_should_be_here(record: SliceRecord, limits: Limits) -> bool:
    """Return whether a leader was reported to wait although its slice has been READY and vacant for a while."""
    if record.phase is not Phase.READY or record.occupants or record.demand_confirmed_at is None:
        return False
    vacant_since = max(record.since, record.vacant_since or record.since)
    return record.demand_confirmed_at > vacant_since + limits.requeue_after


def _busy(record: SliceRecord, seen: Busy, now: datetime, settings: ClusterSettings) -> Decision:
    if not record.wanted:
        return _release(record, now, settings)
    message = f"GKE is working on the node pool: {seen.message}"
    return _become(replace(record, creating=False), now, (Phase.PROVISIONING, Reason.POOL_BUSY), message)


def _broken(record: SliceRecord, failure: Failure, now: datetime, settings: ClusterSettings) -> Decision:
    if not record.wanted:
        return _release(record, now, settings)
    if record.occupants:
        message = f"GKE reports an error for the node pool, which is kept while its Job runs: {failure.message}"
        return _become(replace(record, creating=False), now, (Phase.PROVISIONING, Reason.POOL_BROKEN), message)
    after = failed(begin_next_attempt(record, delete_requested_at=now), failure, now, settings)
    return Decision(after, (DeletePool(record.attempt),), after.reason, after.message)


def _unowned(record: SliceRecord, seen: Unowned, now: datetime, settings: ClusterSettings) -> Decision:
    if not record.wanted:
        return _released(replace(record, create_requested_at=None), now, settings.limits)
    message = f"A node pool named {record.pool} exists that is not ours: {seen.message} Delete it."
    return _become(replace(record, creating=False), now, (Phase.BLOCKED, Reason.UNOWNED_POOL), message)


def _release(record: SliceRecord, now: datetime, settings: ClusterSettings) -> Decision:
    """Return the decision that deletes the current attempt's pool and continues with the next attempt.

    The occupants of a pool that was adopted moments ago are not known: it is kept until the relay has reported them.
    """
    known_by = record.create_requested_at and record.create_requested_at + OCCUPANTS_KNOWN_WITHIN
    if record.attempt == 0 and record.hosts_sequence == 0 and known_by is not None and now < known_by:
        return _absent(begin_next_attempt(record, delete_after=known_by), now, settings)
    onward = _absent(begin_next_attempt(record, delete_requested_at=now), now, settings)
    return replace(onward, actions=(DeletePool(record.attempt), *onward.actions))

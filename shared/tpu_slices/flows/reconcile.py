"""Reconciles one slice once: look, decide, remember, act, note. Never waits for an operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.decisions import (
    Action,
    CancelCreation,
    CloseHosts,
    CreatePool,
    Decision,
    DeletePool,
    OpenHosts,
)
from tpu_slices.domain.model.facts import HostsQuestion
from tpu_slices.domain.model.observations import Absent, FailureKind, Outcome, PoolObservations, Refused, Started
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.domain.model.slices import LAST_ATTEMPT, ClusterId, PoolName, SliceId
from tpu_slices.domain.reconciling.case import Known
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.deletion import NEVER_HEARD
from tpu_slices.domain.reconciling.demand import with_current_desire
from tpu_slices.domain.reconciling.limiter import lowered
from tpu_slices.domain.reconciling.outcomes import acted
from tpu_slices.flows import slots
from tpu_slices.flows.brakes import stopped
from tpu_slices.flows.budget import count
from tpu_slices.flows.retrying import retry_on_conflict
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.errors import Permanent, StaleRecord
from tpu_slices.ports.publisher import SliceUpdate
from tpu_slices.ports.store import Change, Stored


@dataclass(frozen=True, slots=True)
class Reconciled:
    """The outcome of one reconcile, logged as one line."""

    before: SliceRecord
    decision: Decision
    after: SliceRecord

    @property
    def ready_after(self) -> timedelta | None:
        """How long the slice was awaited, if this made it READY; one that is READY again was not."""
        awaited_since = self.before.awaited_since
        return self.after.since - awaited_since if awaited_since and self.after.phase is Phase.READY else None


def reconcile(cluster: ClusterId, slice_: SliceId, deps: ReconcileDeps) -> Reconciled | None:
    """Reconcile one slice; return None if it does not exist, or is GONE and settled.

    Permanent: unknown cluster. Temporary: the request is redelivered.
    """
    settings = deps.store.settings(cluster)
    if settings is None:
        raise Permanent(f'no settings for cluster "{cluster}": write clusters/{cluster}')
    return reconcile_under(settings, slice_, deps)


def reconcile_under(settings: ClusterSettings, slice_: SliceId, deps: ReconcileDeps) -> Reconciled | None:
    """Reconcile one slice under settings that were just read; otherwise as `reconcile`."""
    return retry_on_conflict(lambda: _once(slice_, settings, deps), deps.clock)


@dataclass(frozen=True, slots=True)
class Looked:
    """The inputs of a decision at one time."""

    stored: Stored[SliceRecord]
    record: SliceRecord
    """With its current desire."""
    seen: PoolObservations
    known: Known
    at: datetime
    guards: tuple[Change, ...] = ()
    """Written with a creation: they order creations under a chip limit."""

    def decide(self, settings: ClusterSettings, slots: Mapping[int, int]) -> Decision:
        return decide(self.record, self.seen, self.at, settings, replace(self.known, slots=slots))


@dataclass(frozen=True, slots=True)
class Explained:
    """The input of `reconcile` at this time, and what it would decide."""

    record: SliceRecord
    """With its current desire."""
    seen: PoolObservations
    decision: Decision


def explain(cluster: ClusterId, slice_: SliceId, deps: ReconcileDeps) -> Explained | None:
    """Return what `reconcile` would decide now, or None if there is no such cluster or slice. Changes nothing."""
    settings = deps.store.settings(cluster)
    looked = _look(slice_, settings, deps) if settings is not None else None
    if settings is None or looked is None:
        return None
    return Explained(looked.record, looked.seen, looked.decide(settings, {}))


def _once(slice_: SliceId, settings: ClusterSettings, deps: ReconcileDeps) -> Reconciled | None:
    looked = _look(slice_, settings, deps)
    if looked is None or _settled(looked.record):
        return None
    decision, slots_taken = _decide(looked, settings, deps)
    stored = looked.stored.value
    _announce(stored, stored.announced_count, settings, deps)  # once more: whoever saved them may have ended before
    remembered = _remember(looked, decision, slots_taken, deps)
    acted = _act(remembered.value, decision.actions, looked.at + settings.limits.act_window, settings, deps)
    after = _note(looked, remembered, acted, settings, deps)
    return Reconciled(stored, decision, after)


def _settled(record: SliceRecord) -> bool:
    gone = record.phase is Phase.GONE and not record.wanted and record.next_reconcile_at is None
    return gone and record.announced_count == record.transition_count


def _look(slice_: SliceId, settings: ClusterSettings, deps: ReconcileDeps) -> Looked | None:
    """Return the slice, every pool of it that may exist, and what is known beside them; None if there is no slice."""
    stored = deps.store.slices(settings.cluster, [slice_]).get(slice_)
    if stored is None:
        return None
    occupants = (hosts.occupants for _, hosts in stored.value.all_hosts)
    departures = (each.user for _, hosts in stored.value.all_hosts for each in hosts.departures)
    uids = {stored.value.owner.uid, *(each.owner.uid for each in (*chain(*occupants), *departures))}
    found = deps.store.workloads(settings.cluster, uids)
    own = found.get(stored.value.owner.uid)  # Permanent if it cannot be read: then nothing is decided
    workloads = {uid: each.value for uid, each in found.items()}
    heartbeat = deps.store.heartbeat(settings.cluster)
    listed_at = heartbeat.value.demand_confirmed_at if heartbeat else None
    record = with_current_desire(stored.value, own.value if own else None, listed_at)
    counted = count(record, settings, deps)
    known = Known(
        workloads=workloads,
        relay=heartbeat.value.relay if heartbeat else NEVER_HEARD,
        held=counted.held,
        stopped=stopped(record, workloads.get(record.owner.uid), deps),
    )
    seen = _observe(record, settings, deps)
    return Looked(stored, record, seen, known, deps.clock.now(), counted.guards)


def _observe(record: SliceRecord, settings: ClusterSettings, deps: ReconcileDeps) -> PoolObservations:
    """Return the observations of every pool that may exist; an attempt that was never requested has none."""
    current = (
        Absent() if record.create_requested_at is None else deps.backend.look(_order(record, record.attempt, settings))
    )
    terminating = {
        earlier.attempt: deps.backend.look(_order(record, earlier.attempt, settings)) for earlier in record.terminating
    }
    return PoolObservations(current, terminating)


def _decide(looked: Looked, settings: ClusterSettings, deps: ReconcileDeps) -> tuple[Decision, tuple[Change, ...]]:
    """Return the decision, and the slots that it takes: while only a slot is missing for an operation, decide again."""
    taking = slots.Taking(looked.stored.value, settings, deps)
    decision = looked.decide(settings, taking.numbers)
    while (
        (awaited := decision.record.slot_awaited) is not None
        and awaited.number is None
        and taking.take(decision.record, awaited)
    ):
        decision = looked.decide(settings, taking.numbers)
    return decision, tuple(taking.changes)


def _remember(
    looked: Looked,
    decision: Decision,
    slots_taken: tuple[Change, ...],
    deps: ReconcileDeps,
) -> Stored[SliceRecord]:
    """Save the decision and its slots; under a chip limit, fail if a creation was saved since chips were counted."""
    stored, record = looked.stored, decision.record
    if record == stored.value:
        return stored
    record = replace(record, announced_count=stored.value.transition_count)
    guards = looked.guards if decision.creates else ()
    revision, *_ = deps.store.commit(Change(stored, record), *slots_taken, *guards)
    return Stored(record, revision)


def _act(
    record: SliceRecord, actions: Sequence[Action], deadline: datetime, settings: ClusterSettings, deps: ReconcileDeps
) -> SliceRecord:
    """Perform the actions of the decision just saved; raise StaleRecord once it is too late for them."""
    for action in actions:
        if deps.clock.now() > deadline:
            raise StaleRecord(f"the decision about {record.id} is too old to act on")
        outcome = _perform(action, record, settings, deps)
        record = acted(record, action, outcome, deps.clock.now(), settings)
    return record


def _perform(action: Action, record: SliceRecord, settings: ClusterSettings, deps: ReconcileDeps) -> Outcome:
    """Return the outcome of an action; questions to the relay are answered by facts."""
    order = _order(record, action.attempt, settings)
    match action:
        case CreatePool():
            outcome = deps.backend.create(order)
        case DeletePool():
            outcome = deps.backend.delete(order)
        case CancelCreation():
            outcome = deps.backend.cancel(order)
        case CloseHosts() | OpenHosts():
            deps.publisher.ask(settings.cluster, [_question(action, record, deps.clock.now())])
            return Started(None)
    if isinstance(outcome, Refused) and outcome.failure.kind is FailureKind.RATE:
        slots.change_limiter(lambda limiter, now: lowered(limiter, now, settings.limits), settings.cluster, deps)
    return outcome


def _question(action: CloseHosts | OpenHosts, record: SliceRecord, now: datetime) -> HostsQuestion:
    close = isinstance(action, CloseHosts)
    asked_at = action.asked_at if isinstance(action, CloseHosts) else now
    return HostsQuestion(
        slice_id=record.id,
        attempt=action.attempt,
        asked_at=asked_at,
        close=close,
        legacy_pool=record.legacy_pool if action.attempt == 0 else None,
    )


def _note(
    looked: Looked, remembered: Stored[SliceRecord], acted: SliceRecord, settings: ClusterSettings, deps: ReconcileDeps
) -> SliceRecord:
    """Announce what happened, save what came of the actions, and hand on the slots of operations that ended."""
    slots.settle(looked.stored.value, remembered.value, looked.seen, settings, deps)
    _announce(acted, looked.stored.value.transition_count, settings, deps)
    if acted == remembered.value:
        return acted
    after = replace(acted, announced_count=acted.transition_count)
    deps.store.commit(Change(remembered, after))
    slots.settle(remembered.value, after, looked.seen, settings, deps)
    return after


def _announce(record: SliceRecord, known: int, settings: ClusterSettings, deps: ReconcileDeps) -> None:
    """Announce the transitions that came after so many."""
    transitions = record.transitions_after(known)
    first = record.transition_count - len(transitions) + 1
    updates = [
        SliceUpdate(
            job=record.job,
            slice_id=record.id,
            pool=_announced_pool(record),
            transition_number=first + offset,
            transition=transition,
        )
        for offset, transition in enumerate(transitions)
    ]
    if updates:
        deps.publisher.announce(settings.cluster, updates)


def _announced_pool(record: SliceRecord) -> PoolName:
    """Return the pool to announce: the current one or, if it was not requested, the last terminating one."""
    attempt = (
        record.terminating[-1].attempt if record.terminating and record.create_requested_at is None else record.attempt
    )
    return record.pool_of(min(attempt, LAST_ATTEMPT))


def _order(record: SliceRecord, attempt: int, settings: ClusterSettings) -> PoolOrder:
    operations = {record.attempt: record.operation, **{each.attempt: each.operation for each in record.terminating}}
    return PoolOrder(
        cluster_path=settings.path,
        cluster_gke_id=settings.gke_id,
        slice_id=record.id,
        attempt=attempt,
        legacy_pool=record.legacy_pool if attempt == 0 else None,
        job=record.job,
        spec=record.spec,
        settings=record.pinned_settings or settings.pools,
        operation=operations.get(attempt),
    )

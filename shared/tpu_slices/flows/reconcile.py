"""Reconciles one slice once: look, decide, remember, act, note. Never waits for an operation."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.decisions import Action, CreatePool, Decision
from tpu_slices.domain.model.observations import Absent, FailureKind, Outcome, PoolObservations, Refused
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.records import Phase, SliceRecord
from tpu_slices.domain.model.slices import LAST_ATTEMPT, ClusterId, PoolName, SliceId
from tpu_slices.domain.planning.policy import Held
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.demand import with_current_desire
from tpu_slices.domain.reconciling.limiter import capacity_pool_of, lowered, ran_out
from tpu_slices.domain.reconciling.outcomes import acted
from tpu_slices.domain.reconciling.patience import due
from tpu_slices.flows import slots
from tpu_slices.flows.budget import count
from tpu_slices.flows.report import calling_for_report
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


def reconcile(cluster: ClusterId, slice_: SliceId, deps: ReconcileDeps) -> Reconciled | None:
    """Reconcile one slice; return None if it does not exist, or is GONE and settled.

    Permanent: unknown cluster. Temporary: the request is redelivered.
    """
    settings = deps.store.settings(cluster)
    if settings is None:
        raise Permanent(f'no settings for cluster "{cluster}": write clusters/{cluster}')
    return retry_on_conflict(lambda: _once(slice_, settings, deps), deps.clock)


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
    stored = deps.store.slices(cluster, [slice_]).get(slice_)
    if settings is None or stored is None:
        return None
    record = _with_current_desire(stored.value, settings, deps)
    seen = _look(record, settings, deps)
    return Explained(record, seen, decide(record, seen, deps.clock.now(), settings, count(record, settings, deps).held))


def _once(slice_: SliceId, settings: ClusterSettings, deps: ReconcileDeps) -> Reconciled | None:
    stored = deps.store.slices(settings.cluster, [slice_]).get(slice_)
    if stored is None:
        return None
    record = _with_current_desire(stored.value, settings, deps)
    if record.phase is Phase.GONE and not record.wanted and record.next_reconcile_at is None:
        return None
    counted = count(record, settings, deps)
    decision = _decide(record, settings, deps, counted.held)
    remembered = _remember(stored, decision, deps, counted.guards)
    _settle_with_limiter(stored.value, remembered.value, settings, deps)
    after = _act(remembered.value, decision, settings, deps)
    after = _announce(after, settings, deps)
    if after != remembered.value:
        deps.store.commit(Change(remembered, after), *calling_for_report(remembered.value, after, deps))
        _settle_with_limiter(remembered.value, after, settings, deps)
    return Reconciled(stored.value, decision, after)


def _with_current_desire(record: SliceRecord, settings: ClusterSettings, deps: ReconcileDeps) -> SliceRecord:
    occupants = [*record.occupants, *(occupant for earlier in record.terminating for occupant in earlier.occupants)]
    uids = {record.owner.uid, *(occupant.owner.uid for occupant in occupants)}
    workloads = deps.store.workloads(settings.cluster, uids)
    return with_current_desire(record, {uid: stored.value for uid, stored in workloads.items()})


def _look(record: SliceRecord, settings: ClusterSettings, deps: ReconcileDeps) -> PoolObservations:
    """Return the observations of every pool that may exist; an attempt that was never requested has none."""
    current = (
        Absent() if record.create_requested_at is None else deps.backend.look(_order(record, record.attempt, settings))
    )
    terminating = {
        earlier.attempt: deps.backend.look(_order(record, earlier.attempt, settings)) for earlier in record.terminating
    }
    return PoolObservations(current, terminating)


def _decide(record: SliceRecord, settings: ClusterSettings, deps: ReconcileDeps, held: Held | None) -> Decision:
    """Return the decision; if only a slot is missing for a creation, try to take one and decide again."""
    seen = _look(record, settings, deps)
    decision = decide(record, seen, deps.clock.now(), settings, held)
    if decision.reason is not Reason.OPERATION_LIMIT:
        return decision
    slot = slots.take(decision.record, settings, deps)
    if slot is None:
        return decision
    return decide(replace(record, slot=slot), seen, deps.clock.now(), settings, held)


def _remember(
    stored: Stored[SliceRecord], decision: Decision, deps: ReconcileDeps, guards: tuple[Change, ...]
) -> Stored[SliceRecord]:
    """Save the decision; under a chip limit, fail if another creation was saved since the chips were counted."""
    if decision.record == stored.value:
        return stored
    others = (*(guards if decision.creates else ()), *calling_for_report(stored.value, decision.record, deps))
    revision, *_ = deps.store.commit(Change(stored, decision.record), *others)
    return Stored(decision.record, revision)


def _act(record: SliceRecord, decision: Decision, settings: ClusterSettings, deps: ReconcileDeps) -> SliceRecord:
    """Perform the actions of the decision just saved; raise StaleRecord once the decision is too old."""
    deadline = deps.clock.now() + settings.limits.act_window
    for action in decision.actions:
        if deps.clock.now() > deadline:
            raise StaleRecord(f"the decision about {record.id} is too old to act on")
        outcome = _perform(action, record, settings, deps)
        record = acted(record, action, outcome, deps.clock.now(), settings)
    return record


def _perform(action: Action, record: SliceRecord, settings: ClusterSettings, deps: ReconcileDeps) -> Outcome:
    order = _order(record, action.attempt, settings)
    if not isinstance(action, CreatePool):
        return deps.backend.delete(order)
    outcome = deps.backend.create(order)
    if isinstance(outcome, Refused) and outcome.failure.kind is FailureKind.RATE:
        slots.change_limiter(lowered, settings.cluster, deps)
    return outcome


def _announce(record: SliceRecord, settings: ClusterSettings, deps: ReconcileDeps) -> SliceRecord:
    """Announce the transitions that were not announced yet; counted only afterwards, so that none is lost."""
    if not record.unannounced:
        return record
    first = record.transition_count - len(record.unannounced) + 1
    updates = [
        SliceUpdate(
            job=record.job,
            slice_id=record.id,
            pool=_announced_pool(record),
            transition_number=first + offset,
            transition=transition,
        )
        for offset, transition in enumerate(record.unannounced)
    ]
    deps.publisher.announce(settings.cluster, updates)
    announced = replace(record, announced_count=record.transition_count)
    return replace(announced, next_reconcile_at=due(announced, deps.clock.now(), settings.limits))


def _announced_pool(record: SliceRecord) -> PoolName:
    """Return the pool to announce: the current one or, if it was not requested, the last terminating one."""
    attempt = (
        record.terminating[-1].attempt if record.terminating and record.create_requested_at is None else record.attempt
    )
    return record.pool_of(min(attempt, LAST_ATTEMPT))


def _settle_with_limiter(
    before: SliceRecord, after: SliceRecord, settings: ClusterSettings, deps: ReconcileDeps
) -> None:
    """Free the slot of a creation that ended, and record a stockout, after a step was saved."""
    if after.reason is Reason.STOCKOUT and after.transition_count > before.transition_count and after.spec is not None:
        capacity_pool = capacity_pool_of(after.spec)
        slots.change_limiter(lambda limiter, now: ran_out(limiter, capacity_pool, now), settings.cluster, deps)
    if before.slot is None or after.slot is not None:
        return
    for slot in deps.store.slots(settings.cluster):
        if slot.value.slice_id == after.id:
            slots.free(slot, settings, deps)


def _order(record: SliceRecord, attempt: int, settings: ClusterSettings) -> PoolOrder:
    return PoolOrder(
        cluster_path=settings.path,
        cluster_gke_id=settings.gke_id,
        slice_id=record.id,
        attempt=attempt,
        legacy_pool=record.legacy_pool if attempt == 0 else None,
        job=record.job,
        spec=record.spec,
        settings=record.pinned_settings or settings.pools,
        operation=record.operation if attempt == record.attempt else None,
    )

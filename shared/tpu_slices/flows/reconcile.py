"""One slice, once: look, decide, remember, act, note. Never waits for an operation."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.decisions import Action, CreatePool, Reason
from tpu_slices.domain.model.observations import Absent, FailureKind, Outcome, Refused, Sight
from tpu_slices.domain.model.records import Phase, SliceRecord
from tpu_slices.domain.model.slices import LAST_ATTEMPT, ClusterId, PoolName, SliceId
from tpu_slices.domain.planning.policy import Held
from tpu_slices.domain.reconciling.decide import Decision, decide
from tpu_slices.domain.reconciling.demand import standing
from tpu_slices.domain.reconciling.limiter import cell_of, narrowed, ran_out
from tpu_slices.domain.reconciling.outcomes import acted
from tpu_slices.domain.reconciling.patience import due
from tpu_slices.flows import slots
from tpu_slices.flows.budget import count
from tpu_slices.flows.report import calling_for_report
from tpu_slices.flows.retrying import again
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.ports.bus import SliceUpdate
from tpu_slices.ports.deps import Ports
from tpu_slices.ports.errors import Permanent, StaleRecord
from tpu_slices.ports.store import Change, Stored


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What happened to a slice, for the log: one decision, one line."""

    before: SliceRecord
    decision: Decision
    after: SliceRecord


def reconcile(cluster: ClusterId, slice_: SliceId, ports: Ports) -> Reconciled | None:
    """Bring one slice nearer to what is wanted; None: no such slice, or it is gone for good.

    Permanent: the cluster is not known. Temporary: let the nudge come back.
    """
    settings = ports.store.settings(cluster)
    if settings is None:
        raise Permanent(f'no settings for cluster "{cluster}": write clusters/{cluster}')
    return again(lambda: _once(slice_, settings, ports), ports.clock)


@dataclass(frozen=True, slots=True)
class Explained:
    """What `reconcile` would go by, and what it would decide."""

    record: SliceRecord
    """As the JobSets stand now."""
    seen: Sight
    decision: Decision


def explain(cluster: ClusterId, slice_: SliceId, ports: Ports) -> Explained | None:
    """Say what `reconcile` would decide now, without doing any of it; None: no such cluster or slice."""
    settings = ports.store.settings(cluster)
    stored = ports.store.slices(cluster, [slice_]).get(slice_)
    if settings is None or stored is None:
        return None
    record = _stand(stored.value, settings, ports)
    seen = _look(record, settings, ports)
    return Explained(
        record, seen, decide(record, seen, ports.clock.now(), settings, count(record, settings, ports).held)
    )


def _once(slice_: SliceId, settings: ClusterSettings, ports: Ports) -> Reconciled | None:
    stored = ports.store.slices(settings.cluster, [slice_]).get(slice_)
    if stored is None:
        return None
    record = _stand(stored.value, settings, ports)
    if record.phase is Phase.GONE and not record.wanted and record.due_at is None:
        return None
    counted = count(record, settings, ports)
    decision = _decide(record, settings, ports, counted.held)
    remembered = _remember(stored, decision, ports, counted.guards)
    _settle_with_governor(stored.value, remembered.value, settings, ports)
    after = _act(remembered.value, decision, settings, ports)
    after = _tell(after, settings, ports)
    if after != remembered.value:
        ports.store.commit(Change(remembered, after), *calling_for_report(remembered.value, after, ports))
        _settle_with_governor(remembered.value, after, settings, ports)
    return Reconciled(stored.value, decision, after)


def _stand(record: SliceRecord, settings: ClusterSettings, ports: Ports) -> SliceRecord:
    occupants = [record.occupant, *(left.occupant for left in record.leaving)]
    uids = {record.job.uid, *(occupant.jobset_uid for occupant in occupants if occupant)}
    jobsets = ports.store.jobsets(settings.cluster, uids)
    return standing(record, {uid: stored.value for uid, stored in jobsets.items()})


def _look(record: SliceRecord, settings: ClusterSettings, ports: Ports) -> Sight:
    """Look at every pool that may exist. An attempt whose creation was never ordered has none."""
    current = Absent() if record.ordered_at is None else ports.backend.look(_order(record, record.attempt, settings))
    leaving = {left.attempt: ports.backend.look(_order(record, left.attempt, settings)) for left in record.leaving}
    return Sight(current, leaving)


def _decide(record: SliceRecord, settings: ClusterSettings, ports: Ports, held: Held | None) -> Decision:
    """Decide; where only a slot is missing to create, try to take one and decide again with it."""
    seen = _look(record, settings, ports)
    decision = decide(record, seen, ports.clock.now(), settings, held)
    if decision.reason is not Reason.OPERATION_LIMIT:
        return decision
    slot = slots.take(decision.record, settings, ports)
    if slot is None:
        return decision
    return decide(replace(record, slot=slot), seen, ports.clock.now(), settings, held)


def _remember(
    stored: Stored[SliceRecord], decision: Decision, ports: Ports, guards: tuple[Change, ...]
) -> Stored[SliceRecord]:
    """Save the decision; a creation under a limit of chips only if no other one was saved since they were counted."""
    if decision.record == stored.value:
        return stored
    beside = (*(guards if decision.creates else ()), *calling_for_report(stored.value, decision.record, ports))
    revision, *_ = ports.store.commit(Change(stored, decision.record), *beside)
    return Stored(decision.record, revision)


def _act(record: SliceRecord, decision: Decision, settings: ClusterSettings, ports: Ports) -> SliceRecord:
    """Act on what was just remembered; too long after it, look again instead."""
    deadline = ports.clock.now() + settings.limits.act_window
    for action in decision.actions:
        if ports.clock.now() > deadline:
            raise StaleRecord(f"the decision about {record.id} is too old to act on")
        outcome = _perform(action, record, settings, ports)
        record = acted(record, action, outcome, ports.clock.now(), settings)
    return record


def _perform(action: Action, record: SliceRecord, settings: ClusterSettings, ports: Ports) -> Outcome:
    order = _order(record, action.attempt, settings)
    if not isinstance(action, CreatePool):
        return ports.backend.delete(order)
    outcome = ports.backend.create(order)
    if isinstance(outcome, Refused) and outcome.failure.kind is FailureKind.RATE:
        slots.change_governor(narrowed, settings.cluster, ports)
    return outcome


def _tell(record: SliceRecord, settings: ClusterSettings, ports: Ports) -> SliceRecord:
    """Tell the user what turned since it was last told; noted afterwards, so that it is never lost."""
    if not record.untold:
        return record
    first = record.turns - len(record.untold) + 1
    updates = [
        SliceUpdate(
            job=record.job,
            slice_id=record.id,
            pool=_told_pool(record),
            turn=first + offset,
            transition=transition,
        )
        for offset, transition in enumerate(record.untold)
    ]
    ports.bus.tell(settings.cluster, updates)
    told = replace(record, told=record.turns)
    return replace(told, due_at=due(told, ports.clock.now(), settings.limits))


def _told_pool(record: SliceRecord) -> PoolName:
    """Name the pool that a transition is about: the one that is leaving, where there is no other."""
    attempt = record.leaving[-1].attempt if record.leaving and record.ordered_at is None else record.attempt
    return record.pool_of(min(attempt, LAST_ATTEMPT))


def _settle_with_governor(before: SliceRecord, after: SliceRecord, settings: ClusterSettings, ports: Ports) -> None:
    """Once a step is saved: give back the slot of a creation that is over, and remember where capacity ran out."""
    if after.reason is Reason.STOCKOUT and after.turns > before.turns and after.spec is not None:
        cell = cell_of(after.spec)
        slots.change_governor(lambda governor, now: ran_out(governor, cell, now), settings.cluster, ports)
    if before.slot is None or after.slot is not None:
        return
    for slot in ports.store.slots(settings.cluster):
        if slot.value.slice_id == after.id:
            slots.free(slot, settings, ports)


def _order(record: SliceRecord, attempt: int, settings: ClusterSettings) -> PoolOrder:
    return PoolOrder(
        cluster_path=settings.path,
        cluster_gke_id=settings.gke_id,
        slice_id=record.id,
        attempt=attempt,
        inherited=record.inherited if attempt == 0 else None,
        job=record.job,
        spec=record.spec,
        settings=record.pinned or settings.pools,
        operation=record.operation if attempt == record.attempt else None,
    )

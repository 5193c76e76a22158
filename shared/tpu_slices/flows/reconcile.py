"""Reconciles one slice once: look, decide, remember, act, note. Never waits for an operation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from tpu_slices.domain.model.clusters import ClusterSettings, Limits
from tpu_slices.domain.model.facts import HostsChanged
from tpu_slices.domain.model.joining import JoinEnded, JoinQuestion
from tpu_slices.domain.model.observations import (
    Absent,
    Broken,
    Busy,
    FailureKind,
    Outcome,
    PoolObservations,
    Refused,
    Running,
    Started,
    Witness,
)
from tpu_slices.domain.model.reasons import IN_LINE, Phase
from tpu_slices.domain.model.slices import ClusterId, SliceId, WorkloadUid
from tpu_slices.domain.model.vendors import Vendor
from tpu_slices.domain.planning.expected_nodes import nodes_expected
from tpu_slices.domain.reconciling.case import Known, Situation
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.decisions import (
    Action,
    AskJoin,
    CancelCreation,
    CloseHosts,
    CreatePool,
    Decision,
    DeletePool,
    DeleteRemains,
    EndJoin,
    OpenHosts,
    Relabel,
)
from tpu_slices.domain.reconciling.demand import with_current_desire
from tpu_slices.domain.reconciling.evidence import on_record
from tpu_slices.domain.reconciling.limiter import lowered
from tpu_slices.domain.reconciling.occupancy import is_left, kept_for, slices_of_guests, with_report
from tpu_slices.domain.reconciling.outcomes import acted
from tpu_slices.domain.reconciling.relabelling import known_ours
from tpu_slices.domain.records.brakes import Brake
from tpu_slices.domain.records.heartbeats import NEVER_HEARD
from tpu_slices.domain.records.limiters import ConcurrencyLimiter, Slot
from tpu_slices.domain.records.slices import Shortage, SliceRecord
from tpu_slices.flows import slots
from tpu_slices.flows.brakes import limited, stopped
from tpu_slices.flows.budget import count
from tpu_slices.flows.node_groups import tell_node_group
from tpu_slices.flows.orders import observed, order_of, question_of
from tpu_slices.flows.outcomes import Reconciled, announce
from tpu_slices.flows.retrying import retry_on_conflict
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.errors import Permanent, StaleRecord
from tpu_slices.ports.store import Change, Names, Stored, Together


@dataclass(frozen=True, slots=True)
class Told:
    """What whoever requests a reconcile knows already."""

    settings: ClusterSettings | None = None
    """Of the cluster, if they were just read."""
    ended: bool = False
    """Whether an operation on one of the slice's pools ended."""
    created: str | None = None
    """That operation, if it created a pool and did not fail."""
    answer: HostsChanged | None = None
    """What the relay answered about the slice's hosts, and is not on record."""
    waiting: WorkloadUid | None = None
    """Whose pods wait for the slice, or whose slice got a slot: what its creation needs is read with the slice."""
    slots: bool = False
    """Whether the slice is likely to take a slot, or to hand one on: they are read with it."""


NOTHING = Told()

_MOST_EXCHANGED = 10
"""How many Jobs may have taken each other's hosts in a row before one whose hosts were taken gets new ones."""


def reconcile(cluster: ClusterId, slice_: SliceId, deps: ReconcileDeps, told: Told = NOTHING) -> Reconciled | None:
    """Reconcile one slice; return None if it does not exist, or is GONE and settled.

    Those to which it hands slots on are requested. Permanent: unknown cluster. Temporary: the request is redelivered.
    """
    done, served = _reconciled(cluster, slice_, told, deps)
    _request(cluster, served, deps)
    return done


def reconcile_in_turn(
    cluster: ClusterId, slice_: SliceId, deps: ReconcileDeps, told: Told = NOTHING
) -> Iterator[Reconciled]:
    """Reconcile one slice and then, if it hands a slot on, who gets it: a slot is idle for the time of a message less.

    Further ones that get a slot are requested, and that one if it fails, whatever it is: its own message tells.
    """
    done, served = _reconciled(cluster, slice_, told, deps)
    _request(cluster, served[1:], deps)
    if done is not None:
        yield done
    if not served:
        return
    try:
        follows = reconcile(cluster, served[0].id, deps, Told(waiting=served[0].owner.uid))
    except Exception:  # noqa: BLE001 - it is told by the message of the slice that it is about
        _request(cluster, served[:1], deps)
    else:
        yield from [follows] if follows else []


def _reconciled(
    cluster: ClusterId, slice_: SliceId, told: Told, deps: ReconcileDeps
) -> tuple[Reconciled | None, list[SliceRecord]]:
    """Return what came of it, and who got a slot and is to be reconciled."""
    served: list[SliceRecord] = []
    try:
        return retry_on_conflict(lambda: _once(cluster, slice_, told, deps, served), deps.clock), served
    except Exception:
        _request(cluster, served, deps)
        raise


def _request(cluster: ClusterId, slices: Sequence[SliceRecord], deps: ReconcileDeps) -> None:
    if slices:
        deps.publisher.request_reconcile(cluster, [each.id for each in slices])


@dataclass(frozen=True, slots=True)
class Looked:
    """The inputs of a decision at one time."""

    settings: ClusterSettings
    stored: Stored[SliceRecord]
    record: SliceRecord
    """With its current desire."""
    seen: PoolObservations
    known: Known
    at: datetime
    guards: tuple[Change, ...] = ()
    """Written with a creation: they order creations under a chip limit."""
    limiter: ConcurrencyLimiter | None = None
    """None: neither it nor the brake was read, since no creation can be due."""
    brake: Stored[Brake] | None = None
    slots: tuple[Stored[Slot], ...] | None = None
    """None: not read yet."""

    def is_ours(self, attempt: int) -> bool:
        """Return whether a pool was seen that is ours."""
        seen = {self.record.attempt: self.seen.current, **self.seen.terminating}.get(attempt)
        return isinstance(seen, Running | Busy | Broken)

    def decide(self, slots: Mapping[int, int], shortage: Shortage | None = None) -> Decision:
        known = replace(self.known, slots=slots, shortage=shortage) if slots or shortage else self.known
        return decide(self.record, self.seen, self.at, self.settings, known)


@dataclass(frozen=True, slots=True)
class Explained:
    """The input of `reconcile` at this time, and what it would decide."""

    record: SliceRecord
    """With its current desire."""
    seen: PoolObservations
    decision: Decision
    vendor: Vendor


def explain(cluster: ClusterId, slice_: SliceId, deps: ReconcileDeps) -> Explained | None:
    """Return what `reconcile` would decide now, or None if there is no such cluster or slice. Changes nothing."""
    settings = deps.store.settings(cluster)
    looked = _look(cluster, slice_, Told(settings), deps) if settings is not None else None
    looked = _with_pools(looked, deps) if looked is not None else None
    if looked is None:
        return None
    looked = _limit(looked, looked.decide({}), deps) or looked
    return Explained(looked.record, looked.seen, _decide(looked, _taking(looked, deps)), looked.settings.vendor)


def _once(
    cluster: ClusterId, slice_: SliceId, told: Told, deps: ReconcileDeps, served: list[SliceRecord]
) -> Reconciled | None:
    """Reconcile the slice as it is now; add to `served` who gets a slot that it frees."""
    looked = _look(cluster, slice_, told, deps)
    if looked is None:
        return None
    if _settled(looked.record):
        tell_node_group(looked.record, looked.known, deps)
        return None
    looked = _with_known(looked, told) or _with_pools(looked, deps)
    taking = _taking(looked, deps)
    decision = _decide(looked, taking)
    if decision.changes_pools and looked.seen.by is not Witness.LOOK:
        looked = _with_pools(looked, deps)
        decision = _decide(looked, taking)
    if (limit := _limit(looked, decision, deps)) is not None:
        looked, decision = limit, _decide(limit, taking)
    stored = looked.stored.value
    announce(stored, stored.announced_count, deps)  # once more: whoever saved them may have ended before
    settling = slots.Settling(stored, decision.record, looked.settings, deps, looked.slots)
    remembered = _remember(looked, decision, taking.used_by(decision.record), deps)
    acted = _act(remembered.value, decision.actions, looked, deps)
    served += settling.saved(looked.seen)
    if (kept := kept_for(stored, decision.record)) is not None:
        deps.publisher.request_reconcile(cluster, [kept])
    after = _note(looked, remembered, acted, deps, served)
    return Reconciled(stored, decision, after)


def _settled(record: SliceRecord) -> bool:
    gone = record.phase is Phase.GONE and not record.wanted and record.next_reconcile_at is None
    return gone and record.announced_count == record.transition_count


def _look(cluster: ClusterId, slice_: SliceId, told: Told, deps: ReconcileDeps) -> Looked | None:
    """Return the slice and what is known beside it, without its pools; None if there is no slice."""
    read = deps.store.together(cluster, _names(slice_, told))
    settings = told.settings or read.settings
    if settings is None:
        raise Permanent(f'no settings for cluster "{cluster}": write clusters/{cluster}')
    stored, heartbeat = read.slices.get(slice_), read.heartbeat
    if stored is None:
        return None
    counted = with_report(stored.value, told.answer, deps.clock.now()) if told.answer else stored.value
    creates = counted.current.create_requested_at is None and not counted.terminating
    beside = _beside(counted, read, told, deps, creates=creates)
    own = beside.workloads.get(counted.owner.uid)  # Permanent if it cannot be read: then nothing is decided
    workloads = {uid: each.value for uid, each in beside.workloads.items()}
    listed_at = heartbeat.value.confirmed_at(counted.owner.kind) if heartbeat else None
    record = with_current_desire(counted, own.value if own else None, listed_at)
    record, why_stopped = stopped(record, workloads.get(record.owner.uid), deps)
    chips, now = count(record, settings, deps), deps.clock.now()
    beside_it = Known(
        workloads=workloads,
        relay=heartbeat.value.relay if heartbeat else NEVER_HEARD,
        held=chips.held,
        stopped=why_stopped,
    )
    nothing = PoolObservations(Absent(), {})
    if Situation(record, nothing, now, settings, beside_it).deprived:
        beside_it = replace(beside_it, left=_left(record, now, settings.limits, deps))
    limits = slots.limiter_of(beside.limiter, settings, now) if creates else None
    return Looked(settings, stored, record, nothing, beside_it, now, chips.guards, limits, beside.brake, read.slots)


def _names(slice_: SliceId, told: Told) -> Names:
    """Return what is read first: with a slice that pods wait for, what its creation needs."""
    first = Names(settings=told.settings is None, slices=[slice_], heartbeat=True, slots=told.slots)
    return first if told.waiting is None else replace(first, workloads=[told.waiting], limiter=True, brake=True)


def _beside(record: SliceRecord, read: Together, told: Told, deps: ReconcileDeps, *, creates: bool) -> Together:
    """Return the workloads of the slice's users and, for a creation, what limits it: read, unless they were already."""
    users = record.users
    if users == {told.waiting}:
        return read
    return deps.store.together(record.cluster, Names(workloads=users, limiter=creates, brake=creates))


def _left(record: SliceRecord, now: datetime, limits: Limits, deps: ReconcileDeps) -> SliceId | None:
    """Return the slice that is left for a Job whose hosts others took: that of one of them, or of who took theirs."""
    taken, met = [record], {record.id}
    for _ in range(_MOST_EXCHANGED):
        guests = {id_ for each in taken for id_ in slices_of_guests(each)} - met
        found = [each.value for each in deps.store.slices(record.cluster, guests).values()] if guests else []
        left = next((each.id for each in found if is_left(each, record, now, limits)), None)
        if left is not None or not found:
            return left
        taken, met = found, met | guests
    return None


def _with_known(looked: Looked, told: Told) -> Looked | None:
    """Return it with what is on record of the slice's pools; None: GKE is to be asked."""
    seen = on_record(looked.record, looked.at, told.created)
    return None if seen is None or (told.ended and seen.by is not Witness.EVENT) else replace(looked, seen=seen)


def _with_pools(looked: Looked, deps: ReconcileDeps) -> Looked:
    """Return it with every pool of the slice that may exist, as GKE shows it."""
    seen, now = observed(looked.record, looked.settings, deps), deps.clock.now()
    return replace(looked, record=known_ours(looked.record, seen, now), seen=seen, at=now)


def _taking(looked: Looked, deps: ReconcileDeps) -> slots.Taking:
    return slots.Taking(looked.stored.value, looked.limiter, looked.settings, deps, looked.slots)


def _decide(looked: Looked, taking: slots.Taking) -> Decision:
    """Return the decision, and take its slots: while only a slot is missing for an operation, decide again.

    Once more if it is not a slot that is missing, but its turn to try what ran out.
    """
    decision = looked.decide(taking.numbers)
    while (
        (awaited := decision.record.slot_awaited) is not None
        and awaited.number is None
        and taking.take(decision.record, awaited)
    ):
        decision = looked.decide(taking.numbers)
    return looked.decide(taking.numbers, taking.shortage) if taking.shortage else decision


def _limit(looked: Looked, decision: Decision, deps: ReconcileDeps) -> Looked | None:
    """Return it with what limits a decision that buys while releases are stopped; None: nothing does."""
    if not (decision.creates or decision.reason in IN_LINE):
        return None
    brake = looked.brake if looked.limiter else deps.store.brake(looked.record.cluster)
    found = limited(looked.record, brake, looked.settings, deps)
    known = found and replace(looked.known, held=found.chips.held, limited=found.why)
    return replace(looked, known=known, guards=found.chips.guards) if found and known else None


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
    record = record.with_changes(announced_count=stored.value.transition_count)
    guards = looked.guards if decision.creates else ()
    revision, *_ = deps.store.commit(Change(stored, record), *slots_taken, *guards)
    return Stored(record, revision)


def _act(record: SliceRecord, actions: Sequence[Action], looked: Looked, deps: ReconcileDeps) -> SliceRecord:
    """Perform the actions of the decision just saved; raise StaleRecord once it is too late for them."""
    for action in actions:
        if deps.clock.now() > looked.at + looked.settings.limits.act_window:
            raise StaleRecord(f"the decision about {record.id} is too old to act on")
        outcome = _perform(action, record, looked, deps)
        record = acted(record, action, outcome, deps.clock.now(), looked.settings)
    return record


def _perform(action: Action, record: SliceRecord, looked: Looked, deps: ReconcileDeps) -> Outcome:
    """Return the outcome of an action; questions to the relay are answered by facts."""
    settings = looked.settings
    order = replace(order_of(record, action.attempt, settings), seen_ours=looked.is_ours(action.attempt))
    match action:
        case CreatePool():
            outcome = deps.backend.create(order)
        case DeletePool():
            outcome = deps.backend.delete(order)
        case DeleteRemains():
            outcome = deps.backend.delete_remains(order)
        case CancelCreation():
            outcome = deps.backend.cancel(order)
        case Relabel():
            outcome = deps.backend.relabel(order)
        case CloseHosts() | OpenHosts():
            deps.publisher.ask(settings.cluster, [question_of(action, record)])
            return Started(None)
        case AskJoin(attempt, asked_at):
            question = JoinQuestion(slice_id=record.id, attempt=attempt, asked_at=asked_at)
            deps.publisher.ask(settings.cluster, [question])
            return Started(None)
        case EndJoin(attempt):
            deps.publisher.ask(settings.cluster, [JoinEnded(slice_id=record.id, attempt=attempt)])
            return deps.backend.join(order, None)
    if isinstance(outcome, Refused) and outcome.failure.kind is FailureKind.RATE:
        slots.change_limiter(lambda limiter, now: lowered(limiter, now, settings.limits), settings, deps)
    return outcome


def _note(
    looked: Looked,
    remembered: Stored[SliceRecord],
    acted: SliceRecord,
    deps: ReconcileDeps,
    served: list[SliceRecord],
) -> SliceRecord:
    """Announce what happened, save what came of the actions, and hand on the slots of operations that ended."""
    settings = looked.settings
    announce(acted, looked.stored.value.transition_count, deps)
    tell_node_group(acted, looked.known, deps)
    if (expected := nodes_expected(acted, settings)) is not None:
        deps.publisher.ask(settings.cluster, [expected])
    if acted == remembered.value:
        return acted
    after = acted.with_changes(announced_count=acted.transition_count)
    settling = slots.Settling(remembered.value, after, settings, deps)
    deps.store.commit(Change(remembered, after))
    served += settling.saved(looked.seen)
    return after

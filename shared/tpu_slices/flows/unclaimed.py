"""Slices that their claims need no more: given to a claim that waits for such, given back, forgotten once gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain, islice

from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.observations import Absent, Observed
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.reconciling.case import Situation
from tpu_slices.domain.reconciling.decisions import Decision, DeletePool
from tpu_slices.domain.reconciling.demand import with_current_desire
from tpu_slices.domain.reconciling.evidence import on_record
from tpu_slices.domain.reconciling.taking import (
    handed_over,
    is_offered,
    is_served_by,
    may_be_regained,
    regained,
)
from tpu_slices.domain.records.matching import needs, needs_of_any, offers, users_of
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.usage import with_those_of
from tpu_slices.flows import slots
from tpu_slices.flows.acting import act
from tpu_slices.flows.capacity import crossing
from tpu_slices.flows.hosts import with_free_name
from tpu_slices.flows.looking import Looked
from tpu_slices.flows.node_groups import tell_gone
from tpu_slices.flows.orders import observed
from tpu_slices.flows.outcomes import Reconciled
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.store import Change, Stored

AFTER_ALL = timedelta(days=365)
"""Longer than any slice is kept warm."""
MOST_ASKED = 5
"""How many of those that wait, or of the slices that go, are looked at: most of them are alike."""
MOST_OFFERED = 50
"""How many of the slices that go are read, if some of the first ones do not serve a claim."""


def regain(looked: Looked, deps: ReconcileDeps) -> list[SliceRecord]:
    """Return who gets a slot that a claim needs no more, and the claim, which has its slice again; else nothing."""
    record = looked.record
    if not may_be_regained(record) or looked.settings.paused is not None:
        return []
    stored = deps.store.having(record.cluster, [record.last_claim]).get(record.last_claim)
    if stored is None:
        return []
    own = looked.known.workloads.get(record.owner.uid)
    case = Situation(record, looked.seen, looked.at, looked.settings, looked.known)
    found = regained(with_current_desire(stored.value, own, looked.listed_at), case)
    if found is None:
        return []
    claim, meanwhile = found
    settling = slots.Settling(stored.value, claim, looked.settings, deps, let_go=meanwhile)
    deps.store.commit(Change(looked.stored, claim), Change(stored, meanwhile))
    return [*settling.saved(looked.seen), claim]


@dataclass(frozen=True, slots=True)
class _Match:
    """A slice that goes and a claim that waits for such: each as it was read, and as it is known now."""

    stored: Stored[SliceRecord]
    slice_: SliceRecord
    waiting: Stored[SliceRecord]
    claim: SliceRecord
    guards: tuple[Change, ...] = ()
    """Written with a hand-over to another namespace: they order it among creations under a chip limit."""


def hand_over(looked: Looked, decision: Decision, deps: ReconcileDeps) -> list[SliceRecord]:
    """Return who is to be reconciled once a claim that waits has a slice that was about to be deleted, or is kept.

    The claim is the first.

    Nothing: nobody gets it.
    """
    slice_ = Situation(looked.record, looked.seen, looked.at, looked.settings, looked.known)
    deletes = any(isinstance(action, DeletePool) for action in decision.actions)
    kept = decision.reason in {Reason.WARM, Reason.SPARE} and looked.settings.paused is None
    if not (deletes or kept) or not is_offered(slice_):
        return []
    for stored in _wanting(looked, decision, deps):
        claim = _claim(stored.value, looked, deps)
        if claim is None or not is_served_by(claim, _as_kept(looked, decision)):
            continue
        guards = crossing.guards(claim.record, looked.record, looked.settings, deps)
        if guards is not None:
            return _give(_Match(looked.stored, looked.record, stored, claim.record, guards), looked, deps)
    return []


def _wanting(looked: Looked, decision: Decision, deps: ReconcileDeps) -> Iterator[Stored[SliceRecord]]:
    """Yield claims that wait for what a slice is: of its namespace first, then of others if it is kept for all."""
    yield from deps.store.wanting(offers(looked.record) or "", MOST_ASKED)
    if decision.reason is Reason.WARM:
        yield from crossing.wanting(looked, decision.record, deps)


def _as_kept(looked: Looked, decision: Decision) -> SliceRecord:
    """Return a slice as it is kept by a decision that is not saved yet; else as it is."""
    return decision.record if decision.reason is Reason.WARM else looked.record


def take_over(looked: Looked, decision: Decision, deps: ReconcileDeps) -> list[SliceRecord]:
    """Return the same for a claim for which a slice was about to be created, and that one serves which goes.

    Where slices are kept warm, or spares are made, for any that waits for one.
    """
    request, namespace, settings = needs(looked.record), looked.record.owner.namespace, looked.settings
    kept = settings.warm_in(namespace)[0] is not None or settings.spares_in(namespace)
    kept = kept or (settings.hands_across and needs_of_any(looked.record) is not None)
    looks = decision.creates or (kept and decision.record.wanted and settings.paused is None)
    if request is None or not looks:
        return []
    claim = Situation(looked.record, looked.seen, looked.at, looked.settings, looked.known)
    for stored in chain(_serving(claim, request, deps), _serving_of_others(claim, looked, deps)):
        slice_ = _offered(stored.value, looked, deps)
        guards = None if slice_ is None else crossing.guards(looked.record, slice_.record, settings, deps)
        if slice_ is not None and guards is not None:
            return _give(_Match(stored, slice_.record, looked.stored, looked.record, guards), looked, deps)
    return []


def _serving_of_others(claim: Situation, looked: Looked, deps: ReconcileDeps) -> Iterator[Stored[SliceRecord]]:
    """Yield some slices of other namespaces that serve a claim: they are read once no slice of its own was given."""
    serving = (each for each in crossing.offered(looked, deps) if is_served_by(claim, each.value))
    yield from islice(serving, MOST_ASKED)


def _serving(claim: Situation, request: str, deps: ReconcileDeps) -> Sequence[Stored[SliceRecord]]:
    """Return some slices that may serve a claim, those first that end first.

    Many are read only if some of the first ones do not serve it: they were made otherwise, or are kept for others.
    """
    serving: list[Stored[SliceRecord]] = []
    for most in (MOST_ASKED, MOST_OFFERED):
        found = deps.store.offered(request, most)
        serving = [each for each in found if is_served_by(claim, each.value)]
        if len(found) < most or len(serving) >= MOST_ASKED:
            break
    return sorted(serving[:MOST_ASKED], key=lambda it: _ends_at(it.value, claim.now))


def _ends_at(slice_: SliceRecord, now: datetime) -> datetime:
    """Return until when a slice that goes is kept: one that is not warm ends first, and a spare last."""
    if slice_.owner.kind.is_spare and not slice_.goes:
        return now + AFTER_ALL
    return slice_.current.warm.until if slice_.current.warm is not None else now


def _claim(record: SliceRecord, looked: Looked, deps: ReconcileDeps) -> Situation | None:
    """Return a claim that waits, as it is needed now; None: its workload cannot be read."""
    uid = record.owner.uid
    found = deps.store.workloads(record.cluster, [uid])
    if uid in found.unreadable:
        return None
    own = found.get(uid)
    current = with_current_desire(record, own.value if own else None, looked.listed_at)
    workloads = {**looked.known.workloads, **({uid: own.value} if own else {})}
    known = replace(looked.known, workloads=workloads)
    return Situation(current, Observed(Absent()), looked.at, looked.settings, known)


def _offered(record: SliceRecord, looked: Looked, deps: ReconcileDeps) -> Situation | None:
    """Return a slice that goes, as it is known now; None: it serves no other claim.

    Of a workload that is only missing it may be kept by the brake: it is offered once its deletion is decided.
    The vendor is asked where what was seen of it counts no more, as of what is being made in steps.
    """
    workloads = {uid: it.value for uid, it in deps.store.workloads(record.cluster, users_of(record)).items()}
    own = workloads.get(record.owner.uid)
    if (own is None and not record.owner.kind.is_spare) or (own is not None and own.state is WorkloadState.MISSING):
        return None
    current = with_current_desire(record, own, looked.listed_at)
    known = replace(looked.known, workloads=workloads, stopped=None)
    seen = on_record(record, looked.at) or observed(record, looked.settings, deps)
    slice_ = Situation(current, seen, looked.at, looked.settings, known)
    return slice_ if is_offered(slice_) else None


def _give(match: _Match, looked: Looked, deps: ReconcileDeps) -> list[SliceRecord]:
    """Return who is to be reconciled once it is saved that a claim has a slice; StaleRecord: others were faster.

    Nobody if what its last claim has cannot be read.
    """
    slice_, last = match.slice_, None
    if slice_.unclaimed:
        found = deps.store.having(slice_.cluster, [slice_.last_claim])
        if found.unreadable:
            return []
        last = found.get(slice_.last_claim)
    got = handed_over(match.claim, slice_, last.value if last else None, looked.at)
    if last is None and got.other is not None:
        got = replace(got, other=with_free_name(got.other, deps))
    stored = (match.stored, match.waiting)
    settling = [slots.Settling(each.value, got.has, looked.settings, deps) for each in stored]
    others = [Change(last, got.other)] if got.other is not None else []
    deps.store.commit(Change(match.stored, got.has), Change(match.waiting, None), *others, *match.guards)
    crossing.tell_left(match.claim, slice_, looked.settings, deps)
    served = [each for settled in settling for each in settled.saved(looked.seen)]
    return [got.has, *([got.other] if got.other is not None else []), *served]


def forget(looked: Looked, decision: Decision, deps: ReconcileDeps, served: list[SliceRecord]) -> Reconciled:
    """Forget a slice that no claim has, and that is gone; a claim that waited for that is reconciled.

    How its chips were used stays on record with the claim that had it last.
    """
    stored, record = looked.stored, decision.record
    claim = deps.store.having(record.cluster, [record.last_claim]).get(record.last_claim)
    settling = slots.Settling(stored.value, record, looked.settings, deps, looked.slots)
    changes = [Change(stored, None)]
    awaited = claim is not None and record.id in claim.value.claim.earlier
    if claim is not None and (awaited or record.usages):
        earlier = tuple(each for each in claim.value.claim.earlier if each != record.id)
        due = looked.at if awaited and not claim.value.wanted else claim.value.next_reconcile_at
        usages = with_those_of(claim.value.usages, record.usages, looked.at)
        kept = replace(claim.value.with_claim(earlier=earlier), next_reconcile_at=due, usages=usages)
        changes.append(Change(claim, kept))
    tell_gone(record, looked.settings, deps)
    deps.store.commit(*changes)
    act(record, decision.actions, looked, deps)
    served += settling.saved(looked.seen)
    if claim is not None and not claim.value.wanted:
        served.append(claim.value)
    return Reconciled(stored.value, decision, record)

"""Slices that no claim has: given back to the claim that had them last, and forgotten once they are gone."""

from __future__ import annotations

from dataclasses import replace

from tpu_slices.domain.reconciling.case import Situation
from tpu_slices.domain.reconciling.decisions import Decision
from tpu_slices.domain.reconciling.demand import with_current_desire
from tpu_slices.domain.reconciling.taking import may_be_regained, regained
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows import slots
from tpu_slices.flows.acting import act
from tpu_slices.flows.looking import Looked
from tpu_slices.flows.node_groups import tell_gone
from tpu_slices.flows.outcomes import Reconciled
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.store import Change


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


def forget(looked: Looked, decision: Decision, deps: ReconcileDeps, served: list[SliceRecord]) -> Reconciled:
    """Forget a slice that no claim has, and that is gone; a claim that waited for that is reconciled."""
    stored, record = looked.stored, decision.record
    claim = deps.store.having(record.cluster, [record.last_claim]).get(record.last_claim)
    settling = slots.Settling(stored.value, record, looked.settings, deps, looked.slots)
    changes = [Change(stored, None)]
    if claim is not None and record.id in claim.value.claim.earlier:
        earlier = tuple(each for each in claim.value.claim.earlier if each != record.id)
        due = claim.value.next_reconcile_at if claim.value.wanted else looked.at
        changes.append(Change(claim, replace(claim.value.with_claim(earlier=earlier), next_reconcile_at=due)))
    tell_gone(record, looked.settings, deps)
    deps.store.commit(*changes)
    act(record, decision.actions, looked, deps)
    served += settling.saved(looked.seen)
    if claim is not None and not claim.value.wanted:
        served.append(claim.value)
    return Reconciled(stored.value, decision, record)

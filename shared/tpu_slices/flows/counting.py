"""Decides with a report of a slice's hosts where GKE need not be asked, and nothing is to be done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tpu_slices.domain.model.observations import Running
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.reconciling.case import Known
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.decisions import Decision
from tpu_slices.domain.reconciling.demand import with_current_desire
from tpu_slices.domain.reconciling.evidence import on_record
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.domain.reporting.reports import is_news, report
from tpu_slices.domain.reporting.unread import NotRead
from tpu_slices.flows.gangs.settling import Beside, settled_with
from tpu_slices.flows.report import QueueStates, Reported, with_announced
from tpu_slices.ports.deps import IntakeDeps
from tpu_slices.ports.store import Change, Names, Stored, Together

_USED = frozenset({Reason.READY, Reason.PODS_NOT_RUNNING, Reason.PODS_APART})
_STANDING = frozenset({Reason.HOSTS_JOINING, Reason.IDLE, *_USED})


@dataclass(frozen=True, slots=True)
class Counted:
    """What is decided with a report of a slice's hosts, and all that is to be written with it."""

    before: SliceRecord
    """What the claim had before: the slice that was counted, or another one."""
    decision: Decision
    changes: tuple[Change, ...]
    reported: Reported | None
    """That all slices of the workload are ready, which is to be announced."""


def decided(stored: Stored[SliceRecord], changes: Sequence[Change], deps: IntakeDeps) -> Counted | None:
    """Return what is decided with the changes that a report of a slice's hosts makes; None: it is to be reconciled.

    | its own pool stands, and nothing else is changed; it was | and is now           |                         |
    |----------------------------------------------------------|----------------------|-------------------------|
    | waiting for hosts                                        | still waiting        | counted; of a node pool |
    | waiting for hosts                                        | READY                | told                    |
    | READY                                                    | READY, for whom else,| counted                 |
    |                                                          | or its pods do not   |                         |
    |                                                          | run                  |                         |
    | that of another claim, which has what this one had       | likewise             | likewise                |
    | whatever an operator, the settings or lost hosts make of it                     | None                    |

    It is looked at again no later than it would have been.
    """
    counted = next((each.after for each in changes if each.before is stored), None)
    if not isinstance(counted, SliceRecord) or not _stands(counted) or counted.owner.kind.declares:
        return None
    now = deps.clock.now()
    seen = on_record(counted, now)
    if seen is None or not isinstance(seen.pool, Running):
        return None
    others = [each for each in changes if each.before is not stored]
    before = _before(counted, changes)
    if before is None or not all(map(_goes_on, others)):
        return None
    uid = counted.owner.uid
    told = {each.after.owner.uid: each.after for each in others if isinstance(each.after, WorkloadRecord)}
    names = Names(settings=True, heartbeat=uid in told, workloads=() if uid in told else [uid])
    read = deps.store.together(counted.cluster, names)
    workloads = {**{known: each.value for known, each in read.workloads.items()}, **told}
    own = workloads.get(uid)
    if read.settings is None or own is None:
        return None
    record = with_current_desire(counted, own)
    decision = decide(record, seen, now, read.settings, Known(workloads=workloads))
    waits = decision.reason is counted.reason is Reason.HOSTS_JOINING and not read.settings.self_managed
    if decision.actions or not (waits or decision.reason in _USED):
        return None
    after = replace(decision.record, announced_count=before.transition_count)
    states = QueueStates(deps, {counted.cluster: read})
    whole = _Whole(own)
    if uid in told and decision.reason is Reason.READY:
        having = [after, *(it for each in others if isinstance(it := each.after, SliceRecord) and not it.unclaimed)]
        whole = _whole(own, having, read, states, deps)
    others = [replace(each, after=whole.workload) if each.after is own else each for each in others]
    changes = [Change(stored, after), *others, *whole.line]
    return Counted(before, replace(decision, record=after), tuple(changes), whole.reported)


def _before(counted: SliceRecord, changes: Sequence[Change]) -> SliceRecord | None:
    """Return the record that the claim had which has the counted slice now."""
    had = (each.before.value for each in changes if each.before is not None)
    return next((it for it in had if isinstance(it, SliceRecord) and it.claimed_by == counted.claimed_by), None)


def _goes_on(change: Change) -> bool:
    """Return whether a change lets no slice go that stands: another claim has it, or none was bought yet."""
    before, after = change.before and change.before.value, change.after
    bought = isinstance(before, SliceRecord) and before.current.create_requested_at is not None
    return not bought or (isinstance(after, SliceRecord) and not after.unclaimed)


def _stands(record: SliceRecord) -> bool:
    """Return whether a claim has a slice that stays, and of which nothing is under way."""
    current = record.current
    to_rebuild = record.claim.earlier or record.claim.rebuild_allowed
    changing = to_rebuild or current.relabelling or current.hosts.lacking(record.key)
    idle = record.reason is Reason.IDLE and not current.hosts.occupants  # which asks whether the relay is heard
    settled = not (changing or idle or record.goes or record.slots)
    return settled and record.spec is not None and record.reason in _STANDING


@dataclass(frozen=True, slots=True)
class _Whole:
    """What is to be written of a workload."""

    workload: WorkloadRecord
    line: tuple[Change, ...] = ()
    """Of the gangs, as it is from now on."""
    reported: Reported | None = None


def _whole(
    own: WorkloadRecord,
    changed: Sequence[SliceRecord],
    read: Together,
    states: QueueStates,
    deps: IntakeDeps,
) -> _Whole:
    """Return a workload with its report, if with this slice all are ready and that was not told, else the sweep's.

    `changed`: what claims have from now on, of this workload or of others. Its gangs are settled first: so it is told
    once, that they stand, and is written once.
    """
    if any(told_at is not None for told_at in own.demand.values()):
        return _Whole(own)
    budget = deps.store.budget(own.cluster) if own.gangs else None
    known = {each.last_claim: each for each in changed if each.last_claim in own.demand}
    slices = deps.store.having(own.cluster, own.demand.keys() - known.keys())
    records, now = [*known.values(), *(each.value for each in slices.values())], deps.clock.now()
    workload, line = own, tuple[Change, ...]()
    if own.gangs and read.settings is not None and not slices.unreadable:
        settled = settled_with(own, records, Beside(read.settings, read.heartbeat, budget), deps)
        if settled.told:  # some gang does not stand: the sweep's
            return _Whole(own)
        workload, line = settled.workload, settled.line
    made = report(workload, records, states.apart_from_line(own.cluster), now, NotRead(slices.unreadable))
    if not (made.reason.serves and is_news(made, workload, now)):
        return _Whole(workload, line)
    announced = with_announced(workload, made, now)
    return _Whole(announced, line, Reported(announced, made))

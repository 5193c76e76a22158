"""Makes a slice READY with the report that completes its hosts, where nothing remains to be asked or done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tpu_slices.domain.model.decisions import Decision
from tpu_slices.domain.model.observations import PoolObservations, Running
from tpu_slices.domain.model.reasons import Reason, ReportReason
from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.domain.model.workloads import WorkloadRecord
from tpu_slices.domain.reconciling.case import Known
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.demand import with_current_desire
from tpu_slices.domain.reconciling.presumed import only_hosts_were_missing
from tpu_slices.domain.reporting.reports import is_news, report
from tpu_slices.domain.reporting.waits import QueueState
from tpu_slices.flows.report import Reported, with_announced
from tpu_slices.ports.deps import IntakeDeps
from tpu_slices.ports.store import Change, Names, Stored


@dataclass(frozen=True, slots=True)
class Readied:
    """The decision that makes a slice READY, and all that is to be written with it."""

    decision: Decision
    changes: tuple[Change, ...]
    reported: Reported | None
    """That all slices of the workload are ready, which is to be announced."""


def readied(stored: Stored[SliceRecord], changes: Sequence[Change], deps: IntakeDeps) -> Readied | None:
    """Return how a slice becomes READY by the changes that a report of its hosts makes; None: it is to be reconciled.

    Its pool was seen to run, and its own Job is on its hosts: GKE need not be asked. Whatever else the report changes,
    or a person or the settings hold up, is left to reconcile.
    """
    counted = next((each.after for each in changes if each.before is stored), None)
    if not isinstance(counted, SliceRecord) or not only_hosts_were_missing(counted):
        return None
    others = [each for each in changes if each.before is not stored]
    if any(isinstance(each.after, SliceRecord) for each in others):
        return None
    uid = counted.owner.uid
    told = {each.after.owner.uid: each.after for each in others if isinstance(each.after, WorkloadRecord)}
    read = deps.store.together(counted.cluster, Names(settings=True, workloads=() if uid in told else [uid]))
    workloads = {**{known: each.value for known, each in read.workloads.items()}, **told}
    own = workloads.get(uid)
    if read.settings is None or own is None or own.demand.get(counted.id) is not None:
        return None
    record = with_current_desire(counted, own)
    decision = decide(
        record, PoolObservations(Running(None), {}), deps.clock.now(), read.settings, Known(workloads=workloads)
    )
    if decision.reason is not Reason.READY or decision.actions:
        return None
    after = replace(decision.record, announced_count=stored.value.transition_count)
    reported = _reported(own, after, deps) if uid in told else None
    others = [replace(each, after=reported.workload) if reported and each.after is own else each for each in others]
    return Readied(replace(decision, record=after), (Change(stored, after), *others), reported)


def _reported(workload: WorkloadRecord, last: SliceRecord, deps: IntakeDeps) -> Reported | None:
    """Return a workload with its report, if with this slice all are ready and that was not told; None: the sweep's."""
    if any(told_at is not None for told_at in workload.demand.values()):
        return None
    slices = deps.store.slices(workload.cluster, workload.demand.keys() - {last.id})
    records, now = [last, *(each.value for each in slices.values())], deps.clock.now()
    made = report(workload, records, QueueState(), now, slices.unreadable)
    is_due = made.reason is ReportReason.READY and is_news(made, workload, now)
    return Reported(with_announced(workload, made, now), made) if is_due else None

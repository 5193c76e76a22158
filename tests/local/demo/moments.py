"""Builders of what the demo observes at one moment: records, JobSets, Events, pools and calls."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from infra.local.demo.steps import Progress, Step, Until
from infra.local.demo.view import Call, Event, JobSet, NodeGroup, View
from tests.builders import NOW, a_job, a_record
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.records.slices import SliceRecord

ROAD = {
    Phase.PROVISIONING: Reason.CREATING,
    Phase.READY: Reason.READY,
    Phase.WAITING: Reason.STOCKOUT,
    Phase.REFUSED: Reason.IMPOSSIBLE_SHAPE,
    Phase.RELEASING: Reason.DELETION_STARTED,
    Phase.GONE: Reason.RELEASED,
}


def after(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def a_slice(jobset: str, *phases: Phase, index: int = 0, **changes: Any) -> SliceRecord:
    """Return a slice that went through these phases, one per second."""
    job = a_job(name=jobset, job_index=index)
    record = a_record(job=job, created_at=NOW, since=NOW, **changes)
    for second, phase in enumerate(phases, start=1):
        record = record.transitioned(NOW + after(second), ROAD[phase], f"{phase} at {second}")
    return record


def settled(record: SliceRecord) -> SliceRecord:
    return replace(record, next_reconcile_at=None)


def created(record: SliceRecord, attempt: int = 1, seconds: float = 1, code: str = "OK") -> Call:
    return Call(method="CreateNodePool", pool=f"{record.maker}-{attempt}", code=code, at=NOW + after(seconds))


def a_jobset(name: str, *conditions: str, ready: int = 0, restarts: int = 0) -> JobSet:
    return JobSet(name=name, conditions=frozenset(conditions), ready=ready, restarts=restarts)


def a_group(name: str, **conditions: str) -> NodeGroup:
    return NodeGroup(name=name, conditions=conditions)


def told(record: SliceRecord, message: str, type_: str = "Warning") -> Event:
    return Event(about="Pod/leader", type=type_, reason="ImpossibleShape", message=f"Slice {record.name}: {message}")


def a_view(*slices: SliceRecord, **changes: Any) -> View:
    return View(**{"slices": slices, "pools": {}, **changes})


def a_step(*moves: Any) -> Step:
    return Step(letter="a", title="a slice is made", workload="llama", moves=moves)


def slices_are_seen(count: int, within: float = 10) -> Until:
    return Until(what=f"{count} slices", seen=lambda view: len(view.slices) >= count, within=within)


def a_progress(*moves: Any, since: float = 0) -> Progress:
    return Progress(step=a_step(*moves), since=since)

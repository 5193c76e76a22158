"""What the mirror in the cluster shows of a record: a pure function of it, so that both can be compared by digests.

| a record                                             | its object                                       |
|------------------------------------------------------|--------------------------------------------------|
| a slice that is not GONE                             | a TPUSlice, named as the slice                   |
| a workload that has not ended, and has a report      | a TPUWorkload, named by its kind and name        |
| any other                                            | none                                             |

Each is in the namespace of its workload: that of a slice changes if a Job of another namespace gets it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import LAST_ATTEMPT, Owner
from tpu_slices.domain.model.texts import digest
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import Report, WorkloadRecord

MOST_WAITS = 5
"""The most waits of a report that its object has; its message has the first of them, too."""
MOST_OF_A_NAME = 200
"""Characters kept of a workload's name: the object's name has its kind before it."""


class MirrorKind(StrEnum):
    """The kinds of the mirror's objects."""

    SLICE = "TPUSlice"
    WORKLOAD = "TPUWorkload"


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceShown:
    """What a TPUSlice shows. What is not known, or is not so, is an empty text."""

    owner: Owner
    """Of the claim that has it, or had it last."""
    job: str
    claimed: bool
    """Whether a claim has it."""
    phase: Phase
    reason: Reason
    message: str
    since: datetime
    created_at: datetime
    hosts: str
    """How many are usable, and how many there should be, as in `3/4`."""
    in_use: bool
    """Whether somebody is on its hosts."""
    chips: int
    """Of its pool, from the decision to create it on."""
    accelerator: str
    topology: str
    zone: str
    capacity: str
    place: str = ""
    """Of its ladder, and which rung that is."""
    pool: str
    held: str
    """Who holds it since when."""
    retry_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadShown:
    """What a TPUWorkload shows: the last report on it."""

    owner: Owner
    state: WorkloadState
    report: Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirrored:
    """An object of the mirror, as it is to be: one of both, or none."""

    kind: MirrorKind
    namespace: str
    name: str
    uid: str
    """Of the workload: a later one of its name has another."""
    digest: int
    """Of what is shown; 0: nothing is, and there is no such object."""
    slice: SliceShown | None = None
    workload: WorkloadShown | None = None
    price: str = ""
    """In US dollars an hour, or why there is none. It is no part of the digest: that of the settings may change."""

    @property
    def key(self) -> str:
        return key_of(self.kind, self.namespace, self.name)


def key_of(kind: str, namespace: str, name: str) -> str:
    """Return by what an object of the mirror is known."""
    return f"{kind}/{namespace}/{name}"


def mirrored(record: SliceRecord | WorkloadRecord) -> Mirrored:
    """Return the object that shows a record, or that there is none."""
    owner, is_slice = record.owner, isinstance(record, SliceRecord)
    shown = slice_shown(record) if isinstance(record, SliceRecord) else None
    told = workload_shown(record) if isinstance(record, WorkloadRecord) else None
    seen = shown or told
    return Mirrored(
        kind=MirrorKind.SLICE if is_slice else MirrorKind.WORKLOAD,
        namespace=owner.namespace,
        name=record.id if isinstance(record, SliceRecord) else workload_name(owner),
        uid=owner.uid,
        digest=0 if seen is None else digest(f"{owner.full_name} {seen!r}") or 1,
        slice=shown,
        workload=told,
    )


def mirror_digest(record: SliceRecord | WorkloadRecord) -> int:
    """Return the digest of what is shown of a record; 0: nothing is."""
    return mirrored(record).digest


def workload_name(owner: Owner) -> str:
    """Return the name of a workload's object: that of a JobSet is not that of a Job of its name."""
    return f"{owner.kind.lower()}-{owner.name[:MOST_OF_A_NAME].rstrip('-.')}"


def workload_shown(record: WorkloadRecord) -> WorkloadShown | None:
    """Return what is shown of a workload; None: nothing is."""
    if record.state.ended or record.report is None:
        return None
    report = record.report
    return WorkloadShown(
        owner=record.owner, state=record.state, report=replace(report, waits=report.waits[:MOST_WAITS], pinning=None)
    )


def slice_shown(record: SliceRecord) -> SliceShown | None:
    """Return what is shown of a slice; None: nothing is."""
    if record.phase is Phase.GONE:
        return None
    spec, current = record.made_as, record.current
    capacity = spec.capacity if spec else None
    return SliceShown(
        owner=record.owner,
        job=record.job.job_name,
        claimed=not record.unclaimed,
        phase=record.phase,
        reason=record.reason,
        message=record.message,
        since=record.since,
        created_at=record.created_at,
        hosts=f"{current.hosts.usable}/{spec.hosts if spec else '?'}",
        in_use=bool(current.hosts.occupants),
        chips=record.chips_bought,
        accelerator=spec.accelerator if spec else "",
        topology=str(spec.topology) if spec else "",
        zone=spec.zone if spec else "",
        capacity=(capacity.reservation or capacity.kind.lower().replace("_", "-")) if capacity else "",
        place=spec.standing if spec else "",
        pool=_pool(record),
        held=record.held if record.hold else "",
        retry_at=record.claim.retry_at,
    )


def _pool(record: SliceRecord) -> str:
    """Return the name of what holds its hosts; empty: nothing was requested yet."""
    return "" if record.current.create_requested_at is None else record.pool_of(min(record.attempt, LAST_ATTEMPT))

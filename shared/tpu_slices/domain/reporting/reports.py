"""The report of a JobSet: why it waits for slices, in structured form and as a message. Pure.

The same report is stored in `workloads/{cluster}.{uid}`, posted as one Event on the JobSet (renewed while it applies),
logged, and printed by `slices explain`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise

from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Reason, ReportReason
from tpu_slices.domain.model.records import Phase, SliceRecord
from tpu_slices.domain.model.slices import SliceId
from tpu_slices.domain.model.workloads import Report, Wait, WorkloadRecord
from tpu_slices.domain.reporting.reason_texts import SERVED, reason_text

REFRESH_AFTER = timedelta(minutes=1)
"""How soon the next report is made while slices are being created, retried or deleted."""
SOON = timedelta(seconds=10)
RENEW = timedelta(minutes=10)
"""How often an unchanged report is announced again: Kubernetes deletes an Event after an hour."""
MOST_WAITS = 20
MOST_NAMED = 10
_NAMED_IN_MESSAGE = 3
_LONGEST, _LONG = 500, 150  # characters of the first wait's text in the message, and of each of the others

_WORST_FIRST = (
    Phase.BLOCKED,
    Phase.REFUSED,
    Phase.WAITING,
    Phase.QUEUED,
    Phase.PROVISIONING,
    Phase.RELEASING,
    Phase.GONE,
    Phase.READY,
)
_BLOCKED = {Phase.BLOCKED, Phase.REFUSED}
_BY_OPERATOR = {Reason.HELD, Reason.PAUSED}
_KEPT_BY_A_PAUSE = {Phase.QUEUED, Phase.WAITING, Phase.BLOCKED}
_UNSERVED = {ReportReason.PROVISIONING, ReportReason.WAITING, ReportReason.BLOCKED}
_PROVISIONING = {
    Reason.REQUESTED,
    Reason.OPERATION_LIMIT,
    Reason.CREATION_STARTED,
    Reason.CREATING,
    Reason.HOSTS_JOINING,
}
"""The reasons that every slice passes through on its way to READY."""
_ENDED: Mapping[WorkloadState, str] = {
    WorkloadState.COMPLETED: "The JobSet completed",
    WorkloadState.FAILED: "The JobSet failed",
    WorkloadState.DELETED: "The JobSet was deleted",
    WorkloadState.MISSING: "The JobSet no longer exists",
}


@dataclass(frozen=True, slots=True)
class QueueState:
    """The state of the cluster that a report depends on: the queue for creations, as far as it is read, and a pause."""

    places: Mapping[SliceId, int] = field(default_factory=dict)
    running: int = 0
    """The number of creations that run."""
    paused: str | None = None

    def place(self, group: Iterable[SliceRecord]) -> str:
        """Return the position of the first of a group in the queue, as the end of a message."""
        numbers = [self.places[record.id] for record in group if record.id in self.places]
        if not numbers:
            return f" (queue position above {len(self.places)})" if self.places else ""
        return f" (queue position {min(numbers)}, {self.running} running)"


def report(jobset: WorkloadRecord, slices: Iterable[SliceRecord], queue: QueueState, now: datetime) -> Report:
    """Return the report of a JobSet on its slices.

    | JobSet    | slices                                         | reason        |
    |-----------|------------------------------------------------|---------------|
    | active    | none in demand: its templates cannot be parsed | BLOCKED       |
    | active    | none in demand                                 | NOT_REQUESTED |
    | active    | all usable                                     | READY         |
    | active    | one blocked, held, paused, or refused for good | BLOCKED       |
    | active    | all others queued, being created, or joining   | PROVISIONING  |
    | active    | one waits for anything else                    | WAITING       |
    | suspended | some not GONE                                  | RELEASING     |
    | suspended | all GONE                                       | NOT_REQUESTED |
    | ended     | some not GONE                                  | RELEASING     |
    | ended     | all GONE                                       | RELEASED      |
    """
    active = jobset.state is WorkloadState.ACTIVE
    records = sorted(slices, key=lambda record: (record.replicated_job, record.job_index))
    if active:
        records = [record for record in records if record.reason is not Reason.DEMAND_STALE]
    groups = _groups([record for record in records if _is_waited_for(record, active=active)], queue, now)
    found = _Found(
        reason=_reason(jobset, records, groups) if active else _idle(jobset, groups),
        requested=len(records),
        ready=sum(record.phase is Phase.READY for record in records) if active else 0,
        waits=groups,
    )
    return Report(
        reason=found.reason,
        message=_message(jobset, found, now),
        requested=found.requested,
        ready=found.ready,
        waits=groups[:MOST_WAITS],
        since=_since(jobset, found, now),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    reason: ReportReason
    requested: int
    ready: int
    waits: tuple[Wait, ...]
    """All of them, also those that the report leaves out."""


def _is_waited_for(record: SliceRecord, *, active: bool) -> bool:
    return record.reason not in SERVED if active else record.phase is not Phase.GONE


def next_report(made: Report, now: datetime) -> datetime | None:
    """Return when the next report is made if nothing changes before, or None if then none is needed.

    | reason                           | next report                |
    |----------------------------------|----------------------------|
    | READY, NOT_REQUESTED, RELEASED   | none                       |
    | PROVISIONING, WAITING, RELEASING | after a minute             |
    | BLOCKED                          | when it is announced again |
    """
    match made.reason:
        case ReportReason.READY | ReportReason.NOT_REQUESTED | ReportReason.RELEASED:
            return None
        case ReportReason.BLOCKED:
            return now + RENEW
        case ReportReason.PROVISIONING | ReportReason.WAITING | ReportReason.RELEASING:
            return now + REFRESH_AFTER


def is_news(made: Report, jobset: WorkloadRecord, now: datetime) -> bool:
    """Return whether to announce a report: a new message at once, an unchanged one every 10 minutes while slices wait.

    Nothing is announced for an active JobSet without demand and without an earlier announcement: it may run on other
    hosts.
    """
    quiet = jobset.announced_at is None and made.reason is ReportReason.NOT_REQUESTED
    if quiet and jobset.state is not WorkloadState.SUSPENDED:
        return False
    if jobset.announced_at is None:
        return made.requested > 0 or made.reason in {ReportReason.NOT_REQUESTED, ReportReason.BLOCKED}
    if jobset.report is None or made.message != jobset.report.message:
        return True
    return next_report(made, now) is not None and now - jobset.announced_at >= RENEW


def called_for(jobset: WorkloadRecord, now: datetime) -> WorkloadRecord | None:
    """Return the JobSet with a report due now, after a transition of a slice, or None if one is due soon anyway.

    Of many transitions at the same time, only the first writes the JobSet's record.
    """
    if jobset.next_report_at is not None and jobset.next_report_at <= now + SOON:
        return None
    return replace(jobset, next_report_at=now)


def _reason(jobset: WorkloadRecord, records: Sequence[SliceRecord], waits: Sequence[Wait]) -> ReportReason:
    if not records:
        return ReportReason.BLOCKED if jobset.template_error else ReportReason.NOT_REQUESTED
    if not waits:
        return ReportReason.READY
    if any(wait.reason in _BY_OPERATOR or (wait.phase in _BLOCKED and not _is_retried(wait)) for wait in waits):
        return ReportReason.BLOCKED
    return ReportReason.PROVISIONING if all(wait.reason in _PROVISIONING for wait in waits) else ReportReason.WAITING


def _is_retried(wait: Wait) -> bool:
    return wait.reason is Reason.CHIP_LIMIT_REACHED


def _idle(jobset: WorkloadRecord, waits: Sequence[Wait]) -> ReportReason:
    if waits:
        return ReportReason.RELEASING
    return ReportReason.NOT_REQUESTED if jobset.state is WorkloadState.SUSPENDED else ReportReason.RELEASED


def _since(jobset: WorkloadRecord, found: _Found, now: datetime) -> datetime:
    """Return since when the reason applies; PROVISIONING, WAITING and BLOCKED in succession count as one."""
    last = jobset.report
    if last is not None and (found.reason is last.reason or {found.reason, last.reason} <= _UNSERVED):
        return last.since
    if jobset.state is not WorkloadState.ACTIVE:
        return jobset.state_since
    return min((wait.since for wait in found.waits), default=now)


def _message(jobset: WorkloadRecord, found: _Found, now: datetime) -> str:
    if jobset.state is WorkloadState.ACTIVE:
        if not found.requested and jobset.template_error:
            return f"No slices can be created: {jobset.template_error}. Change the JobSet and create it again."
        if not found.requested:
            return "The relay reports no leader pod of the JobSet that waits for a slice."
        remedy = f" {found.waits[0].remedy}" if found.waits and found.waits[0].remedy else ""
        ready = f"{found.ready} of {found.requested} slices ready"
        return "; ".join([ready, *_wait_texts(found.waits, now)]) + f".{remedy}"
    left = sum(wait.count for wait in found.waits)
    releasing = [f"{left} of {found.requested} slices are being released"] if left else []
    if jobset.state is not WorkloadState.SUSPENDED:
        return "; ".join([_ENDED[jobset.state], *(releasing or ["no slices are left"])]) + "."
    queue = f' by Kueue in queue "{jobset.queue}" (see `kubectl describe workloads -n {jobset.owner.namespace}`)'
    queue = queue if jobset.queue else ""
    return "; ".join([f"The JobSet is suspended{queue}", *releasing, "slices are created when it is resumed"]) + "."


def _wait_texts(waits: Sequence[Wait], now: datetime) -> Iterator[str]:
    for wait, most in zip(waits, (_LONGEST, _LONG, _LONG), strict=False):
        next_attempt = f", next attempt at {wait.retry_at:%H:%M:%S} UTC" if wait.retry_at else ""
        yield f"{_names(wait)} since {_clock(wait.since, now)}: {shortened(wait.message, most)}{next_attempt}"
    if others := sum(wait.count for wait in waits[_NAMED_IN_MESSAGE:]):
        yield f"{others} more wait for other reasons"


def _waiting_since(record: SliceRecord) -> datetime:
    """Return since when a slice has not been usable, as far back as its history goes."""
    if record.phase is Phase.READY:  # but its leader pod is not scheduled on it
        return record.transitions[-1].at if record.transitions else record.since
    whole = record.transition_count <= len(record.transitions) or not record.transitions
    since = record.created_at if whole else record.transitions[0].at
    for before, after in pairwise(record.transitions):
        if before.phase in {Phase.READY, Phase.GONE} and after.phase is not before.phase:
            since = after.at
    return since


def _clock(at: datetime, now: datetime) -> str:
    return f"{at:%H:%M} UTC" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M} UTC"


def _names(wait: Wait) -> str:
    """Return the names of the first Jobs and the number of the others."""
    named = wait.jobs[:_NAMED_IN_MESSAGE]
    more = wait.count - len(named)
    return " and ".join([", ".join(named), *([f"{more} more"] if more else [])])


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _groups(records: Iterable[SliceRecord], queue: QueueState, now: datetime) -> tuple[Wait, ...]:
    """Return the waits, most severe first; slices on their way to READY come last."""
    groups: dict[tuple[Phase, Reason, str], list[SliceRecord]] = {}
    for record in records:
        reason = _why(record, queue)
        groups.setdefault((record.phase, reason, reason_text(record, reason, queue.paused).message), []).append(record)
    waits = [_wait(reason, group, queue, now) for (_, reason, _), group in groups.items()]
    return tuple(sorted(waits, key=lambda wait: (wait.reason in _PROVISIONING, _WORST_FIRST.index(wait.phase))))


def _why(record: SliceRecord, queue: QueueState) -> Reason:
    """Return the reason for which a slice waits now: a hold or a pause comes before the reason on record."""
    if record.hold:
        return Reason.HELD
    if queue.paused is not None and record.phase in _KEPT_BY_A_PAUSE:
        return Reason.PAUSED
    return record.reason


def _wait(reason: Reason, group: Sequence[SliceRecord], queue: QueueState, now: datetime) -> Wait:
    first = group[0]
    text = reason_text(first, reason, queue.paused)
    place = queue.place(group) if reason is Reason.OPERATION_LIMIT else ""
    attempts = [record.retry_at for record in group if record.retry_at is not None and record.retry_at > now]
    return Wait(
        phase=first.phase,
        reason=reason,
        jobs=tuple(record.job.job_name for record in group[:MOST_NAMED]),
        count=len(group),
        message=f"{text.message}{place}",
        since=min(_waiting_since(record) for record in group),
        retry_at=None if reason in _BY_OPERATOR else min(attempts, default=None),
        remedy=text.remedy,
    )

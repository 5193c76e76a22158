"""Why a JobSet waits: one answer, for programs and for people, the same wherever it is read. Pure.

It is kept in `workloads/{cluster}.{uid}`, posted as one Event on the JobSet that is renewed while it lasts, logged, and
printed by `slices explain`.
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
"""How soon a report is made anew while slices are on their way or tried again."""
SOON = timedelta(seconds=10)
RENEW = timedelta(minutes=10)
"""How often what still holds is said again: Kubernetes forgets an Event after an hour."""
MOST_WAITS = 20
MOST_NAMED = 10
_NAMED_IN_MESSAGE = 3
_LONGEST, _LONG = 500, 150  # characters of what the first group waits for, and each of the others, in the sentence

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
_STUCK = {Phase.BLOCKED, Phase.REFUSED}
_BY_A_PERSON = {Reason.HELD, Reason.PAUSED}
_KEPT_BY_A_PAUSE = {Phase.QUEUED, Phase.WAITING, Phase.BLOCKED}
_UNSERVED = {ReportReason.COMING, ReportReason.WAITING, ReportReason.STUCK}
_COMING = {
    Reason.WANTED,
    Reason.OPERATION_LIMIT,
    Reason.CREATION_STARTED,
    Reason.CREATING,
    Reason.HOSTS_JOINING,
}
"""What every slice goes through that comes at all."""
_OVER: Mapping[WorkloadState, str] = {
    WorkloadState.COMPLETED: "It completed",
    WorkloadState.FAILED: "It failed",
    WorkloadState.DELETED: "It was deleted",
    WorkloadState.MISSING: "It is gone",
}


@dataclass(frozen=True, slots=True)
class QueueState:
    """What of the cluster a report goes by: who is in line for a creation, as far as known, and a pause."""

    places: Mapping[SliceId, int] = field(default_factory=dict)
    running: int = 0
    """How many creations run."""
    paused: str | None = None

    def place(self, group: Iterable[SliceRecord]) -> str:
        """Say where the first of a group is in line."""
        numbers = [self.places[record.id] for record in group if record.id in self.places]
        if not numbers:
            return f" after {len(self.places)} others" if self.places else ""
        return f" as number {min(numbers)}, while {self.running} run"


def report(jobset: WorkloadRecord, slices: Iterable[SliceRecord], queue: QueueState, now: datetime) -> Report:
    """Say where a JobSet stands with its slices.

    | JobSet    | slices                                          | outlook    |
    |-----------|-------------------------------------------------|------------|
    | active    | its templates cannot be read                    | STUCK      |
    | active    | none asked for any more                         | NOT_WANTED |
    | active    | all serve                                       | READY      |
    | active    | one refused or blocked                          | STUCK      |
    | active    | all others queued, ordered, or joining          | COMING     |
    | active    | something else is in the way                    | WAITING    |
    | suspended | some not yet gone                               | RETURNING  |
    | suspended | none left                                       | NOT_WANTED |
    | over      | some not yet gone                               | RETURNING  |
    | over      | none left                                       | RETURNED   |
    """
    active = jobset.state is WorkloadState.ACTIVE
    records = sorted(slices, key=lambda record: (record.job.replicated_job, record.job.job_index))
    if active:
        records = [record for record in records if record.reason is not Reason.DEMAND_STALE]
    groups = _groups([record for record in records if _is_waited_for(record, active=active)], queue, now)
    found = _Found(
        reason=_reason(jobset, records, groups) if active else _idle(jobset, groups),
        wanted=len(records),
        ready=sum(record.phase is Phase.READY for record in records) if active else 0,
        waits=groups,
    )
    return Report(
        reason=found.reason,
        message=_message(jobset, found, now),
        wanted=found.wanted,
        ready=found.ready,
        waits=groups[:MOST_WAITS],
        since=_since(jobset, found, now),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    reason: ReportReason
    wanted: int
    ready: int
    waits: tuple[Wait, ...]
    """All of them."""


def _is_waited_for(record: SliceRecord, *, active: bool) -> bool:
    return record.reason not in SERVED if active else record.phase is not Phase.GONE


def next_report(made: Report, now: datetime) -> datetime | None:
    """Say when a report is due again, unless something happens before; None: not by itself.

    | outlook                     | again after                 |
    |-----------------------------|-----------------------------|
    | READY, NOT_WANTED, RETURNED | never                       |
    | COMING, WAITING, RETURNING  | a minute                    |
    | STUCK                       | when it is to be said again |
    """
    match made.reason:
        case ReportReason.READY | ReportReason.NOT_WANTED | ReportReason.RETURNED:
            return None
        case ReportReason.STUCK:
            return now + RENEW
        case ReportReason.COMING | ReportReason.WAITING | ReportReason.RETURNING:
            return now + REFRESH_AFTER


def is_news(made: Report, jobset: WorkloadRecord, now: datetime) -> bool:
    """Say whether the cluster is to be told: what is new at once, what still holds every now and then.

    Where nothing was ever asked of us there is nothing to tell: the JobSet may run well on hosts of others.
    """
    quiet = jobset.announced_at is None and made.reason is ReportReason.NOT_WANTED
    if quiet and jobset.state is not WorkloadState.SUSPENDED:
        return False
    if jobset.announced_at is None:
        return made.wanted > 0 or made.reason in {ReportReason.NOT_WANTED, ReportReason.STUCK}
    if jobset.report is None or made.message != jobset.report.message:
        return True
    return next_report(made, now) is not None and now - jobset.announced_at >= RENEW


def called_for(jobset: WorkloadRecord, now: datetime) -> WorkloadRecord | None:
    """Give the JobSet with a report due, because a slice of it turned; None: one is due soon anyway.

    Where many slices turn at once, the first writes it down for all.
    """
    if jobset.next_report_at is not None and jobset.next_report_at <= now + SOON:
        return None
    return replace(jobset, next_report_at=now)


def _reason(jobset: WorkloadRecord, records: Sequence[SliceRecord], waits: Sequence[Wait]) -> ReportReason:
    if not records:
        return ReportReason.STUCK if jobset.template_error else ReportReason.NOT_WANTED
    if not waits:
        return ReportReason.READY
    if any(wait.reason in _BY_A_PERSON or (wait.phase in _STUCK and not _is_retried(wait)) for wait in waits):
        return ReportReason.STUCK
    return ReportReason.COMING if all(wait.reason in _COMING for wait in waits) else ReportReason.WAITING


def _is_retried(wait: Wait) -> bool:
    return wait.reason is Reason.NO_CHIPS_LEFT


def _idle(jobset: WorkloadRecord, waits: Sequence[Wait]) -> ReportReason:
    if waits:
        return ReportReason.RETURNING
    return ReportReason.NOT_WANTED if jobset.state is WorkloadState.SUSPENDED else ReportReason.RETURNED


def _since(jobset: WorkloadRecord, found: _Found, now: datetime) -> datetime:
    """Say since when it has been so; being on the way and in the way in turns is all one wait."""
    last = jobset.report
    if last is not None and (found.reason is last.reason or {found.reason, last.reason} <= _UNSERVED):
        return last.since
    if jobset.state is not WorkloadState.ACTIVE:
        return jobset.state_since
    return min((wait.since for wait in found.waits), default=now)


def _message(jobset: WorkloadRecord, found: _Found, now: datetime) -> str:
    if jobset.state is WorkloadState.ACTIVE:
        if not found.wanted and jobset.template_error:
            return f"No slice can be made for it: {jobset.template_error}. Change the JobSet and create it again."
        if not found.wanted:
            return "As far as the relay says, no leader pod of it waits for hosts: nothing is asked of the provisioner."
        remedy = f" {found.waits[0].remedy}" if found.waits and found.waits[0].remedy else ""
        return (
            "; ".join([f"{found.ready} of {found.wanted} slices ready", *_wait_texts(found.waits, now)]) + f".{remedy}"
        )
    left = sum(wait.count for wait in found.waits)
    returning = [f"{left} of {found.wanted} slices are being given back"] if left else []
    if jobset.state is not WorkloadState.SUSPENDED:
        return "; ".join([_OVER[jobset.state], *(returning or ["nothing of it is left"])]) + "."
    queue = f' by Kueue, in the queue "{jobset.queue}": see `kubectl describe workloads -n {jobset.owner.namespace}`'
    queue = queue if jobset.queue else ""
    return "; ".join([f"It is suspended{queue}", *returning, "slices are bought once it is resumed"]) + "."


def _wait_texts(waits: Sequence[Wait], now: datetime) -> Iterator[str]:
    for wait, most in zip(waits, (_LONGEST, _LONG, _LONG), strict=False):
        next_try = f", next try {wait.until:%H:%M:%S} UTC" if wait.until else ""
        yield f"{_names(wait)} since {_clock(wait.since, now)}: {shortened(wait.message, most)}{next_try}"
    if others := sum(wait.count for wait in waits[_NAMED_IN_MESSAGE:]):
        yield f"{others} more wait for other things"


def _waiting_since(record: SliceRecord) -> datetime:
    """Say since when a slice has not served, as far back as its history goes."""
    if record.phase is Phase.READY:  # and yet of no use
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
    """Name the Jobs, as far as they fit in a sentence."""
    named = wait.jobs[:_NAMED_IN_MESSAGE]
    more = wait.count - len(named)
    return " and ".join([", ".join(named), *([f"{more} more"] if more else [])])


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _groups(records: Iterable[SliceRecord], queue: QueueState, now: datetime) -> tuple[Wait, ...]:
    """Put together what waits for the same, the worst first; what comes by itself is the least."""
    groups: dict[tuple[Phase, Reason, str], list[SliceRecord]] = {}
    for record in records:
        reason = _why(record, queue)
        groups.setdefault((record.phase, reason, reason_text(record, reason, queue.paused).message), []).append(record)
    waits = [_wait(reason, group, queue, now) for (_, reason, _), group in groups.items()]
    return tuple(sorted(waits, key=lambda wait: (wait.reason in _COMING, _WORST_FIRST.index(wait.phase))))


def _why(record: SliceRecord, queue: QueueState) -> Reason:
    """Say what keeps a slice now: a person's hold, or a pause, before all that was found out earlier."""
    if record.hold:
        return Reason.HELD
    if queue.paused is not None and record.phase in _KEPT_BY_A_PAUSE:
        return Reason.PAUSED
    return record.reason


def _wait(reason: Reason, group: Sequence[SliceRecord], queue: QueueState, now: datetime) -> Wait:
    first = group[0]
    words = reason_text(first, reason, queue.paused)
    place = queue.place(group) if reason is Reason.OPERATION_LIMIT else ""
    tries = [record.retry_at for record in group if record.retry_at is not None and record.retry_at > now]
    return Wait(
        phase=first.phase,
        reason=reason,
        jobs=tuple(record.job.job_name for record in group[:MOST_NAMED]),
        count=len(group),
        message=f"{words.message}{place}",
        since=min(_waiting_since(record) for record in group),
        until=None if reason in _BY_A_PERSON else min(tries, default=None),
        remedy=words.remedy,
    )

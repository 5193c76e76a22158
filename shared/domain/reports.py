"""Why a JobSet waits: one answer, for programs and for people, the same wherever it is read. Pure.

It is kept in `jobsets/{cluster}.{uid}`, posted as one Event on the JobSet that is renewed while it lasts, logged, and
printed by `slices explain`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise

from shared.domain.decisions import Reason
from shared.domain.facts import JobSetState
from shared.domain.jobsets import JobSetRecord, Outlook, Report, Wait
from shared.domain.prose import SERVED, prose
from shared.domain.records import Phase, SliceRecord
from shared.domain.slices import SliceId

AGAIN = timedelta(minutes=1)
"""How soon a report is made anew while slices are on their way or tried again."""
SOON = timedelta(seconds=10)
RENEW = timedelta(minutes=10)
"""How often what still holds is said again: Kubernetes forgets an Event after an hour."""
MOST_WAITS = 20
MOST_NAMED = 10
_IN_A_SENTENCE = 3
_LONGEST = 200  # characters of what one group waits for, in the sentence

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
_UNSERVED = {Outlook.COMING, Outlook.WAITING, Outlook.STUCK}
_COMING = {
    Reason.WANTED,
    Reason.OPERATION_LIMIT,
    Reason.CREATION_STARTED,
    Reason.CREATING,
    Reason.HOSTS_JOINING,
}
"""What every slice goes through that comes at all."""
_OVER: Mapping[JobSetState, str] = {
    JobSetState.COMPLETED: "It completed",
    JobSetState.FAILED: "It failed",
    JobSetState.DELETED: "It was deleted",
    JobSetState.MISSING: "It is gone",
}


@dataclass(frozen=True, slots=True)
class Line:
    """Who waits for the governor, in order, as far as it is known, and how many creations run."""

    places: Mapping[SliceId, int] = field(default_factory=dict)
    running: int = 0

    def place(self, slice_: SliceId) -> str:
        number = self.places.get(slice_)
        if number is None:
            return f", after {len(self.places)} others" if self.places else ""
        return f", number {number}, while {self.running} run"


def report(jobset: JobSetRecord, slices: Iterable[SliceRecord], line: Line, now: datetime) -> Report:
    """Say where a JobSet stands with its slices.

    | JobSet    | slices                                          | outlook    |
    |-----------|-------------------------------------------------|------------|
    | active    | none asked for                                  | NOT_WANTED |
    | active    | all serve                                       | READY      |
    | active    | one refused or blocked                          | STUCK      |
    | active    | all others queued, ordered, or joining          | COMING     |
    | active    | something else is in the way                    | WAITING    |
    | suspended | some not yet gone                               | RETURNING  |
    | suspended | none left                                       | NOT_WANTED |
    | over      | some not yet gone                               | RETURNING  |
    | over      | none left                                       | RETURNED   |
    """
    records = sorted(slices, key=lambda record: (record.job.replicated_job, record.job.index))
    active = jobset.state is JobSetState.ACTIVE
    ready = sum(record.phase is Phase.READY for record in records) if active else 0
    waiting = [
        record for record in records if (record.reason not in SERVED if active else record.phase is not Phase.GONE)
    ]
    waits = _waits(waiting, line)
    outlook = _outlook(records, waits) if active else _idle(jobset, waits)
    return Report(
        outlook=outlook,
        sentence=_sentence(jobset, (outlook, len(records), ready, waits), now),
        wanted=len(records),
        ready=ready,
        waits=waits,
        since=_since(outlook, jobset.report, waits, now),
    )


def next_report(made: Report, now: datetime) -> datetime | None:
    """Say when a report is due again, unless something happens before; None: not by itself.

    | outlook                     | again after                 |
    |-----------------------------|-----------------------------|
    | READY, NOT_WANTED, RETURNED | never                       |
    | COMING, WAITING, RETURNING  | a minute                    |
    | STUCK                       | when it is to be said again |
    """
    match made.outlook:
        case Outlook.READY | Outlook.NOT_WANTED | Outlook.RETURNED:
            return None
        case Outlook.STUCK:
            return now + RENEW
        case Outlook.COMING | Outlook.WAITING | Outlook.RETURNING:
            return now + AGAIN


def is_news(made: Report, jobset: JobSetRecord, now: datetime) -> bool:
    """Say whether the cluster is to be told: what is new at once, what still holds every now and then.

    Where nothing was ever asked of us there is nothing to tell: the JobSet may run well on hosts of others.
    """
    if not made.wanted and jobset.state is not JobSetState.SUSPENDED:
        return False
    if jobset.report is None or jobset.reported_at is None or made.sentence != jobset.report.sentence:
        return True
    return next_report(made, now) is not None and now - jobset.reported_at >= RENEW


def called_for(jobset: JobSetRecord, now: datetime) -> JobSetRecord | None:
    """Give the JobSet with a report due, because a slice of it turned; None: one is due soon anyway.

    Where many slices turn at once, the first writes it down for all.
    """
    if jobset.report_due_at is not None and jobset.report_due_at <= now + SOON:
        return None
    return replace(jobset, report_due_at=now)


def _outlook(records: Sequence[SliceRecord], waits: Sequence[Wait]) -> Outlook:
    if not records:
        return Outlook.NOT_WANTED
    if not waits:
        return Outlook.READY
    if any(wait.phase in _STUCK and wait.reason is not Reason.NO_CHIPS_LEFT for wait in waits):
        return Outlook.STUCK
    return Outlook.COMING if all(wait.reason in _COMING for wait in waits) else Outlook.WAITING


def _since(outlook: Outlook, last: Report | None, waits: Sequence[Wait], now: datetime) -> datetime:
    """Say since when it has been so; being on the way and in the way in turns is all one wait."""
    if last is not None and (outlook is last.outlook or {outlook, last.outlook} <= _UNSERVED):
        return last.since
    return min((wait.since for wait in waits), default=now)


def _idle(jobset: JobSetRecord, waits: Sequence[Wait]) -> Outlook:
    if waits:
        return Outlook.RETURNING
    return Outlook.NOT_WANTED if jobset.state is JobSetState.SUSPENDED else Outlook.RETURNED


def _sentence(jobset: JobSetRecord, found: tuple[Outlook, int, int, Sequence[Wait]], now: datetime) -> str:
    outlook, wanted, ready, waits = found
    if jobset.state is JobSetState.ACTIVE:
        if outlook is Outlook.NOT_WANTED:
            return "No leader pod of it waits for hosts: nothing is asked of the provisioner."
        remedy = f" {waits[0].remedy}" if waits and waits[0].remedy else ""
        return "; ".join([f"{ready} of {wanted} slices ready", *_told(waits, now)]) + f".{remedy}"
    left = sum(wait.count for wait in waits)
    returning = [f"{left} of {wanted} slices are being given back"] if left else []
    if jobset.state is not JobSetState.SUSPENDED:
        return "; ".join([_OVER[jobset.state], *(returning or ["nothing of it is left"])]) + "."
    queue = f' by Kueue, in the queue "{jobset.queue}": its Workload says why' if jobset.queue else ""
    return "; ".join([f"It is suspended{queue}", *returning, "slices are bought once it is resumed"]) + "."


def _waiting_since(record: SliceRecord) -> datetime:
    """Say since when a slice has not served, as far back as its history goes."""
    since = record.created_at if record.turns <= len(record.transitions) else record.transitions[0].at
    for before, after in pairwise(record.transitions):
        if before.phase in {Phase.READY, Phase.GONE} and after.phase is not before.phase:
            since = after.at
    return since


def _told(waits: Sequence[Wait], now: datetime) -> Iterator[str]:
    for wait in waits[:_IN_A_SENTENCE]:
        next_try = f", next try {_clock(wait.until, now)}" if wait.until else ""
        yield f"{_names(wait)} since {_clock(wait.since, now)}: {shortened(wait.says, _LONGEST)}{next_try}"
    if others := sum(wait.count for wait in waits[_IN_A_SENTENCE:]):
        yield f"{others} more wait for other things"


def _clock(at: datetime, now: datetime) -> str:
    return f"{at:%H:%M} UTC" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M} UTC"


def _names(wait: Wait) -> str:
    """Name the Jobs, as far as they fit in a sentence."""
    named = wait.jobs[:_IN_A_SENTENCE]
    more = wait.count - len(named)
    return " and ".join([", ".join(named), *([f"{more} more"] if more else [])])


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _waits(records: Iterable[SliceRecord], line: Line) -> tuple[Wait, ...]:
    """Put together what waits for the same."""
    groups: dict[tuple[Phase, Reason, str, str], list[SliceRecord]] = {}
    for record in records:
        words = prose(record, line.place(record.id))
        groups.setdefault((record.phase, record.reason, words.says, words.remedy), []).append(record)
    waits = [
        Wait(
            phase=phase,
            reason=reason,
            jobs=tuple(record.job.job_name for record in group[:MOST_NAMED]),
            count=len(group),
            says=says,
            since=min(_waiting_since(record) for record in group),
            until=min((record.retry_at for record in group if record.retry_at is not None), default=None),
            remedy=remedy,
        )
        for (phase, reason, says, remedy), group in groups.items()
    ]
    return tuple(sorted(waits, key=lambda wait: _WORST_FIRST.index(wait.phase))[:MOST_WAITS])

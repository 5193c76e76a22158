"""The report of a JobSet: why it waits for slices, in structured form and as a message. Pure.

The same report is stored in `workloads/{cluster}.{uid}`, posted as one Event on the JobSet (renewed while it applies),
logged, and printed by `slices explain`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tpu_slices.domain.model.facts import Pinning, WorkloadState
from tpu_slices.domain.model.reasons import SERVED, UNUSED, Phase, Reason, ReportReason
from tpu_slices.domain.model.texts import clock, shortened
from tpu_slices.domain.planning.costs import billed
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.spending import chips_held
from tpu_slices.domain.records.use import pods_running
from tpu_slices.domain.records.workloads import RELEASE_LASTS, Report, Wait, WorkloadRecord
from tpu_slices.domain.reporting.gangs import GATHERS, gangs_told, let_go_after, reason_of_gangs
from tpu_slices.domain.reporting.ladders import ladders_told
from tpu_slices.domain.reporting.reason_texts import PINNED_TEXTS, as_of, relay_silence, run_ends
from tpu_slices.domain.reporting.unread import (
    ALL_READ,
    CONFIRMED_WITHIN,
    NotRead,
    Slices,
    is_awaited,
    of_groups,
    of_leaders,
)
from tpu_slices.domain.reporting.waited import last_waited
from tpu_slices.domain.reporting.waits import (
    BY_OPERATOR,
    PROVISIONING,
    QueueState,
    unreadable_wait,
    waits_of,
)

SOON = timedelta(seconds=10)
RENEW = timedelta(minutes=10)
"""How often an unchanged report is announced again: Kubernetes deletes an Event after an hour."""
MOST_WAITS = 20
_NAMED_IN_MESSAGE = 3
_LONGEST, _LONG = 700, 150  # characters of the first wait's text in the message, and of each of the others

_BLOCKED = {Phase.BLOCKED, Phase.REFUSED}
_RELEASE = {Reason.READY, Reason.CLOSING_HOSTS, Reason.DELETION_QUEUED, Reason.DELETION_STARTED}
"""The reasons that every slice passes through when it is released."""
_UNSERVED = {ReportReason.PROVISIONING, ReportReason.WAITING, ReportReason.BLOCKED, *GATHERS}
_ENDED: Mapping[WorkloadState, str] = {
    WorkloadState.COMPLETED: "completed",
    WorkloadState.FAILED: "failed",
    WorkloadState.DELETED: "was deleted",
    WorkloadState.MISSING: "no longer exists",
}


def report(
    jobset: WorkloadRecord,
    slices: Iterable[SliceRecord],
    queue: QueueState,
    now: datetime,
    not_read: NotRead = ALL_READ,
) -> Report:
    """Return the report of a JobSet on its slices: those that were read, and what is known of the others.

    | JobSet    | slices                                         | reason        |
    |-----------|------------------------------------------------|---------------|
    | active    | none in demand: its templates cannot be parsed | BLOCKED       |
    | active    | none in demand                                 | NOT_REQUESTED |
    | active    | all usable                                     | READY;        |
    |           |                                                | see gangs.py  |
    | active    | one blocked, held, paused, unreadable, or      | BLOCKED       |
    |           | refused for good                               |               |
    | active    | all others stand, but their pods do not run    | NOT_RUNNING   |
    | active    | all others stand, and nobody uses them         | IDLE          |
    | active    | all others queued, being created, or joining   | PROVISIONING, |
    | active    | one waits for anything else, or the relay is   | WAITING;      |
    |           | silent                                         | of a gang see |
    |           |                                                | gangs.py      |
    | suspended | some not GONE                                  | RELEASING     |
    | suspended | all GONE                                       | NOT_REQUESTED |
    | ended     | some not GONE                                  | RELEASING     |
    | ended     | all GONE                                       | RELEASED      |
    """
    found = _found(jobset, Slices(tuple(slices), not_read), queue, now)
    return Report(
        reason=found.reason,
        message=_message(jobset, found, now) + queue.caveat(jobset),
        requested=found.requested,
        ready=found.ready,
        waits=found.waits[:MOST_WAITS],
        since=_since(jobset, found, now),
        pinning=found.pinning,
    )


def _found(jobset: WorkloadRecord, slices: Slices, queue: QueueState, now: datetime) -> _Found:
    active, unreadable = jobset.state is WorkloadState.ACTIVE, slices.not_read.unreadable
    silence = relay_silence(queue.silent_since, now) if active and queue.silent_since else ""
    records = sorted(slices.records, key=lambda record: (record.replicated_job, record.job_index))
    if active:
        records = [
            record
            for record in records
            if jobset.has(record.replicated_job, record.job_index) and _in_demand(record, jobset, queue, now)
        ]
    more = of_leaders(jobset, slices, queue, now) if active else slices.not_read.alike
    told = {(record.phase, record.reason) for record in records}
    more = of_groups(jobset, len(records), {why: it for why, it in more.items() if why in told})
    waiting = [record for record in records if _is_waited_for(record, active=active)]
    groups = waits_of(waiting, queue, now, more)
    if silence:
        groups = tuple(wait if _needs_somebody(wait) else replace(wait, remedy=silence) for wait in groups)
    if unreadable:
        groups = (unreadable_wait(unreadable, jobset.state_since), *groups)
    requested = len(records) + sum(more.values()) + len(unreadable)
    return _Found(
        reason=reason_of_gangs(jobset, _reason(jobset, requested, groups, silence))
        if active
        else _idle(jobset, groups),
        requested=requested if active else max(requested, len(jobset.demand)),
        ready=_ready(records, more) if active else 0,
        waits=groups,
        silence=silence,
        as_of=as_of(heard_at, now) if active and (heard_at := queue.silent_since or queue.heard_at) else "",
        run_ends=run_ends(records) if active else "",
        served_since=None if more else max((record.since for record in records), default=None),
        costs=_costs(records, queue) if active else "",
        surplus=_surplus(jobset, slices.records, queue, now) if active else "",
        pods=None if more else pods_running(records),
        together=_together(jobset, records, queue, now) if active and groups else "",
        waited="; ".join(filter(None, (let_go_after(jobset), last_waited(records)))) if active and not groups else "",
        pinning=queue.pinning if active and not jobset.owner.kind.declares else None,
        held=_held(record for record in records if active and record.hold and record.reason in SERVED),
        caveats=tuple(dict.fromkeys(record.spec.caveat for record in records if record.spec and record.spec.caveat)),
    )


def _together(jobset: WorkloadRecord, records: Sequence[SliceRecord], queue: QueueState, now: datetime) -> str:
    """Return what concerns several slices of an active workload: its gangs, and its ladder; or empty."""
    told = (gangs_told(jobset, records, queue.settings, now), ladders_told(jobset, records, now))
    return " ".join(filter(None, told))


def _ready(records: Iterable[SliceRecord], more: Mapping[tuple[Phase, Reason], int]) -> int:
    """Return how many slices serve, of those that were read, and of the others."""
    others = sum(count for (_, reason), count in more.items() if reason in SERVED)
    return others + sum(record.reason in SERVED for record in records)


def _surplus(jobset: WorkloadRecord, records: Sequence[SliceRecord], queue: QueueState, now: datetime) -> str:
    """Return which slices stand that an active workload does not need, as of groups that are scaled away; or empty."""
    left = [each for each in records if chips_held(each) and not jobset.has(each.replicated_job, each.job_index)]
    if not left:
        return ""
    names, stands = _first([each.job.job_name for each in left], len(left)), "stands" if len(left) == 1 else "stand"
    why = " and ".join(dict.fromkeys(wait.message for wait in waits_of(left, queue, now)))
    return f"{names} {stands} with {sum(map(chips_held, left))} chips that are not needed: {shortened(why, _LONG)}"


def _costs(records: Sequence[SliceRecord], queue: QueueState) -> str:
    """Return what is paid for the slices of an active workload while some stand, and are not used."""
    if not any(record.reason in UNUSED for record in records):
        return ""
    costs = billed(records, queue.settings)
    return f"Meanwhile {costs}." if costs else ""


_LET_GO = ", after its slices were let go since some of its pods did not run (`limits.not_running_after`)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    reason: ReportReason
    requested: int
    ready: int
    waits: tuple[Wait, ...]
    """All of them, also those that the report leaves out."""
    silence: str
    """The text about a silent relay, or empty."""
    as_of: str
    """From when what is told is, or empty: from now."""
    run_ends: str
    """What happens to ready slices of flex-start at the end of their time, or empty."""
    held: str
    """Which of those that nothing waits for are on hold, or empty."""
    pinning: Pinning | None
    """By what pods are pinned in its cluster."""
    caveats: tuple[str, ...]
    """What may go wrong although there are slices."""
    served_since: datetime | None
    """When the last of the slices came to the phase it is in; None: there are none, or not all were read."""
    costs: str
    """What is paid for slices while some of them are not used, or empty."""
    surplus: str
    """What stands beside what is needed, or empty."""
    pods: tuple[int, int] | None
    """How many pods run on the slices, and how many should; None: of some that is not known."""
    together: str
    """What its gangs wait for, and until when, and why its slices are asked for where they are, or empty."""
    waited: str
    """How long the last of them was waited for, and for what; empty: it was not, or others are."""


def _in_demand(record: SliceRecord, jobset: WorkloadRecord, queue: QueueState, now: datetime) -> bool:
    """Return whether a slice of an active JobSet is in demand, or was when the relay fell silent.

    Its Job may have found hosts that are nobody's slice, and needs none any more: a slice that is refused says so only
    here, since nothing looks at it until its request or the settings change.
    """
    if jobset.owner.kind.declares:
        return True
    if record.phase is Phase.REFUSED:
        awaited = is_awaited(record.last_claim, jobset, queue, now)
        return awaited or record.last_claim not in jobset.demand or queue.silent_since is not None
    if record.reason is not Reason.DEMAND_STALE:
        return True
    if queue.silent_since is None or record.claim.demand_confirmed_at is None:
        return False
    return queue.silent_since - record.claim.demand_confirmed_at <= CONFIRMED_WITHIN


def _is_waited_for(record: SliceRecord, *, active: bool) -> bool:
    """Return whether a slice is waited for: to serve or, of a workload that is not active, to be gone."""
    stands = record.current.create_requested_at is not None or record.phase is Phase.RELEASING
    return record.reason not in SERVED if active else stands and record.phase is not Phase.GONE


def next_report(made: Report, jobset: WorkloadRecord, now: datetime) -> datetime | None:
    """Return when the next report is made if nothing changes before, or None if then none is needed.

    | reason                           | next report                                                     |
    |----------------------------------|-----------------------------------------------------------------|
    | any, of one suspended lately     | once that has lasted: its slices without hosts are released     |
    | any, while slices wait for chips | when it is announced again                                      |
    | READY, GANG_STARTED,             | none                                                            |
    | NOT_REQUESTED, RELEASED          |                                                                 |
    | others                           | when it is announced again                                      |
    """
    lasts_at = jobset.suspension_lasts_at(now)
    if lasts_at is not None and jobset.demand:
        return lasts_at
    return now + RENEW if jobset.awaits_chips else _renewed(made, now)


def _renewed(made: Report, now: datetime) -> datetime | None:
    match made.reason:
        case ReportReason.READY | ReportReason.GANG_STARTED | ReportReason.NOT_REQUESTED | ReportReason.RELEASED:
            return None
        case _:
            return now + RENEW


def is_news(made: Report, jobset: WorkloadRecord, now: datetime) -> bool:
    """Return whether to announce a report: a new message at once, an unchanged one every 10 minutes while slices wait.

    Slices that became ready after the last announcement on record were not before: that may have been announced, too,
    by a process that did not come to record it.

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
    if made.reason.serves and made.since > jobset.announced_at:
        return True
    return _renewed(made, now) is not None and now - jobset.announced_at >= RENEW


def goes_without_saying(made: Report, jobset: WorkloadRecord, now: datetime) -> bool:
    """Return whether a report only says that slices are released since the JobSet ended, as it should be.

    That they are gone is told, or that it takes longer than RELEASE_LASTS.
    """
    as_it_should_be = made.reason is ReportReason.RELEASING and all(wait.reason in _RELEASE for wait in made.waits)
    return as_it_should_be and jobset.state.ended and now - jobset.state_since < RELEASE_LASTS


def called_for(jobset: WorkloadRecord, now: datetime) -> WorkloadRecord | None:
    """Return the JobSet with a report due now, after a transition of a slice, or None if one is due soon anyway.

    Of many transitions at the same time, only the first writes the JobSet's record.
    """
    if jobset.next_report_at is not None and jobset.next_report_at <= now + SOON:
        return None
    return replace(jobset, next_report_at=now)


def _reason(jobset: WorkloadRecord, requested: int, waits: Sequence[Wait], silence: str) -> ReportReason:
    if not requested:
        return ReportReason.BLOCKED if jobset.template_error else ReportReason.NOT_REQUESTED
    if not waits:
        return ReportReason.READY
    if any(_needs_somebody(wait) for wait in waits):
        return ReportReason.BLOCKED
    if all(wait.reason in UNUSED for wait in waits):
        idle = all(wait.reason is Reason.IDLE for wait in waits)
        return ReportReason.IDLE if idle else ReportReason.NOT_RUNNING
    on_their_way = all(wait.reason in PROVISIONING for wait in waits) and not silence
    return ReportReason.PROVISIONING if on_their_way else ReportReason.WAITING


def _needs_somebody(wait: Wait) -> bool:
    is_retried = wait.reason is Reason.CHIP_LIMIT_REACHED
    return wait.reason in BY_OPERATOR or (wait.phase in _BLOCKED and not is_retried)


def _idle(jobset: WorkloadRecord, waits: Sequence[Wait]) -> ReportReason:
    if waits:
        return ReportReason.RELEASING
    return ReportReason.NOT_REQUESTED if jobset.state is WorkloadState.SUSPENDED else ReportReason.RELEASED


def _since(jobset: WorkloadRecord, found: _Found, now: datetime) -> datetime:
    """Return since when the reason applies; PROVISIONING, WAITING and BLOCKED in succession count as one."""
    last = jobset.report
    if found.reason.serves and found.served_since is not None:
        return found.served_since
    if last is not None and (found.reason is last.reason or {found.reason, last.reason} <= _UNSERVED):
        return last.since
    if jobset.state is not WorkloadState.ACTIVE:
        return jobset.state_since
    return min((wait.since for wait in found.waits), default=now)


def _message(jobset: WorkloadRecord, found: _Found, now: datetime) -> str:
    kind = jobset.owner.kind
    if jobset.state is WorkloadState.ACTIVE:
        if not found.requested and jobset.template_error:
            return f"No slices can be created: {jobset.template_error}. Change the {kind} and create it again."
        if not found.requested and jobset.unserved:
            return f"No slices are made for the {kind}: {jobset.unserved}."
        if not found.requested and found.silence:
            return f"It is not known whether leader pods of the {kind} wait for slices. {found.silence}"
        if not found.requested:
            return f"The relay reports no leader pod of the {kind} that waits for a slice."
        first = (wait.remedy for wait in found.waits[:1])
        before = (found.together, found.costs)
        remedies = dict.fromkeys([*before, *first, found.held, found.run_ends, _unpinned(found), found.as_of])
        remedy = "".join(f" {text}" for text in remedies if text)
        pods = f", {found.pods[0]} of {found.pods[1]} pods run" if found.pods else ""
        ready = f"{found.ready} of {found.requested} slices ready{pods}{', as last reported' if found.as_of else ''}"
        caveat = f" Warning: {shortened(found.caveats[0], _LONGEST)}." if found.caveats else ""
        texts = [ready, *filter(None, [found.waited]), *_wait_texts(found.waits, now), *filter(None, [found.surplus])]
        return "; ".join(texts) + f".{remedy}{caveat}"
    left = sum(wait.count for wait in found.waits if wait.reason not in {Reason.HELD, Reason.WARM})
    releasing = [f"{left} of {found.requested} slices are being released"] if left else []
    held = [wait for wait in found.waits if wait.reason is Reason.HELD]
    releasing += [f"{_names(wait)} {'is' if wait.count == 1 else 'are'} not released: {wait.message}" for wait in held]
    warm = [wait for wait in found.waits if wait.reason is Reason.WARM]
    releasing += [f"{_names(wait)} {'is' if wait.count == 1 else 'are'} k{wait.message[1:]}" for wait in warm]
    if jobset.state is not WorkloadState.SUSPENDED:
        ended = f"The {kind} {_ENDED[jobset.state]}{_LET_GO if jobset.is_given_up else ''}"
        return "; ".join([ended, *(releasing or ["no slices are left"])]) + "."
    queue = f' by Kueue in queue "{jobset.queue}" (see `kubectl describe workloads -n {jobset.owner.namespace}`)'
    queue = queue if jobset.queue else ""
    return "; ".join([f"The {kind} is suspended{queue}", *releasing, "slices are created when it is resumed"]) + "."


def _unpinned(found: _Found) -> str:
    """Return that others may come to the slices that stand, or that no pod can be created; empty: neither is so."""
    told = found.pinning is Pinning.REFUSED or (found.pinning is Pinning.NOTHING and found.ready > 0)
    return PINNED_TEXTS[found.pinning] if found.pinning is not None and told else ""


def _wait_texts(waits: Sequence[Wait], now: datetime) -> Iterator[str]:
    for wait, most in zip(waits, (_LONGEST, _LONG, _LONG), strict=False):
        next_attempt = f", next attempt at {wait.retry_at:%H:%M:%S} UTC" if wait.retry_at else ""
        yield f"{_names(wait)} since {clock(wait.since, now)}: {shortened(wait.message, most)}{next_attempt}"
    if others := sum(wait.count for wait in waits[_NAMED_IN_MESSAGE:]):
        yield f"{others} more wait for other reasons"


def _held(records: Iterable[SliceRecord]) -> str:
    """Return which slices that serve are on hold."""
    told: dict[str, list[str]] = {}
    for record in records:
        told.setdefault(record.held, []).append(record.job.job_name)
    return " ".join(f"{_first(names, len(names))}: {held}, until `slices resume`." for held, names in told.items())


def _names(wait: Wait) -> str:
    return _first(wait.jobs, wait.count)


def _first(jobs: Sequence[str], count: int) -> str:
    """Return the names of the first Jobs and the number of the others."""
    named = jobs[:_NAMED_IN_MESSAGE]
    more = count - len(named)
    return " and ".join([", ".join(named), *([f"{more} more"] if more else [])])

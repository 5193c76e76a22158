"""Which targets are notified of what happened to a workload, each once of one thing. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.notifications import Notification, NotificationRule, Notified, Occasion, Rules, chosen
from tpu_slices.domain.model.reasons import Phase, Reason, ReportReason
from tpu_slices.domain.model.slices import OF_OTHERS
from tpu_slices.domain.model.texts import clock, shortened
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import Report, WorkloadRecord
from tpu_slices.domain.reporting.gangs import GATHERS

LASTS = timedelta(minutes=5)
"""How long a report has said that pods do not run, or that slices are idle, when that is told: restarts pass by."""
AGAIN = timedelta(minutes=30)
"""How long a target is not notified again of the same occasion of a workload; then it is, if it holds."""
LATE = timedelta(hours=1)
"""An end, or a loss of hosts, that is longer ago is not told any more."""
LONGEST = 1_500
"""Characters of the text."""

_UNSERVED = {ReportReason.PROVISIONING, ReportReason.WAITING, ReportReason.BLOCKED, *GATHERS}
_INTERRUPTED = {
    Reason.HOSTS_LOST,
    Reason.GKE_UPGRADES,
    Reason.GKE_REPAIRS,
    Reason.UNDER_MAINTENANCE,
    Reason.PREEMPTED,
    Reason.POOL_BROKEN,
}
_NAME = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?/[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?"
_WORKLOAD = re.compile(rf"(?<=used by ){_NAME}|(?<![\w./-]){_NAME}(?=(?:, [^\s,]+)* (?:runs|ran|is) )")
"""NAMESPACE/NAME, as messages name who is on hosts; neither a key, a path, an image, nor a number of a number."""


@dataclass(frozen=True, slots=True)
class Happening:
    """What happened to a workload, or lasts."""

    occasion: Occasion
    since: datetime
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Notifications:
    """What is to be told of a workload now, and when to look again."""

    notified: Mapping[str, Notified]
    """What its record has from then on: what is to be sent is not `sent` yet."""
    to_send: tuple[Notification, ...] = ()
    next_at: datetime | None = None
    """When the next one is made if nothing changes; None: none is."""

    def noted(self, workload: WorkloadRecord, now: datetime) -> WorkloadRecord:
        """Return the record with what is to be sent: it is due until that is noted as sent."""
        times = [at for at in (workload.next_report_at, self.next_at) if at is not None]
        next_at = now if self.to_send else min(times, default=None)
        return replace(workload, notified=self.notified, next_report_at=next_at)

    def sent(self, workload: WorkloadRecord, planned: datetime | None, noted_at: datetime) -> WorkloadRecord:
        """Return the record once they are sent, due as `planned` unless it was called for meanwhile."""
        keys = {_key(each.target, each.occasion) for each in self.to_send}
        notified = {key: replace(each, sent=True) if key in keys else each for key, each in workload.notified.items()}
        times = [at for at in (planned, self.next_at) if at is not None]
        next_at = min(times, default=None) if workload.next_report_at == noted_at else workload.next_report_at
        return replace(workload, notified=notified, next_report_at=next_at)


@dataclass(slots=True)
class _Making:
    """The notifications as they are gathered."""

    workload: WorkloadRecord
    now: datetime
    notified: dict[str, Notified]
    to_send: list[Notification] = field(default_factory=list)
    times: list[datetime] = field(default_factory=list)

    def consider(self, target: str, rule: NotificationRule, it: Happening) -> None:
        """Notify a target of what happened, unless it was, or it is too early.

        | of this occasion the target was notified              | then                                          |
        |-------------------------------------------------------|-----------------------------------------------|
        | for what began then, or later                         | no more, but what may not have been sent      |
        | less than AGAIN ago, and it is an interruption since  | no: it belongs to that one                    |
        | less than AGAIN ago                                   | AGAIN later, if it holds then                 |
        | for what began earlier, or never                      | once it has lasted as long as it must         |
        """
        key, now = _key(target, it.occasion), self.now
        known = self.notified.get(key)
        if known is not None and known.since >= it.since:
            if not known.sent:
                self.to_send.append(_notification(self.workload, target, it, known))
            return
        next_at = it.since + _lasts(rule, it.occasion)
        if known is not None and it.occasion is not Occasion.ENDED:
            if it.occasion is Occasion.INTERRUPTED and it.since < known.at + AGAIN:
                return
            next_at = max(next_at, known.at + AGAIN)
        if now < next_at:
            self.times.append(next_at)
            return
        self.notified[key] = Notified(since=it.since, at=now, sent=False)
        self.to_send.append(_notification(self.workload, target, it, self.notified[key]))


def notifications(
    workload: WorkloadRecord, made: Report, slices: Sequence[SliceRecord], settings: ClusterSettings, now: datetime
) -> Notifications:
    """Return whom to notify of a workload with this report on its slices."""
    of_namespace = settings.notifications.get(workload.owner.namespace, {})
    kept = {key: each for key, each in workload.notified.items() if key.partition("/")[0] in of_namespace}
    rules = chosen(of_namespace, workload.notify).rules
    making = _Making(replace(workload, report=made), now, kept)
    for it in _happenings(workload, made, slices, now) if rules else ():
        for target, rule in rules.items():
            if it.occasion in rule.when:
                making.consider(target, rule, it)
    return Notifications(making.notified, tuple(making.to_send), min(making.times, default=None))


def told_as(rules: Rules, annotation: str) -> tuple[str, ...]:
    """Return what is told of a workload with this annotation, and to whom, one line for each target."""
    lines = []
    for target, rule in chosen(rules, annotation).rules.items():
        after = _long(rule.waiting_after)
        when = [f"waits for more than {after}" if it is Occasion.WAITING else _WHEN[it] for it in rule.when]
        lines.append(f"{target} is notified when it {_listed(when)}")
    return tuple(lines)


_WHEN: Mapping[Occasion, str] = {
    Occasion.NOT_RUNNING: "has pods that do not run on its slices",
    Occasion.IDLE: "leaves a slice idle",
    Occasion.INTERRUPTED: "loses hosts",
    Occasion.ENDED: "has ended",
}


def _happenings(
    workload: WorkloadRecord, made: Report, slices: Sequence[SliceRecord], now: datetime
) -> Iterator[Happening]:
    """Yield what happened to a workload, or lasts.

    | workload  | and                                                     | happening    | since                      |
    |-----------|---------------------------------------------------------|--------------|----------------------------|
    | ended     | less than LATE ago                                      | ended        | it ended                   |
    | suspended | a queue of Kueue has it                                 | waiting      | it was suspended           |
    | active    | its slices are missing, on their way or not             | waiting      | they have been             |
    | active    | all stand, and some pods do not run, or nobody uses one | not-running, | it is reported             |
    |           |                                                         | idle         |                            |
    | active    | hosts of a slice that was READY went, less than LATE    | interrupted  | the last of these went     |
    |           | ago                                                     |              |                            |
    """
    owner = workload.owner
    who, kind = owner.full_name, owner.kind
    message = f"{_without_others(made.message, owner.namespace)} {_look(workload)}".strip()
    if workload.state.ended:
        if now - workload.state_since <= LATE:
            yield Happening(Occasion.ENDED, workload.state_since, f"{who} has ended", f"{who}: {message}")
        return
    waited = f"{who} ({kind}) has waited for {{}} for {{}}."
    if workload.state is WorkloadState.SUSPENDED:
        if workload.queue:
            for_ = waited.format(f'Kueue to admit it (queue "{workload.queue}")', _long(now - workload.state_since))
            yield Happening(Occasion.WAITING, workload.state_since, f"{who} waits in its queue", f"{for_} {message}")
        return
    lasted = _long(now - made.since)
    if made.reason in _UNSERVED:
        text = f"{waited.format('slices', lasted)} {message}"
        yield Happening(Occasion.WAITING, made.since, f"{who} waits for slices", text)
    if made.reason in {ReportReason.NOT_RUNNING, ReportReason.IDLE}:
        idle = made.reason is ReportReason.IDLE
        what = f"{who} {'leaves slices idle' if idle else 'does not run on its slices'}"
        text = f"{what} (since {clock(made.since, now)}, for {lasted}). {message}"
        yield Happening(Occasion.IDLE if idle else Occasion.NOT_RUNNING, made.since, what, text)
    yield from _interruption(workload, slices, now)


def _interruption(workload: WorkloadRecord, slices: Sequence[SliceRecord], now: datetime) -> Iterator[Happening]:
    """Yield the last time that hosts of a slice went which was READY; what its record says of it next is the same."""
    began: list[tuple[datetime, str]] = []
    for record in slices:
        for before, each in zip(record.transitions, record.transitions[1:], strict=False):
            if each.reason in _INTERRUPTED and before.phase is Phase.READY and now - each.at <= LATE:
                began.append(
                    (each.at, f"{record.job.job_name} at {clock(each.at, now)}: {each.reason}: {each.message}")
                )
    if not began:
        return
    since, last = max(began)
    who = workload.owner.full_name
    others = len({text for _, text in began}) - 1
    more = f" ({others} more within an hour)" if others else ""
    text = f"{who} ({workload.owner.kind}) lost hosts{more}; {_without_others(last, workload.owner.namespace)}"
    yield Happening(Occasion.INTERRUPTED, since, f"{who} is interrupted", f"{text} {_look(workload)}")


def _notification(workload: WorkloadRecord, target: str, it: Happening, noted: Notified) -> Notification:
    report = workload.report
    return Notification(
        id=f"{workload.cluster}.{workload.owner.uid}.{target}.{it.occasion}.{int(noted.since.timestamp())}",
        target=target,
        occasion=it.occasion,
        cluster=workload.cluster,
        owner=workload.owner,
        since=noted.since,
        at=noted.at,
        title=it.title,
        text=shortened(it.text, LONGEST),
        details={"state": workload.state, **({"reason": report.reason} if report else {})},
    )


def _key(target: str, occasion: Occasion) -> str:
    return f"{target}/{occasion}"


def _lasts(rule: NotificationRule, occasion: Occasion) -> timedelta:
    """Return how long something has lasted when it is told."""
    match occasion:
        case Occasion.WAITING:
            return rule.waiting_after
        case Occasion.NOT_RUNNING | Occasion.IDLE:
            return LASTS
        case Occasion.INTERRUPTED | Occasion.ENDED:
            return timedelta(0)


def _without_others(text: str, namespace: str) -> str:
    """Return a text without the names of workloads of other namespaces."""
    return _WORKLOAD.sub(lambda it: it[0] if it[0].startswith(f"{namespace}/") else OF_OTHERS, text)


def _look(workload: WorkloadRecord) -> str:
    """Return how to look further; empty: nothing is there any more."""
    owner = workload.owner
    command = f"kubectl describe {owner.kind.lower()} {owner.name} -n {owner.namespace}"
    return f"Look further: {command}" if workload.live else ""


def _long(length: timedelta) -> str:
    """Return a duration to the minute, as in `3 h 20 min`."""
    hours, minutes = divmod(int(length.total_seconds()) // 60, 60)
    if not hours:
        return f"{minutes} min" if minutes else f"{int(length.total_seconds())} s"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def _listed(parts: Sequence[str]) -> str:
    return " or ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)

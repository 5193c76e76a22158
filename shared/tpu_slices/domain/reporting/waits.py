"""What the slices of a JobSet wait for, in groups that wait for the same. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import Pinning
from tpu_slices.domain.model.notifications import unknown_targets
from tpu_slices.domain.model.reasons import IN_LINE, Phase, Reason
from tpu_slices.domain.model.slices import ClaimId, SliceId
from tpu_slices.domain.model.vendors import GKE, Vendor
from tpu_slices.domain.records import attempts_told
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import Wait, WorkloadRecord
from tpu_slices.domain.reporting.reason_texts import REASON_TEXTS, reason_text

MOST_NAMED = 10
BY_OPERATOR = {Reason.HELD, Reason.PAUSED}
PROVISIONING = {
    Reason.REQUESTED,
    Reason.OPERATION_LIMIT,
    Reason.CREATION_STARTED,
    Reason.CREATING,
    Reason.AWAITING_FLEX_START,
    Reason.AWAITING_CAPACITY,
    Reason.HOSTS_JOINING,
}
"""The reasons that every slice passes through on its way to READY."""
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
_KEPT_BY_A_PAUSE = {Phase.QUEUED, Phase.WAITING, Phase.BLOCKED}


@dataclass(frozen=True, slots=True)
class QueueState:
    """The state of the cluster that a report depends on.

    It is the queue for creations, as far as it is read, a pause, and a relay that is silent.
    """

    places: Mapping[SliceId, int] = field(default_factory=dict)
    running: int = 0
    """The number of creations that run."""
    vendor: Vendor = GKE
    paused: str | None = None
    silent_since: datetime | None = None
    """When the cluster's relay was last heard, if it is silent."""
    heard_at: datetime | None = None
    """When it was last heard, if that is longer ago than STALE_AFTER, and it is not silent yet."""
    demand_listed_at: datetime | None = None
    """When all demand on record was last confirmed."""
    pinning: Pinning | None = None
    """By what pods are pinned to slices; None: it is not known."""
    settings: ClusterSettings | None = None
    """Those of the cluster, which may have prices of their own; None: they are not known."""

    def caveat(self, workload: WorkloadRecord) -> str:
        """Return, as the end of a message, which targets a workload names that its namespace does not have."""
        rules = self.settings.notifications.get(workload.owner.namespace, {}) if self.settings else {}
        unknown = unknown_targets(rules, workload.notify) if workload.live else ""
        return f" {unknown}" if unknown else ""

    def place(self, group: Iterable[SliceRecord]) -> str:
        """Return the position of the first of a group in the queue, as the end of a message."""
        numbers = [self.places[record.id] for record in group if record.id in self.places]
        if not numbers:
            return f" (queue position above {len(self.places)})" if self.places else ""
        return f" (queue position {min(numbers)}, {self.running} running)"


NO_MORE: Mapping[tuple[Phase, Reason], int] = MappingProxyType({})


def waits_of(
    records: Iterable[SliceRecord], queue: QueueState, now: datetime, more: Mapping[tuple[Phase, Reason], int] = NO_MORE
) -> tuple[Wait, ...]:
    """Return the waits, most severe first; slices on their way to READY come last.

    `more`: how many slices there are beside the records, by phase and reason: they wait for what the first of these do.
    """
    left = dict(more)
    groups: dict[tuple[Phase, Reason, str], list[SliceRecord]] = {}
    for record in records:
        reason = _why(record, queue)
        groups.setdefault(
            (record.phase, reason, reason_text(record, reason, queue.vendor, queue.paused).message), []
        ).append(record)
    waits = [
        replace(wait, count=wait.count + left.pop((group[0].phase, group[0].reason), 0))
        for (_, reason, _), group in groups.items()
        for wait in [_wait(reason, group, queue, now)]
    ]
    return tuple(sorted(waits, key=lambda wait: (wait.reason in PROVISIONING, _WORST_FIRST.index(wait.phase))))


def unreadable_wait(slices: Collection[ClaimId], since: datetime) -> Wait:
    """Return the wait of slices whose records cannot be read: an operator must correct or delete these."""
    text = REASON_TEXTS[Reason.RECORD_UNREADABLE]
    return Wait(
        phase=Phase.BLOCKED,
        reason=Reason.RECORD_UNREADABLE,
        jobs=tuple(sorted(slices)[:MOST_NAMED]),
        count=len(slices),
        message=text.message,
        since=since,
        retry_at=None,
        remedy=text.remedy,
    )


def _why(record: SliceRecord, queue: QueueState) -> Reason:
    """Return the reason for which a slice waits now: a hold or a pause comes before the reason on record."""
    if record.hold:
        return Reason.HELD
    if queue.paused is not None and record.phase in _KEPT_BY_A_PAUSE:
        return Reason.PAUSED
    return record.reason


def _wait(reason: Reason, group: Sequence[SliceRecord], queue: QueueState, now: datetime) -> Wait:
    first = group[0]
    text = reason_text(first, reason, queue.vendor, queue.paused)
    place = queue.place(group) if reason in IN_LINE else ""
    course = _course(reason, group, queue, now)
    attempts = [
        record.claim.retry_at for record in group if record.claim.retry_at is not None and record.claim.retry_at > now
    ]
    return Wait(
        phase=first.phase,
        reason=reason,
        jobs=tuple(record.job.job_name for record in group[:MOST_NAMED]),
        count=len(group),
        message="; ".join([f"{text.message}{place}", *course]),
        since=min(_waiting_since(record) for record in group),
        retry_at=None if reason in BY_OPERATOR else min(attempts, default=None),
        remedy=_remedy(reason, group, queue) if course else text.remedy,
    )


def _course(reason: Reason, group: Sequence[SliceRecord], queue: QueueState, now: datetime) -> Sequence[str]:
    """Return what came of attempts so far, and of the one that is being made.

    | slices                                      | told                                                     |
    |---------------------------------------------|----------------------------------------------------------|
    | wait for their turn to try what ran out     | how many attempts failed, be it none                     |
    | wait for a slot                             | how many attempts failed, if any did                     |
    | wait for the next attempt                   | how many attempts failed, if several did                 |
    | are being made                              | the number of the attempt if others failed, and until    |
    |                                             | when it may take                                         |
    """
    failed = max(sum(record.claim.setbacks.values()) for record in group)
    several = failed > 1 if reason.phase is Phase.WAITING else failed and reason is Reason.OPERATION_LIMIT
    if reason is Reason.AWAITING_TURN or several:
        return [attempts_told.failed(group)]
    if not failed or reason not in PROVISIONING:
        return []
    under_way = reason in {Reason.CREATION_STARTED, Reason.CREATING}
    lasts = attempts_told.lasts(group, queue.vendor, now) if under_way else ""
    return [attempts_told.ahead(group), *([lasts] if lasts else [])]


def _remedy(reason: Reason, group: Sequence[SliceRecord], queue: QueueState) -> str:
    """Return what can be done about what attempts failed of most, while another is being made or awaited."""
    first = group[0]
    if reason in PROVISIONING and first.claim.setbacks:
        reason = max(first.claim.setbacks, key=lambda each: first.claim.setbacks[each])
    return reason_text(first, reason, queue.vendor, queue.paused).remedy


def _waiting_since(record: SliceRecord) -> datetime:
    """Return since when a slice has not been usable."""
    if record.phase is Phase.READY:  # but its leader pod is not scheduled on it
        return record.transitions[-1].at if record.transitions else record.since
    return record.claim.waits_since or record.since

"""The record of a workload: its demand, its state, and its last report."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Self

from tpu_slices.domain.model.facts import Pinning, Reach, WorkloadChanged, WorkloadRef, WorkloadState
from tpu_slices.domain.model.notifications import Notified
from tpu_slices.domain.model.reasons import Phase, Reason, ReportReason
from tpu_slices.domain.model.slices import ClaimId, ClusterId, Owner, OwnerKind
from tpu_slices.domain.model.texts import digest
from tpu_slices.domain.records.gangs import Gang
from tpu_slices.domain.records.ladders import OnLadder
from tpu_slices.domain.records.standings import standing


def demand_digest(slices: Mapping[ClaimId, Reach]) -> int:
    """Return a digest of the slices of a workload that leaders wait for, with how far these reach; 0: none wait."""
    text = " ".join(sorted(it if reach is Reach.OWN else f"{it} {reach}" for it, reach in slices.items()))
    return digest(text) if text else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Slices of a JobSet that wait for the same thing."""

    phase: Phase
    reason: Reason
    jobs: tuple[str, ...]
    """The first of their Jobs."""
    count: int
    message: str
    """What they wait for, with the zone, the quota, the limit or the position in the queue."""
    since: datetime
    """Since when the one that waits longest has not been usable."""
    retry_at: datetime | None
    """When the next attempt is; None: not known."""
    remedy: str
    """What can be done, and by whom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Why a JobSet waits, or that it does not."""

    reason: ReportReason
    message: str
    requested: int
    """The number of slices in demand or, once the JobSet is suspended or ended, of all that it had."""
    ready: int
    waits: tuple[Wait, ...] = ()
    """What the others wait for, most severe first."""
    since: datetime
    """Since when the JobSet has had all its slices, or has waited, or neither."""
    pinning: Pinning | None = None
    """By what pods were pinned in its cluster then; None: that was not known, or it has no pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """What was announced of a workload as long as one reason applied, as its Event of that reason says it."""

    reason: ReportReason
    message: str
    """That of the last such report."""
    since: datetime
    """When the first one was announced."""
    until: datetime | None = None
    """When one of another reason was; None: it is the last one."""


@dataclass(frozen=True, slots=True)
class ReportQueue:
    """Workloads that wait for their next report: those of a namespace, first reports apart from renewed ones."""

    cluster: ClusterId
    namespace: str
    first: bool
    """No report was announced yet."""


SUSPENSION_LASTS = timedelta(minutes=6)
"""How long a workload has been suspended when its slices are released that nothing was bought for: longer than the
relay holds back that it is resumed (`relay.telling`)."""
RELEASE_LASTS = timedelta(minutes=10)
"""How long the slices of a workload that ended may take to go before it is reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRecord:
    """The document `workloads/{cluster}.{uid}`. Once ended it is a tombstone: no later fact revives it."""

    cluster: ClusterId
    owner: Owner
    state: WorkloadState
    generation: int
    """The generation that `state` is based on."""
    resource_version: str
    """The resourceVersion that `state` is based on."""
    as_of: datetime | None = None
    """As of when `state` was told by the relay's clock; None: it changes with the generation alone."""
    groups: int | None = None
    """Of a LeaderWorkerSet: how many groups it had at that generation; slices of others are released."""
    sharing: tuple[str, ...] = ()
    """The replicatedJobs whose Jobs share the first one's slice, as demand told last; slices of others are released."""
    gangs: Mapping[str, Gang] = field(default_factory=dict, hash=False)
    """By name, as demand told last; none while it is not active."""
    ladders: Mapping[str, OnLadder] = field(default_factory=dict, hash=False)
    """By ladder (`SliceSpec.ladder`) how far it is on it; left out: at its beginning. None while it is not active."""
    demand: Mapping[ClaimId, datetime | None]
    """Its slices, and when a leader was last told to wait for each; None: not since it came to hosts, or in doubt."""
    reach: Mapping[ClaimId, Reach] = field(default_factory=dict, hash=False)
    """How far the leader of a slice reaches, as the relay told last; left out: to its own hosts alone."""
    asked: Mapping[ClaimId, int] = field(default_factory=dict, hash=False)
    """What the leader of each slice asked for when the slice was planned, as a digest; left out: it is read again."""
    chips_awaited: int | None = None
    """The fewest chips of its slices that are refused for a limit of chips, as reported last; None: none is."""
    chips_awaited_since: datetime | None = None
    edited: int | None = None
    """The generation of the last change but those of the number of its groups alone; None: `generation`."""
    given_up: int | None = None
    """The generation at which a slice of it was let go as pods did not run: those of its other Jobs follow."""
    claims_recorded: int = 0
    """How many claims got their first record: of two processes that make one at once, one finds this changed."""
    state_since: datetime
    """When it was first reported in this state at this generation."""
    last_seen_at: datetime
    """When the last fact about it arrived."""
    queue: str = ""
    """The Kueue queue that its label names."""
    template_error: str = ""
    """Why its templates cannot be parsed."""
    notify: str = ""
    """The targets that its annotation names."""
    notified: Mapping[str, Notified] = field(default_factory=dict, hash=False)
    """By `TARGET/OCCASION`, of what each target was notified last."""
    unserved: str = ""
    """Why none of the slices that it requests is made; empty: they may be."""
    report: Report | None = None
    """The last report."""
    next_report_at: datetime | None = None
    """When the next report is made."""
    announced_at: datetime | None = None
    """When a report was last announced to the cluster."""
    announced_count: int = 0
    """How many reports were announced."""
    announced: Announced | None = None
    """What they last said; None: nothing, or that is not known."""
    ended: Announced | None = None
    """What they said before, for another reason: it is announced with each report that this is over."""
    expire_at: datetime | None = None
    """When a tombstone may be deleted: after anything can be redelivered."""

    @classmethod
    def of(cls, cluster: ClusterId, workload: WorkloadRef, now: datetime, slices: Iterable[ClaimId] = ()) -> Self:
        """Return the record of a workload that is active; its demand for these slices is not confirmed."""
        return cls(
            cluster=cluster,
            owner=workload.owner,
            state=WorkloadState.ACTIVE,
            generation=workload.generation,
            resource_version=workload.resource_version,
            groups=workload.groups,
            demand=dict.fromkeys(slices),
            state_since=now,
            last_seen_at=now,
        )

    @property
    def live(self) -> bool:
        return not self.state.ended

    def with_announced(self, made: Report, now: datetime) -> Self:
        """Return the record once a report is announced: what was said for another reason is over."""
        last = self.announced
        same = last is not None and last.reason is made.reason
        over = last is not None and not same
        return replace(
            self,
            report=made,
            announced_at=now,
            announced_count=self.announced_count + 1,
            announced=Announced(reason=made.reason, message=made.message, since=last.since if last and same else now),
            ended=replace(last, until=now) if last is not None and over else self.ended,
        )

    def gang(self, replicated_job: str) -> Gang | None:
        """Return the gang that the claims of a replicatedJob are of; None: they are of none."""
        return next((gang for gang in self.gangs.values() if replicated_job in gang.replicated_jobs), None)

    def has(self, replicated_job: str, job_index: int) -> bool:
        """Return whether a slice is for this Job or group: that is not scaled away, and shares no other Job's slice."""
        shares = job_index > 0 and replicated_job in self.sharing
        return not shares and (self.groups is None or job_index < self.groups)

    def with_recorded(self, claims: Collection[ClaimId]) -> Self:
        """Return the record once claims get their first records; what was not told of them stays unconfirmed."""
        demand = {**dict.fromkeys(claims), **self.demand}
        asked = {claim: digest for claim, digest in self.asked.items() if claim not in claims}
        return replace(self, demand=demand, asked=asked, claims_recorded=self.claims_recorded + len(claims))

    def demand_confirmed_at(self, slice_: ClaimId, listed_at: datetime | None) -> datetime | None:
        """Return when the demand for a slice was last confirmed: when it was told, or by a list since then.

        That of a TPUNodeGroup lasts: `listed_at` is when the relay was heard.
        """
        if self.owner.kind.declares:
            return listed_at
        told_at = self.demand.get(slice_)
        return max(told_at, listed_at) if told_at is not None and listed_at is not None else told_at

    @property
    def in_demand(self) -> Collection[ClaimId]:
        """The slices that leaders wait for, or that are declared; none unless it is active."""
        declares = self.owner.kind.declares
        waiting = [slice_ for slice_, told_at in self.demand.items() if declares or told_at is not None]
        return waiting if self.state is WorkloadState.ACTIVE else ()

    @property
    def standing(self) -> int:
        """See `standings.standing`; 0: it has ended."""
        told = (self.state, self.queue, self.template_error, self.groups)
        return standing(self.owner.uid, *told, notify=self.notify) if self.live else 0

    @property
    def demand_digest(self) -> int:
        """Of the slices that leaders wait for: what is declared is part of no list of demand."""
        waiting = () if self.owner.kind.declares else self.in_demand
        return demand_digest({slice_: self.reach.get(slice_, Reach.OWN) for slice_ in waiting})

    def suspension_lasts_at(self, now: datetime) -> datetime | None:
        """Return when it will have been suspended for SUSPENSION_LASTS; None: it has been, or is not suspended."""
        lasts_at = self.state_since + SUSPENSION_LASTS
        return lasts_at if self.state is WorkloadState.SUSPENDED and now < lasts_at else None

    @property
    def is_given_up(self) -> bool:
        """Whether its slices are let go, and none is made: pods of it did not run. Whoever changes it tries again."""
        return self.given_up == self.edition

    @property
    def gives_all_up(self) -> bool:
        """Whether it is given up as a whole: the Jobs of a JobSet train together, groups serve by themselves."""
        return self.is_given_up and self.owner.kind is OwnerKind.JOBSET

    @property
    def edition(self) -> int:
        """The generation of the last change by which somebody may have mended it: no change of its scale."""
        return self.generation if self.edited is None else self.edited

    def edited_by(self, workload: WorkloadRef) -> int | None:
        """Return `edited` once a fact tells of the workload at this generation or a later one."""
        if workload.generation <= self.generation:
            return self.edited
        scaled = None not in {self.groups, workload.groups} and self.groups != workload.groups
        return self.edition if scaled else None

    @property
    def awaits_chips(self) -> bool:
        """Whether it is to be told when chips are released."""
        return self.state is WorkloadState.ACTIVE and self.chips_awaited is not None

    @property
    def report_queue(self) -> ReportQueue | None:
        """The queue in which it waits for its next report; None: none is due, now or later."""
        if self.next_report_at is None:
            return None
        return ReportQueue(self.cluster, self.owner.namespace, first=self.announced_count == 0)


def texts_of(told: WorkloadChanged | WorkloadRecord) -> tuple[str, str, str, str]:
    """Return what is told of a workload beside its state, or on record of that."""
    return told.queue, told.template_error, told.notify, told.unserved

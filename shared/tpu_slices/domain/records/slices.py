"""The record of a slice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from tpu_slices.domain.model.clusters import PoolSettings
from tpu_slices.domain.model.facts import Occupant
from tpu_slices.domain.model.joining import JoinAsked
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import (
    ClaimId,
    ClusterId,
    Owner,
    PoolName,
    SliceId,
    SliceSpec,
    WorkloadJob,
    WorkloadUid,
    claim_id,
    pool_name,
    slice_id,
)
from tpu_slices.domain.model.texts import shortened
from tpu_slices.domain.records.attempts import Attempt
from tpu_slices.domain.records.awaited import SlotAwaited
from tpu_slices.domain.records.brakes import UnconfirmedEnd
from tpu_slices.domain.records.claims import NO_CLAIM, Claim
from tpu_slices.domain.records.hosts import Hosts, digest_of

HISTORY = 20
"""The number of transitions that a record keeps."""


class Desire(StrEnum):
    PRESENT = "PRESENT"
    ABSENT = "ABSENT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    at: datetime
    phase: Phase
    reason: Reason
    message: str


FIRST = Attempt(number=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRecord:
    """The document `slices/{cluster}.{slice}`. A record that is not settled has `next_reconcile_at`.

    With the claim that has it, or for which it is made next. One that was let go has none.
    """

    cluster: ClusterId
    owner: Owner
    """The workload that it was made for."""
    replicated_job: str
    job_index: int
    spec: SliceSpec | None
    """None: the request is refused (see `claim.refusal`), or the pool was found without a record."""
    claimed_by: ClaimId | None
    """The claim that has it; None: none has."""
    claim: Claim = NO_CLAIM
    """The need that it serves; NO_CLAIM: of a slice that no claim has."""
    pinned_settings: PoolSettings | None = None
    """The cluster's settings as they were at the first create."""

    desire: Desire = Desire.PRESENT
    desire_message: str = ""

    phase: Phase = Phase.QUEUED
    reason: Reason = Reason.REQUESTED
    message: str = ""
    since: datetime
    """When it entered this phase."""
    changed_at: datetime | None = None
    """When its reason or message last changed; None: not since it was made."""

    current: Attempt = FIRST
    let_go: str = ""
    """Why its slice goes; empty: it does not."""
    fits: bool = False
    """Of a slice that no claim has: nothing is wrong with it, and its claim has it again if that waits for one."""
    legacy_pool: str | None = None
    """The name of the adopted pool: attempt 0. TPU Provisioner's node pool, or TPU operator's instance group."""
    slot_awaited: SlotAwaited | None = None
    """The next operation of this slice, if only a slot is missing for it."""
    join_asked: JoinAsked | None = None
    """The question for a bootstrap token whose answer the hosts may still have; None: they have none."""

    created_at: datetime
    next_reconcile_at: datetime | None
    look_at: datetime | None = None
    """From when on what was seen of its pools counts no more, so that they are looked at; None: not by itself."""
    unconfirmed_end: UnconfirmedEnd | None = None
    """None: there was none."""
    expire_at: datetime | None = None
    transitions: tuple[Transition, ...] = ()
    transition_count: int = 0
    """The number of transitions so far."""
    announced_count: int = 0
    """How many of them are known to have been announced to the cluster; mostly those after are, too."""

    hold: bool = False
    """Set by an operator: nothing is created or deleted."""
    held_by: str = ""
    """Who set it; empty: not known, as of an edit in the console."""
    held_since: datetime | None = None
    """When it was set, or first seen."""
    release_requested: bool = False
    """Set by an operator: the desire is ABSENT, whatever the JobSet requests."""
    release_forced: bool = False
    """Set by an operator: deleted without asking the relay who runs on it."""
    note: str = ""
    """Free text by operators."""

    @classmethod
    def of(cls, job: WorkloadJob, now: datetime, spec: SliceSpec | None = None) -> Self:
        """Return the record of a new slice: nothing is created yet, and it is reconciled at once."""
        return cls(
            cluster=job.cluster,
            owner=job.owner,
            replicated_job=job.replicated_job,
            job_index=job.job_index,
            spec=spec,
            claimed_by=claim_id(job),
            since=now,
            created_at=now,
            next_reconcile_at=now,
        )

    def unclaimed_with(self, slice_: Attempt, why: str, now: datetime) -> Self:
        """Return the record of a slice that was made for this claim, which does not have it; `why` it goes."""
        asked = self.join_asked
        return type(self)(
            cluster=self.cluster,
            owner=self.owner,
            replicated_job=self.replicated_job,
            job_index=self.job_index,
            spec=self.spec,
            claimed_by=None,
            pinned_settings=self.pinned_settings,
            legacy_pool=self.legacy_pool if slice_.number == 0 else None,
            current=replace(
                slice_, ordered=slice_.ordered or self.spec, hosts_awaited_since=None, returning=None, relabelling=None
            ),
            join_asked=asked if asked is not None and asked.attempt == slice_.number else None,
            desire=Desire.ABSENT,
            desire_message=why,
            let_go=why,
            release_requested=self.release_requested,
            release_forced=self.release_forced,
            since=now,
            created_at=now,
            next_reconcile_at=now,
            look_at=self.look_at,
        ).transitioned(now, Reason.CLOSING_HOSTS, f"Releasing ({why}).")

    @property
    def job(self) -> WorkloadJob:
        """The Job that it was made for."""
        return WorkloadJob(
            cluster=self.cluster, owner=self.owner, replicated_job=self.replicated_job, job_index=self.job_index
        )

    @property
    def id(self) -> SliceId:
        return slice_id(self.maker, self.attempt)

    @property
    def name(self) -> ClaimId | SliceId:
        """What people call it: by the claim that has it, or by its own id."""
        return self.claimed_by or self.id

    @property
    def maker(self) -> ClaimId:
        """The claim that it was made for: its pool is named by that, whoever has it."""
        return claim_id(self.job)

    @property
    def earlier(self) -> tuple[SliceId, ...]:
        """The slices that the claim had before, and that still stand."""
        return tuple(slice_id(self.maker, number) for number in self.claim.earlier)

    @property
    def unclaimed(self) -> bool:
        """Whether it is a slice that no claim has: it was let go, and stands no longer than it must."""
        return self.claimed_by is None

    @property
    def goes(self) -> bool:
        """Whether it is to be deleted, once nobody uses it."""
        return bool(self.let_go) or not self.wanted

    @property
    def why_it_goes(self) -> str:
        return (self.let_go if self.wanted else self.desire_message) or "no longer in demand"

    @property
    def attempt(self) -> int:
        """The number of the current or next pool."""
        return self.current.number

    @property
    def pool(self) -> PoolName:
        """The name of its pool; raise ValueError past LAST_ATTEMPT."""
        return self.pool_of(self.attempt)

    def pool_of(self, attempt: int) -> PoolName:
        """Return the pool name of an attempt of its claim; raise ValueError past LAST_ATTEMPT."""
        if attempt == 0 and self.legacy_pool is not None:
            return PoolName(self.legacy_pool)
        return pool_name(self.maker, attempt)

    @property
    def seen_as(self) -> Reason:
        """The last reason that is of the pool, not that it cannot be read."""
        told = (each.reason for each in reversed(self.transitions) if each.reason is not Reason.POOL_UNREADABLE)
        return next(told, self.reason) if self.reason is Reason.POOL_UNREADABLE else self.reason

    @property
    def made_in_steps(self) -> bool:
        """Whether its pools are made by several operations: those of Compute Engine are."""
        return self.pinned_settings is not None and self.pinned_settings.compute is not None

    @property
    def gone_before(self) -> int:
        """The attempt below whose number no pool exists, nor ever will; 0: there may be one."""
        gone = self.phase is Phase.GONE and self.current.create_requested_at is None
        return self.attempt + self.current.gone if gone else 0

    @property
    def wanted(self) -> bool:
        return self.desire is Desire.PRESENT

    @property
    def slots(self) -> frozenset[int]:
        """The slots that its operations hold, or that were handed on to them."""
        handed_on = self.slot_awaited.number if self.slot_awaited else None
        numbers = (self.current.slot, handed_on)
        return frozenset(number for number in numbers if number is not None)

    @property
    def made_as(self) -> SliceSpec | None:
        """What the pool of the current attempt is: the request may have changed since. None: it is not known."""
        return (self.current.ordered if self.current.create_requested_at else None) or self.spec

    @property
    def chips_bought(self) -> int:
        """The chips of its pool, from the decision to create it on; none if no host of it exists or will."""
        if self.current.create_requested_at is None or self.phase is Phase.GONE:
            return 0
        if self.current.empty and not self.current.hosts.joined:
            return 0
        return self.made_as.chips if self.made_as else 0

    @property
    def chips_idle(self) -> int:
        """The chips of its pool while it is READY and nobody is on its hosts."""
        return self.chips_bought if self.phase is Phase.READY and not self.current.hosts.occupants else 0

    @property
    def current_chips_held(self) -> int:
        """The chips of its pool, unless other Jobs alone run on its hosts."""
        return 0 if self.lent(self.current.hosts) else self.chips_bought

    @property
    def chips_held(self) -> int:
        """The chips of its pool, unless other Jobs alone run on its hosts.

        A Job that runs on hosts of another slice holds their chips on its own slice's record until it leaves them.
        """
        place = self.claim.runs_on
        elsewhere = place.chips if place is not None and place.left_at is None else 0
        return self.current_chips_held + elsewhere

    @property
    def users(self) -> set[WorkloadUid]:
        """The workloads that it is of, that are on its hosts, and that lately left them."""
        on_hosts = (each.owner.uid for each in self.current.hosts.occupants)
        departed = (each.user.owner.uid for each in self.current.hosts.departures)
        return {self.owner.uid, *on_hosts, *departed}

    @property
    def hosts_digest(self) -> int:
        """The digest of its pool's hosts."""
        return digest_of(self.maker, self.attempt, self.current.hosts)

    def lent(self, hosts: Hosts) -> bool:
        """Return whether only Jobs are on these hosts for which they were not made."""
        return bool(hosts.occupants) and not any(self.interchangeable(each) for each in hosts.occupants)

    def interchangeable(self, occupant: Occupant) -> bool:
        """Return whether a Job is its own, or a sibling of the same template, whose slice serves its own Job too."""
        return (occupant.owner.uid, occupant.replicated_job) == (self.owner.uid, self.replicated_job)

    def on(self, hosts: Hosts) -> bool:
        """Return whether its own Job is on these hosts."""
        return any(self.interchangeable(each) and each.job_index == self.job_index for each in hosts.occupants)

    @property
    def held(self) -> str:
        """Who holds it since when, as text."""
        since = f" since {self.held_since:%Y-%m-%d %H:%M} UTC" if self.held_since else ""
        return f"held by {self.held_by or 'an operator'}{since}"

    def transitions_after(self, count: int) -> tuple[Transition, ...]:
        """Return the transitions that came after so many; the newest, if there are more than are kept."""
        later = self.transition_count - count
        return self.transitions[-later:] if later > 0 else ()

    def with_changes(self, **changes: Any) -> Self:
        """Return the record with these fields: itself, if it has them already."""
        if all(getattr(self, name) == value for name, value in changes.items()):
            return self
        return replace(self, **changes)

    def looked_at_again(self, at: datetime | None) -> Self:
        """Return the record that is reconciled then, when its pools are looked at; None: not by itself."""
        return self.with_changes(next_reconcile_at=at, look_at=at)

    def with_claim(self, **changes: Any) -> Self:
        """Return the record with these fields of its claim: itself, if that has them already."""
        return self.with_changes(claim=self.claim.with_changes(**changes))

    def with_current(self, **changes: Any) -> Self:
        """Return the record with these fields of its current attempt: itself, if that has them already."""
        if all(getattr(self.current, name) == value for name, value in changes.items()):
            return self
        return replace(self, current=replace(self.current, **changes))

    def transitioned(self, at: datetime, reason: Reason, message: str) -> Self:
        """Return the record with this reason and its phase; a new reason is a transition, a new message alone not."""
        phase, message = reason.phase or self.phase, shortened(message)
        claim = self.claim.in_phase(phase, at, wanted=self.wanted)
        if reason is self.reason and self.transitions:
            changed_at = self.changed_at if message == self.message else at
            return self.with_changes(message=message, changed_at=changed_at, claim=claim)
        transition = Transition(at=at, phase=phase, reason=reason, message=message)
        return replace(
            self,
            claim=claim,
            phase=phase,
            reason=reason,
            message=message,
            since=self.since if phase is self.phase else at,
            changed_at=at,
            transitions=(*self.transitions, transition)[-HISTORY:],
            transition_count=self.transition_count + 1,
        )

"""The record of a slice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from tpu_slices.domain.model.clusters import PoolSettings
from tpu_slices.domain.model.facts import Occupant
from tpu_slices.domain.model.host_keys import within
from tpu_slices.domain.model.joining import JoinAsked
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import (
    LAST_ATTEMPT,
    ClaimId,
    ClusterId,
    Owner,
    PoolName,
    SliceId,
    SliceSpec,
    WorkloadJob,
    claim_id,
    pool_name,
    same_request,
    slice_id,
)
from tpu_slices.domain.model.texts import shortened
from tpu_slices.domain.records.attempts import FIRST, Attempt
from tpu_slices.domain.records.awaited import SlotAwaited
from tpu_slices.domain.records.brakes import UnconfirmedEnd
from tpu_slices.domain.records.claims import NO_CLAIM, Claim
from tpu_slices.domain.records.hosts import digest_of
from tpu_slices.domain.records.transitions import HISTORY, Transition
from tpu_slices.domain.records.usage import Usage, Use, use_of, used_on, with_those_of


class Desire(StrEnum):
    PRESENT = "PRESENT"
    ABSENT = "ABSENT"


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRecord:
    """The document `slices/{cluster}.{slice}`. A record that is not settled has `next_reconcile_at`.

    With the claim that has it, or for which it is made next. One that was let go has none.
    """

    cluster: ClusterId
    owner: Owner
    """The workload of the Job whose claim has it, or had it last."""
    replicated_job: str
    job_index: int
    spec: SliceSpec | None
    """None: the request is refused (see `claim.refusal`), or the pool was found without a record."""
    first_job: WorkloadJob | None = None
    """The Job that it was made for, by which it is named; None: the one whose claim has it, or had it last."""
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
    """When its reason or message, or how its pods are, last changed; None: not since it was made."""

    current: Attempt = FIRST
    let_go: str = ""
    """Why its slice goes; empty: it does not."""
    fits: bool = False
    """Of a slice that no claim has: nothing is wrong with it, and its last claim gets it back if that waits."""
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
    """When Firestore deletes the record of a slice that is GONE; None: never."""
    transitions: tuple[Transition, ...] = ()
    transition_count: int = 0
    """The number of transitions so far."""
    announced_count: int = 0
    """How many of them are known to have been announced to the cluster; mostly those after are, too."""
    usages: tuple[Usage, ...] = ()
    """How its chips were used, the last one at the end; of claims also those of the slices that they had before."""

    hold: bool = False
    """Set by an operator: nothing is created or deleted."""
    held_by: str = ""
    """Who set it; empty: not known, as of an edit in the console."""
    held_since: datetime | None = None
    """When it was set, or first seen."""
    release_requested: bool = False
    """Set by an operator: the desire is ABSENT, whatever the JobSet requests. Or its run did not run for too long."""
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
        ).used(now)

    def let_go_of(self, why: str, now: datetime) -> Self:
        """Return the record of the slice once its claim does not have it any more; `why` it goes."""
        return self._unclaimed(self.current, why, now, self.first_job)

    def stray(self, slice_: Attempt, why: str, now: datetime) -> Self:
        """Return the record of another slice that was made for this claim's Job; `why` it goes."""
        return replace(self._unclaimed(slice_, why, now, None), join_asked=None)

    def _unclaimed(self, slice_: Attempt, why: str, now: datetime, first_job: WorkloadJob | None) -> Self:
        asked = self.join_asked
        return type(self)(
            cluster=self.cluster,
            owner=self.owner,
            replicated_job=self.replicated_job,
            job_index=self.job_index,
            spec=self.spec,
            first_job=first_job,
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

    def with_next(self, stands: SliceId | None) -> Self:
        """Return a claim's record with the next slice, not yet requested; `stands`: the last one, unless it is gone."""
        number, asked = min(self.claim.tried, LAST_ATTEMPT) + 1, self.join_asked
        keeps_token = stands is not None and asked is not None and asked.attempt == self.attempt
        return replace(
            self,
            current=Attempt(number=number),
            first_job=None,
            legacy_pool=self.legacy_pool if self.first_job is None else None,
            claim=self.claim.with_changes(
                tried=max(self.claim.tried, number),
                earlier=self.claim.earlier if stands is None else (*self.claim.earlier, stands),
                rebuild_allowed=False,
                rejection=None,
            ),
            let_go="",
            join_asked=None if keeps_token else asked,
        )

    def with_slice_of(self, other: Self, now: datetime, *, left: SliceId | None, why: str = "") -> Self:
        """Return a claim's record with a slice that another record has, which stays.

        `left`: the one that it had, if that stands. What was done about the end of the slice counts no more. It is
        rebuilt once it is unused, if it was made for another request.
        """
        earlier = (*(each for each in self.claim.earlier if each != other.id), *(() if left is None else (left,)))
        unlike = self.spec is not None and not same_request(other.current.made_for, self.spec)
        serves = other.phase in {Phase.PROVISIONING, Phase.READY} and not other.owner.kind.is_spare
        past = other.usages if other.unclaimed and other.owner.namespace == self.owner.namespace else ()
        told = (other.reason, other.message) if serves else (Reason.HOSTS_JOINING, why or "It was to go, and stays.")
        after = replace(
            self,
            current=other.current.kept(now),
            first_job=None if other.named_for == self.job else other.named_for,
            legacy_pool=other.legacy_pool if other.attempt == 0 else None,
            pinned_settings=other.pinned_settings or self.pinned_settings,
            claim=self.claim.with_changes(earlier=earlier, rebuild_allowed=unlike, rejection=None),
            usages=with_those_of(self.usages, past, now),
            let_go="",
            join_asked=other.join_asked,
            slot_awaited=None,
            next_reconcile_at=now,
            look_at=now if other.goes else other.look_at,
        )
        return after.transitioned(now, *told)

    @property
    def job(self) -> WorkloadJob:
        """The Job whose claim has it, or had it last."""
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
        return claim_id(self.named_for)

    @property
    def named_for(self) -> WorkloadJob:
        """The Job that it was made for: by that it is named and labelled for its life."""
        return self.first_job or self.job

    @property
    def key(self) -> str:
        """The key that its hosts ought to carry: its claim's, or its own name, which no pod has; empty: any will do."""
        if self.owner.kind.declares:
            return ""
        if self.unclaimed or self.owner.kind.is_spare:
            return self.id
        key = self.spec.key if self.spec else ""
        return within(self.owner.namespace, key) if key and self.made_as and self.made_as.crosses else key

    @property
    def last_claim(self) -> ClaimId:
        """The claim that has it, or had it last."""
        return claim_id(self.job)

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
    def use(self) -> Use | None:
        return use_of(self.phase, self.reason, self.current)

    @property
    def hosts_digest(self) -> int:
        """The digest of its pool's hosts."""
        return digest_of(self.maker, self.attempt, self.current.hosts)

    @property
    def lent(self) -> bool:
        """Whether only Jobs are on its hosts whose claims do not have it."""
        return bool(self.current.hosts.occupants) and not self.occupied

    @property
    def occupied(self) -> bool:
        """Whether the Job whose claim has it is on its hosts."""
        return any(map(self.is_of, self.current.hosts.occupants))

    def is_of(self, occupant: Occupant) -> bool:
        """Return whether a Job is that whose claim has it, or had it last."""
        own = (self.owner.uid, self.replicated_job, self.job_index)
        return (occupant.owner.uid, occupant.replicated_job, occupant.job_index) == own

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
            return self.with_changes(message=message, changed_at=changed_at, claim=claim).used(at)
        transition = Transition(at=at, phase=phase, reason=reason, message=message)
        return replace(
            self,
            claim=claim,
            phase=phase,
            reason=reason,
            message=message,
            since=self.since if phase is self.phase and Reason.WARM not in {reason, self.reason} else at,
            changed_at=at,
            expire_at=self.expire_at if phase is Phase.GONE else None,
            transitions=(*self.transitions, transition)[-HISTORY:],
            transition_count=self.transition_count + 1,
        ).used(at)

    def used(self, at: datetime) -> Self:
        """Return the record whose chips are used from a time on as it says now."""
        return self.with_changes(usages=used_on(self.usages, self.use, self.made_as, at))

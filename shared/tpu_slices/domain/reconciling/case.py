"""One case to decide: a slice's record, what is observed of its pools, and what is known beside them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Self

from tpu_slices.domain.capacity.spares import First
from tpu_slices.domain.capacity.warmth import NOTHING_KEPT, Kept
from tpu_slices.domain.model.clusters import ClusterSettings, Limits
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.observations import (
    Absent,
    Begun,
    Creating,
    Observed,
    Running,
    Unreadable,
)
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import SliceSpec, at_rung, is_at, is_earlier_form, same_request
from tpu_slices.domain.model.vendors import Vendor
from tpu_slices.domain.planning.policy import Held
from tpu_slices.domain.reconciling.deletion import Evidence, known_after_silence
from tpu_slices.domain.reconciling.occupancy import Users, Workloads, users
from tpu_slices.domain.records.awaited import Shortage
from tpu_slices.domain.records.gangs import Gang, GangState
from tpu_slices.domain.records.heartbeats import NEVER_HEARD, RelayHeard
from tpu_slices.domain.records.ladders import OnLadder
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.use import vacant_since


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known beside a slice's record and its pools."""

    workloads: Workloads = field(default_factory=dict)
    """Of its own JobSet, and of those whose Jobs use its hosts."""
    relay: RelayHeard = NEVER_HEARD
    held: Held | None = None
    """The chips that all other pools hold; only needed if the settings limit them."""
    stopped: str | None = None
    """Why the releases of its JobSet are stopped."""
    limited: str | None = None
    """Why it is not bought while releases are stopped."""
    reservation_ended: bool = False
    """Whether the reservation is over that its hosts are of: those that are gone do not come back."""
    shortage: Shortage | None = None
    """The shortage for which its creation waits its turn."""
    first: First | None = None
    """What comes before a spare that would be made; None: nobody has looked."""
    beside: Kept = NOTHING_KEPT
    """What is kept warm that became so after it; only needed if a setting limits that."""
    slots: Mapping[int, int] = field(default_factory=dict)
    """The slots that this decision may use, by attempt; beside that which was handed on to the slice."""


@dataclass(frozen=True, slots=True)
class Situation:
    """The inputs of a decision, and what follows from them at once."""

    record: SliceRecord
    seen: Observed
    now: datetime
    settings: ClusterSettings
    known: Known

    def with_record(self, record: SliceRecord, seen: Observed) -> Self:
        return replace(self, record=record, seen=seen)

    @property
    def limits(self) -> Limits:
        return self.settings.limits

    @property
    def vendor(self) -> Vendor:
        return self.settings.vendor

    @property
    def waiting(self) -> bool:
        """Whether a leader needs the slice, as was confirmed lately; of a spare: whether the settings ask for it."""
        if self.record.owner.kind.is_spare and not self.record.unclaimed:
            return self.record.wanted
        confirmed = self.record.claim.demand_confirmed_at
        return self.record.wanted and confirmed is not None and self.now - confirmed <= self.limits.demand_ttl

    @property
    def unawaited_since(self) -> datetime | None:
        """Since when no leader has waited for a slice for which the vendor has no host yet; None: it is not so."""
        if not (self.unawaited and self.record.wanted and self.unfilled):
            return None
        return self.record.claim.unawaited_since or self.now

    @property
    def long_unawaited(self) -> bool:
        """Whether no leader has waited for longer than it takes to replace a pod: nobody waits for its hosts."""
        since = self.unawaited_since
        return since is not None and self.now - since >= self.limits.restart_grace

    @property
    def unawaited(self) -> bool:
        """Whether the relay, which is heard, has not confirmed lately that a leader needs the slice."""
        return not self.waiting and not self.known.relay.silent(self.now)

    @property
    def owner_ended(self) -> bool:
        """Whether the slice is not needed any more, rather than not now."""
        own = self.known.workloads.get(self.record.owner.uid)
        return self.record.release_requested or (own is not None and own.state is not WorkloadState.SUSPENDED)

    @property
    def evict_by(self) -> datetime | None:
        """Until when pods are evicted from its hosts, if it is that of a TPUNodeGroup that is over; None: never."""
        own = self.known.workloads.get(self.record.owner.uid)
        over = own is not None and own.owner.kind.declares and own.state.ended
        return own.state_since + self.limits.evict_within if own is not None and over else None

    @property
    def run_given_up(self) -> bool:
        """Whether slices of its JobSet were let go, as pods did not run."""
        own = self.known.workloads.get(self.record.owner.uid)
        return own is not None and own.gives_all_up

    @property
    def gang(self) -> Gang | None:
        """The gang that its claim is of."""
        own = self.known.workloads.get(self.record.owner.uid)
        return own.gang(self.record.replicated_job) if own is not None and not self.record.unclaimed else None

    @property
    def on_ladder(self) -> OnLadder | None:
        """Where its workload asks for slices, of the ladder of what it has; None: at the beginning, or it has none."""
        own, made_as = self.known.workloads.get(self.record.owner.uid), self.record.made_as
        return own.ladders.get(made_as.ladder) if own is not None and made_as is not None else None

    @property
    def asks_nowhere(self) -> str:
        """Why its workload asks for nothing by the ladder of the claim; empty: it asks."""
        own, spec = self.known.workloads.get(self.record.owner.uid), self.record.spec
        on = own.ladders.get(spec.ladder) if own is not None and spec is not None else None
        return on.nowhere if on is not None else ""

    @property
    def left_for(self) -> SliceSpec | None:
        """What its workload asks for elsewhere in place of what it has; None: that serves it.

        As no host came, or for its whole gang. What was made by an earlier form of the ladder stays.
        """
        own, made_as, spec = self.known.workloads.get(self.record.owner.uid), self.record.made_as, self.record.spec
        if own is None or made_as is None or spec is None or self.record.unclaimed:
            return None
        if self.unfilled:
            on = self.on_ladder
            return at_rung(made_as, on.rung) if on is not None and on.passes(made_as.rung, self.now) else None
        on, gang = own.ladders.get(spec.ladder), self.gang
        if on is None or not on.whole or gang is None or gang.ran or is_earlier_form(made_as, spec.ladder):
            return None
        asked = at_rung(spec, on.rung)
        return None if is_at(made_as, asked) else asked

    @property
    def held_until(self) -> datetime | None:
        """Until when its slice is held at least, used or not; None: it is not.

        | its gang                                                         | until                                   |
        |------------------------------------------------------------------|-----------------------------------------|
        | forms                                                            | that ends, which is looked for each     |
        |                                                                  | `resync_after`                          |
        | runs, and nobody came to this slice since it stands: Jobs may    | `gang_hold_at_most` after it stood: its |
        | begin after others                                               | Job may run elsewhere                   |
        """
        gang = self.gang
        if gang is None or gang.waits:
            return None
        if gang.forms:
            return self.now + self.limits.resync_after
        ends = gang.state_since + self.limits.gang_hold_at_most
        begins_later = gang.runs and vacant_since(self.record) <= gang.state_since
        return ends if begins_later and self.now < ends else None

    @property
    def may_be_used(self) -> bool:
        """Whether its Job's pods may come once its slice stands; else they are held as the others do not stand."""
        gang = self.gang
        return gang is None or gang.state is GangState.STANDS

    @property
    def vacant_since(self) -> datetime:
        """Since when its Job may have used its slice, which stands, and nobody did."""
        gang = self.gang
        stood = gang.state_since if gang is not None and gang.state is GangState.STANDS else None
        return max(vacant_since(self.record), stood or vacant_since(self.record))

    @property
    def deprived(self) -> bool:
        """Whether its Job waits while only others are on the hosts of the current pool, and will be."""
        lent = self.record.lent and not self.record.owner.kind.declares
        return lent and self.waiting and bool(self.users.present)

    @property
    def whole(self) -> bool:
        """Whether all hosts of the current pool are usable."""
        hosts, spec = self.record.current.hosts, self.record.made_as
        return hosts.usable >= (spec.hosts if spec else max(hosts.joined, 1))

    @property
    def unfilled(self) -> bool:
        """Whether no host is in a pool to which the vendor adds all of them by itself when it has them.

        GKE does so for flex-start, Compute Engine for every group.
        """
        spec, seen = self.record.made_as, self.seen.pool
        if spec is None or self.record.current.hosts.joined:
            return False
        return spec.is_flex_start or (isinstance(seen, Running) and bool(seen.awaiting))

    @property
    def users(self) -> Users:
        """The users of the current pool."""
        seen = self.seen.pool
        return self.users_of(seen.fingerprint if isinstance(seen, Running) else None)

    def users_of(self, fingerprint: str | None) -> Users:
        """Return the users of its pool, if that was made for the request of a fingerprint."""
        found = users(self.record.current.hosts, self.known.workloads, self.now, self.limits.restart_grace)
        return found.without_return_of(self.record.job) if self._needs_other_hosts(fingerprint) else found

    def _needs_other_hosts(self, fingerprint: str | None) -> bool:
        """Return whether the Job needs another pool: it waits, or no claim has this one.

        And that is of another request, or all of its hosts went with their reservation.
        """
        spec, away = self.record.spec, self.waiting or self.record.unclaimed
        return away and spec is not None and (self.known.reservation_ended or not same_request(fingerprint, spec))

    def evidence(self) -> Evidence:
        """Return what is known about the use of a pool that is to be deleted; a release ignores its own Jobs."""
        present = self.users_of(self.record.current.made_for)
        return Evidence(
            users=present.without(self.record.owner.uid) if self.record.release_requested else present,
            relay=self.known.relay,
            namespace=self.record.owner.namespace,
            forced=self.record.release_forced,
            released=self.record.release_requested,
            stopped=self.known.stopped,
            evict_by=self.evict_by,
        )

    @property
    def unused(self) -> bool:
        """Whether it is known that nobody uses the hosts of the current pool."""
        relay, record = self.known.relay, self.record
        if self.users or relay.silent(self.now):
            return False
        known_by = (record.current.spared_until, known_after_silence(record.current, relay, self.limits))
        return all(at is None or self.now >= at for at in known_by)

    @property
    def leader_should_be_here(self) -> bool:
        """Whether a leader was reported to wait although its slice has been READY and vacant for a while."""
        record = self.record
        if (
            record.phase is not Phase.READY
            or record.current.hosts.occupants
            or record.claim.demand_confirmed_at is None
        ):
            return False
        if record.owner.kind.declares:
            return False
        return record.claim.demand_confirmed_at > self.vacant_since + self.limits.requeue_after

    def order_may_arrive(self, requested_at: datetime | None) -> bool:
        """Return whether a request to create or to delete a pool may still take effect."""
        return self.limits.order_may_arrive(requested_at, self.now)

    def slot_for(self, attempt: int) -> int | None:
        """Return the slot in which an operation of an attempt may start, or None if it has to wait for one.

        The one that was handed on to it may have been taken for another attempt since.
        """
        awaited, taken = self.record.slot_awaited, self.known.slots
        handed_on = awaited.number if awaited is not None and awaited.attempt == attempt else None
        return handed_on if handed_on is not None and handed_on not in taken.values() else taken.get(attempt)

    @property
    def nothing_stands(self) -> bool:
        """Whether there is no pool of the current attempt, and none may still come."""
        return isinstance(self.seen.pool, Absent) and not self.creates_current

    @property
    def creates_current(self) -> bool:
        """Whether the creation of its pool is under way, so that it holds its slot."""
        create_requested_at = self.record.current.create_requested_at
        match self.seen.pool:
            case Creating(operation_runs):
                return operation_runs or self.order_may_arrive(create_requested_at)
            case Unreadable():
                return create_requested_at is not None
            case Absent() | Begun():
                return self.order_may_arrive(create_requested_at)
            case _:
                return False

"""The document `heartbeats/{cluster}`: when the relay was heard, and what is known with that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from tpu_slices.domain.model.facts import Family, Heartbeat, Listed, Pinning
from tpu_slices.domain.model.gangs import Gating
from tpu_slices.domain.model.slices import ClusterId, OwnerKind, WorkloadUid

_NEVER = datetime(2000, 1, 1, tzinfo=UTC)
SILENT_AFTER = timedelta(minutes=3)
"""After this time without a heartbeat nothing is concluded from what the relay does not report."""
STALE_AFTER = timedelta(minutes=2)
"""After this time without a heartbeat people are told from when what they read is: two of them are missing."""

LISTED_AGAIN_AFTER = timedelta(minutes=10)
"""How long after all of the mirror was told it is told again, if it still differs: that reads all records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayHeard:
    """When the cluster's relay was heard."""

    last_at: datetime | None = None
    since: datetime | None = None
    """Since when it has been heard without a gap of SILENT_AFTER."""
    confirmed_at: datetime | None = None
    """When the records of hosts last agreed with what it sees; None: they never did."""
    hands_across: bool = False
    """Whether it can say on hosts for which namespace they are, and pods heed that."""

    def silent(self, now: datetime) -> bool:
        return self.last_at is None or now - self.last_at > SILENT_AFTER


NEVER_HEARD = RelayHeard()


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTrip:
    """How far the last EchoQuestion came, by the clocks of `slices doctor`, which asks, relay, receive, reconcile."""

    asked_at: datetime
    answered_at: datetime
    received_at: datetime
    """By the function receive."""
    reconciled_at: datetime | None = None
    """By the function reconcile; None: not yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """How what the relay sees of a family compares with what is on record."""

    parts: tuple[datetime, ...] = ()
    """When the parts of a list of it that were compared last were published, or a heartbeat of the same digest."""
    listed_at: datetime | None = None
    """The `asked_at` of the list that the parts are of; None: it was a heartbeat."""
    asked_at: datetime | None = None
    """When the relay was last asked for a list of it."""

    @property
    def confirmed_at(self) -> datetime | None:
        """When all that is on record last agreed with what the relay sees; None: it never did."""
        return min(self.parts, default=None)

    def awaits(self, listed: Listed, now: datetime) -> bool:
        """Return whether a list is what was asked for last, lately, and nothing agreed since then."""
        asked, confirmed = self.asked_at, self.confirmed_at
        lately = asked == listed.asked_at and now - listed.asked_at <= SILENT_AFTER
        return lately and (confirmed is None or confirmed < listed.asked_at)


NEVER_COMPARED = Compared()


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorKept:
    """How the mirror that a relay keeps in its cluster compares with the records."""

    agreed_at: datetime | None = None
    """When it last agreed with them; None: it never did."""
    listed_at: datetime | None = None
    """When all that it is to show was last told; None: it never was."""

    def to_be_listed(self, now: datetime) -> bool:
        """Return whether all is to be told: it has differed for a while, and telling all did not help lately."""
        differs = self.agreed_at is None or now - self.agreed_at > SILENT_AFTER
        return differs and (self.listed_at is None or now - self.listed_at > LISTED_AGAIN_AFTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayHeartbeat:
    """The document `heartbeats/{cluster}`: the relay's last heartbeat, and when the next inventory check is."""

    cluster: ClusterId
    received_at: datetime | None = None
    """When it was published."""
    uninterrupted_since: datetime | None = None
    """Since when heartbeats have arrived without a gap of SILENT_AFTER."""
    count: int = 0
    """The TPU JobSets that have not ended, as it sees them."""
    pinning: Pinning | None = None
    """By what pods are pinned to slices; None: the relay does not know."""
    gating: Gating | None = None
    """What the API server makes of gangs; None: the relay does not know."""
    hands_across: bool = False
    """Whether the relay can say on hosts for which namespace they are."""
    families: Mapping[Family, Compared] = field(default_factory=dict, hash=False)
    """How each compares with what is on record; one that is not there was never compared."""
    next_inventory_check_at: datetime | None = None
    """None: at the next sweep."""
    expected_since: datetime | None = None
    """When the first sweep of the cluster was: since then, a heartbeat is expected."""
    silent_since: datetime | None = None
    """When the relay was last heard, if the sweep found it silent and has not heard it since."""
    paused: str | None = None
    """Why the cluster is paused, as reports tell it."""
    reported_up_to: WorkloadUid | None = None
    """Up to which JobSet reports were called for since a silence or a pause began or ended; None: of all."""
    settings_version: str = ""
    """The version of the settings under which the relay told all demand, or was asked to tell it again."""
    round_trip: RoundTrip | None = None
    updates_tried_at: datetime | None = None
    """The `asked_at` of the last EchoQuestion by `updates-{cluster}` whose answer was received; None: of none."""
    mirror: MirrorKept | None = None
    """None: the relay keeps none."""

    @property
    def demand_confirmed_at(self) -> datetime | None:
        """When the demand on record last agreed with what the relay sees, or was forgotten; None: it never did."""
        return self.compared(Family.DEMAND).confirmed_at

    def compared(self, family: Family) -> Compared:
        return self.families.get(family, NEVER_COMPARED)

    def with_compared(self, family: Family, **changes: Any) -> Self:
        """Return the heartbeat with these fields of how a family compares."""
        after = replace(self.compared(family), **changes)
        return replace(self, families={**self.families, family: after})

    def confirmed_at(self, kind: OwnerKind) -> datetime | None:
        """Return when the demand on record of workloads of a kind was last confirmed; None: it never was."""
        return self.received_at if kind.declares else self.demand_confirmed_at

    def pinning_at(self, now: datetime) -> Pinning | None:
        """Return by what pods are pinned to slices; None: the relay does not know, or is silent."""
        return None if self.relay.silent(now) else self.pinning

    @classmethod
    def of(cls, cluster: ClusterId) -> Self:
        """Return the heartbeat of a relay that was never heard."""
        return cls(cluster=cluster)

    @property
    def relay(self) -> RelayHeard:
        confirmed_at = self.compared(Family.HOSTS).confirmed_at
        heard = RelayHeard(last_at=self.received_at, since=self.uninterrupted_since, confirmed_at=confirmed_at)
        pinned = self.pinning is not None and self.pinning.pins
        return replace(heard, hands_across=self.hands_across and pinned)


def silent_since(heartbeat: RelayHeartbeat | None, now: datetime, after: timedelta = SILENT_AFTER) -> datetime | None:
    """Return when the relay was last heard, or first expected, if that is longer ago than `after`, else None."""
    last = heartbeat.received_at or heartbeat.expected_since if heartbeat is not None else None
    return last if last is not None and now - last > after else None


def with_heartbeat(
    before: RelayHeartbeat, beat: Heartbeat, recorded: Mapping[Family, int], now: datetime
) -> RelayHeartbeat:
    """Return the stored heartbeat after another one; after a silence, the inventory check is due.

    `recorded`: the digests on record. `now`: when it was published; one that was published before the stored one
    changes nothing.
    """
    if before.received_at is not None and now < before.received_at:
        return before
    silent = before.relay.silent(now)
    heartbeat = replace(
        before,
        received_at=now,
        uninterrupted_since=now if silent else before.uninterrupted_since or now,
        count=beat.count,
        pinning=beat.pinning,
        gating=beat.gating,
        hands_across=beat.hands_across,
        next_inventory_check_at=None if beat.first or silent else before.next_inventory_check_at,
    )
    for family, digest in beat.digests.items():
        if digest == recorded[family]:
            heartbeat = heartbeat.with_compared(family, parts=(now,), listed_at=None)
    return heartbeat


def with_mirror(before: RelayHeartbeat, mirrored: int | None, recorded: int, now: datetime) -> RelayHeartbeat:
    """Return the stored heartbeat once one told the digest of its mirror; `recorded`: that of the records."""
    if mirrored is None:
        return replace(before, mirror=None)
    known = before.mirror or MirrorKept()
    return replace(before, mirror=replace(known, agreed_at=now) if mirrored == recorded else known)


def with_listed(before: RelayHeartbeat, listed: Listed, now: datetime) -> RelayHeartbeat:
    """Return the stored heartbeat after a part of a list was compared with the records, and these agree with it.

    `now`: when the part was published. Until every part of a list of so many was compared, what was known stands.
    """
    known = before.compared(listed.family)
    same = known.listed_at == listed.asked_at and len(known.parts) == listed.parts
    times = known.parts if same else (known.confirmed_at or _NEVER,) * listed.parts
    parts = tuple(max(at, now) if number == listed.part else at for number, at in enumerate(times))
    return before.with_compared(listed.family, parts=parts, listed_at=listed.asked_at)

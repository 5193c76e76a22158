"""An attempt at a slice: each has a node pool of its own, with the attempt's number in its name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self

from tpu_slices.domain.model.observations import Creating, Running, Visible, Witness
from tpu_slices.domain.model.slices import SliceSpec
from tpu_slices.domain.records.hosts import NO_HOSTS, Hosts
from tpu_slices.domain.records.returning import Returning
from tpu_slices.domain.records.warmth import Warmth


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was seen of a pool; that it could not be read is no evidence."""

    pool: Visible
    since: datetime
    """Since when it has been seen so, by the functions' clocks."""
    by: Witness


@dataclass(frozen=True, slots=True, kw_only=True)
class Hindrance:
    """GKE did not take a deletion, as another operation ran on the pool or the cluster."""

    at: datetime
    """When it was last refused for that."""
    times: int
    """In a row."""
    message: str
    """GKE's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relabelling:
    """What is done about a pool whose labels, or description, somebody replaced by those that do not name its slice."""

    lacking: str
    """What of them is missing."""
    again_at: datetime
    """When it is looked at again, and they are put back if they are still missing."""
    refused: str = ""
    """Why the vendor last refused to put them back; empty: it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An attempt at a slice, from the decision to make its pool until that is known to be gone."""

    number: int
    """Of its pool."""
    create_requested_at: datetime | None = None
    """When its creation was last decided. None: no pool of it can exist."""
    ordered: SliceSpec | None = None
    """What was ordered when its creation was last decided; None: it was never decided, or is not known."""
    ours_since: datetime | None = None
    """Since when its pool is known to be ours, whatever labels people give it; None: only its labels can prove that."""
    seen: Seen | None = None
    """What was last seen of its pool; None: nothing yet, or a request of ours may have changed it since."""
    operation: str | None = None
    """GKE's operation that creates its pool, until it is seen to have ended: the pool may be listed only later."""
    made_by: str | None = None
    """The operation that made its pool: it is known by that, too, whatever our clocks say. None: that is not known."""
    slot: int | None = None
    """The slot of the operation that creates or deletes its pool."""
    hosts: Hosts = NO_HOSTS
    spared_until: datetime | None = None
    """Not deleted before: it is not yet known who uses it."""

    hosts_awaited_since: datetime | None = None
    """Since when usable hosts have been missing, whatever reason the slice gives."""
    returning: Returning | None = None
    """What is known of its hosts that are away and come back; None: none are, or nothing is known."""
    unreadable_since: datetime | None = None
    """Since when the vendor has not said how its pool is; None: it did when it was asked last."""
    relabelling: Relabelling | None = None
    """None: the labels that name its slice were not replaced, as far as is known."""

    gone: bool = False
    """It was made, and is known to be gone: its number is not used again."""
    empty: bool = False
    """Its creation failed before any host was there."""
    warm: Warmth | None = None
    """How it is, or was, kept once it was let go; None: it was not."""
    delete_requested_at: datetime | None = None
    """When its deletion was last requested; None: not yet, or GKE did not accept it."""
    retry_at: datetime | None = None
    """When its deletion, which GKE did not accept, is requested again."""
    not_cancellable: bool = False
    """GKE refused to cancel its creation, which is not asked for again."""
    cancel_refused: str = ""
    """Why, unless GKE cancels no creations: a permission is missing. Empty: it was not refused so, or has ended."""
    refused: str = ""
    """Why GKE last refused to delete it; empty: it did not."""
    hindered: Hindrance | None = None
    """Another operation was in the way of its deletion; None: none was."""

    @property
    def made_for(self) -> str | None:
        """The fingerprint of the request that its pool was made for; None: not known."""
        seen = self.seen.pool if self.seen else None
        told = seen.fingerprint if isinstance(seen, Running) else None
        return told or (self.ordered.fingerprint if self.ordered else None)

    def kept(self, now: datetime) -> Self:
        """Return the attempt at a slice that stays after all: what was done about its end counts no more."""
        hosts = self.hosts
        return type(self)(
            number=self.number,
            create_requested_at=self.create_requested_at,
            ordered=self.ordered,
            ours_since=self.ours_since,
            seen=self.seen,
            operation=self.operation,
            made_by=self.made_by,
            slot=self.slot,
            hosts=replace(hosts, vacant_since=hosts.vacant_since and now, ends_by=None),
            spared_until=self.spared_until,
        )

    @property
    def under_creation(self) -> bool:
        """Whether its pool was last seen to be created, or we asked for that."""
        return self.seen is not None and isinstance(self.seen.pool, Creating)


FIRST = Attempt(number=1)

"""What is known of a reservation: kept by capacity pool in `limiters/{cluster}`, beside what ran out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class ReservationState(StrEnum):
    PENDING = "PENDING"  # booked, or being made: it is not there yet
    READY = "READY"
    ENDED = "ENDED"
    MISSING = "MISSING"  # there is none of this name, and none is booked
    UNREADABLE = "UNREADABLE"  # nothing is known of it: creations go on as if it were not looked at


@dataclass(frozen=True, slots=True)
class ReservationPlace:
    """Where a reservation is read: in the project that has it, which need not be the cluster's."""

    project: str
    zone: str
    name: str
    block: str = ""
    """Of it alone; empty: of the whole reservation."""
    sub_block: str = ""

    @property
    def shown(self) -> str:
        """The reservation as people name it."""
        parts = (("block", self.block), ("sub-block", self.sub_block))
        return " ".join(["reservation", self.name, *(f"{kind} {part}" for kind, part in parts if part)])


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSeen:
    """A block of a reservation, or a part of one. Hosts are counted."""

    name: str
    count: int
    in_use: int
    degraded: int = 0

    @property
    def free(self) -> int:
        """Healthy hosts that nobody uses. Which of those in use are degraded is not told: none is taken to be."""
        return max(0, self.count - self.in_use - self.degraded)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationSeen:
    """What a look at a reservation found."""

    state: ReservationState
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    """When Google deletes it, and its hosts with it; None: never, or that is not known."""
    machine: str = ""
    scheduling: str = ""
    count: int | None = None
    """Its hosts; None: they are not counted by hosts, or nothing is known."""
    in_use: int = 0
    """By whomever."""
    blocks: tuple[BlockSeen, ...] = ()
    """The first of them; none: it has no blocks, or nobody asked."""
    degraded: int = 0
    """Hosts in all blocks that are not healthy."""
    nearest: tuple[str, ...] = ()
    """If it is missing: reservations of the same place with names like its own."""
    detail: str = ""
    """What Google says of it, if it is not READY."""

    @property
    def free(self) -> int | None:
        """Healthy hosts that nobody uses; None: they are not counted."""
        return None if self.count is None else max(0, self.count - self.in_use - self.degraded)

    @property
    def healthy(self) -> int | None:
        return None if self.count is None else max(0, self.count - self.degraded)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """What is known of a reservation from the last look at it, for all who wait for it in a cluster."""

    place: ReservationPlace
    seen: ReservationSeen
    seen_at: datetime
    """When it was seen so; creations that began later are not counted in it."""
    ours: int = 0
    """Its hosts that slices of this cluster have, or are to have, by their records."""
    needed_at: datetime
    """When a slice last waited for it, or had hosts of it."""
    next_look_at: datetime
    looks: int = 0
    """How many looks in succession found no more free hosts than the one before."""
    error: str = ""
    """Why the last look found out nothing; empty: it did."""
    announced: int = 0
    """Minutes before its end of what its users were told last; 0: nothing yet."""

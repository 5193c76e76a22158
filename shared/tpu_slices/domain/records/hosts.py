"""The hosts of an attempt's pool, as the relay last reported them, and who uses them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from tpu_slices.domain.model.facts import Occupant
from tpu_slices.domain.model.hosts import HostKey, Upcoming
from tpu_slices.domain.model.pods import JobPods
from tpu_slices.domain.model.slices import ClaimId
from tpu_slices.domain.model.texts import digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """A Job whose leader left the hosts: if it restarts, it comes back to them."""

    user: Occupant
    at: datetime
    sequence: int = 0
    """The position of the last report that had it on the hosts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The latest question to the relay about a pool's hosts."""

    number: int
    at: datetime
    """When it was first asked: an answer to it is as old as that."""
    close: bool
    """Whether they are to be closed to new pods, rather than opened again."""
    key: str = ""
    """Of one that opens them: the key that each is to carry; empty: any."""


MOST_BELIEVED = 10**12
"""No pool is asked about so often: a report of a higher number is not believed. Numbers never reach their bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """What the relay was last asked about a pool's hosts, and what it last reported (see `facts.HostsChanged`)."""

    usable: int = 0
    joined: int = 0
    closed: int = 0
    maintained: int = 0
    announced: Upcoming | None = None
    sound: int = 0
    keys: tuple[HostKey, ...] = ()
    """How many carry which key; none: that was not reported."""
    pods: tuple[JobPods, ...] = ()
    """Those of occupants, where it is known how they are."""
    occupants: tuple[Occupant, ...] = ()
    departures: tuple[Departure, ...] = ()
    """The Jobs that left lately and are on no other hosts of the slice, the last one at the end."""
    vacant_since: datetime | None = None
    """Since when nobody is known to be on them; None: somebody is, or nothing was reported."""
    sequence: int = 0
    """0: nothing was reported of this pool."""
    asked: Asked | None = None
    """None: nothing was asked, or what was counts no more."""
    highest: int = 0
    """The highest number that a question about these hosts is known to have had; 0: none is."""
    answered: int = 0
    """The highest number of a question that was answered; 0: none was."""
    ends_by: datetime | None = None
    """Until when pods have to end that are being deleted, for which the relay does not answer; None: none are known."""

    @property
    def known(self) -> bool:
        return self.sequence > 0

    @property
    def working(self) -> int:
        """How many work, whether or not they are closed to new pods; earlier relays tell only of those that are not."""
        return max(self.usable, self.sound)

    @property
    def closing(self) -> Asked | None:
        """The latest question, if it closes the hosts."""
        return self.asked if self.asked is not None and self.asked.close else None

    @property
    def overtaken(self) -> bool:
        """Whether the relay has seen a later question than the latest on record, and will not answer that."""
        return self.asked is not None and self.highest > self.asked.number

    def leave_soon(self, now: datetime) -> bool:
        """Return whether Google maintains the machine of one of them, or is about to."""
        return self.maintained > 0 or (self.announced is not None and self.announced.is_near(now))

    def lacking(self, key: str) -> int:
        """Return how many hosts are known to carry another key; empty: any will do."""
        return sum(each.hosts for each in self.keys if each.key != key) if key else 0

    def asked_to(self, *, close: bool, now: datetime, key: str = "") -> Hosts:
        """Return the hosts with a new question; its number is above all that are known."""
        asked = Asked(number=self.highest + 1, at=now, close=close, key=key)
        return replace(self, asked=asked, highest=asked.number)


NO_HOSTS = Hosts()


def digest_of(slice_id: ClaimId, attempt: int, hosts: Hosts) -> int:
    """Return a digest of a pool's hosts, 0 if there are none; equal sums of digests mean equal knowledge."""
    if not hosts.joined and not hosts.occupants:
        return 0
    pods = sorted(occupant.pod_uid for occupant in hosts.occupants)
    counts = f"{hosts.usable} {hosts.joined} {hosts.closed} {hosts.maintained} {hosts.sound}"
    counts += "".join(f" {each.key}={each.hosts}" for each in hosts.keys)
    counts += f" {hosts.announced.begins} {hosts.announced.stopping}" if hosts.announced is not None else ""
    text = f"{slice_id}/{attempt} {counts} {' '.join([*pods, *(each.text for each in hosts.pods)])}"
    return digest(text)


def key_of(slice_id: ClaimId, attempt: int) -> str:
    """Return the key of a pool's hosts in `facts.Listed`."""
    return f"{slice_id}-{attempt}"


Job = tuple[str, str, int]
"""The UID of its workload, its replicatedJob and its index."""


def job_of(occupant: Occupant) -> Job:
    return occupant.owner.uid, occupant.replicated_job, occupant.job_index


def jobs(occupants: Iterable[Occupant]) -> frozenset[Job]:
    """Return the Jobs, whichever of their pods is on the hosts."""
    return frozenset(map(job_of, occupants))

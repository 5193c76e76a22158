"""The hosts of an attempt's pool, as the relay last reported them, and who uses them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from tpu_slices.domain.model.facts import Occupant
from tpu_slices.domain.model.slices import SliceId


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """A Job whose leader left the hosts: if it restarts, it comes back to them."""

    user: Occupant
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """What the relay last reported of a pool's hosts (see `facts.HostsChanged`)."""

    usable: int = 0
    joined: int = 0
    closed: int = 0
    maintained: int = 0
    occupants: tuple[Occupant, ...] = ()
    departures: tuple[Departure, ...] = ()
    """The Jobs that left lately and are on no other hosts of the slice, the last one at the end."""
    vacant_since: datetime | None = None
    """Since when nobody is known to be on them; None: somebody is, or nothing was reported."""
    sequence: int = 0
    """0: nothing was reported of this pool."""
    answered: datetime | None = None
    """The latest question about these hosts that was answered."""
    ends_by: datetime | None = None
    """Until when pods have to end that are being deleted, for which the relay does not answer; None: none are known."""

    @property
    def known(self) -> bool:
        return self.sequence > 0


NO_HOSTS = Hosts()


def digest_of(slice_id: SliceId, attempt: int, hosts: Hosts) -> int:
    """Return a digest of a pool's hosts, 0 if there are none; equal sums of digests mean equal knowledge."""
    if not hosts.joined and not hosts.occupants:
        return 0
    pods = sorted(occupant.pod_uid for occupant in hosts.occupants)
    counts = f"{hosts.usable} {hosts.joined} {hosts.closed} {hosts.maintained}"
    text = f"{slice_id}/{attempt} {counts} {' '.join(pods)}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")


def key_of(slice_id: SliceId, attempt: int) -> str:
    """Return the key of a pool's hosts in `facts.HostsListed`."""
    return f"{slice_id}-{attempt}"


Job = tuple[str, str, int]
"""The UID of its workload, its replicatedJob and its index."""


def job_of(occupant: Occupant) -> Job:
    return occupant.owner.uid, occupant.replicated_job, occupant.job_index


def jobs(occupants: Iterable[Occupant]) -> frozenset[Job]:
    """Return the Jobs, whichever of their pods is on the hosts."""
    return frozenset(map(job_of, occupants))

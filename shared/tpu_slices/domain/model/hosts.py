"""What is told of the hosts of a pool beside how many there are: which keys they carry, and what Google announces."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

MOST_KEYS = 8
"""The most keys in one report of a pool's hosts. Hosts that nobody has to key carry one."""
AHEAD = timedelta(hours=1)
"""How long before the maintenance of a host nobody is given its slice any more."""


@dataclass(frozen=True, slots=True)
class HostKey:
    """A key, and how many hosts carry it."""

    key: str
    """Empty: no key."""
    hosts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Upcoming:
    """What Google announces of the machines of hosts, by labels, annotations and taints of their nodes."""

    begins: datetime | None = None
    """When the maintenance of the first of them may begin; None: no time is announced."""
    stopping: int = 0
    """How many are to be stopped within minutes, or have a window for maintenance that has begun."""

    @property
    def near_from(self) -> datetime | None:
        """From when on the maintenance is near; None: no time is announced."""
        return self.begins - AHEAD if self.begins is not None else None

    def is_near(self, now: datetime) -> bool:
        near_from = self.near_from
        return self.stopping > 0 or (near_from is not None and now >= near_from)


def of_all(hosts: Iterable[Upcoming | None]) -> Upcoming | None:
    """Return what is announced of several hosts; None: nothing of any."""
    every = [each for each in hosts if each is not None]
    begins = (each.begins for each in every if each.begins is not None)
    return Upcoming(begins=min(begins, default=None), stopping=sum(it.stopping for it in every)) if every else None

"""The Jobs that are on hosts without their leaders: those left or ended, and other pods of theirs hold chips. Pure.

Leaders are watched, other pods are not: in a big cluster these are thousands, of which nothing follows while their
leader runs. When a leader leaves a pool, its Job is taken to stay until the pods on the hosts were listed, and as long
as that list has pods of the Job, it is repeated.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from relay.objects import Pool
from tpu_slices.domain.model.facts import Occupant
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.domain.records.hosts import Job, job_of

_LONG_AGO = datetime.fromtimestamp(0, UTC)


class Stays:
    """By pool, the Jobs that stay on its hosts, each as it was known there first."""

    def __init__(self) -> None:
        self._of: dict[Pool, dict[Job, Occupant]] = {}
        self._since: dict[tuple[Pool, Job], datetime] = {}
        self._behind: dict[Pool, frozenset[Job]] = {}

    def left(self, pool: Pool, occupant: Occupant, now: datetime) -> None:
        """Let a Job stay that had its leader on these hosts."""
        self._of.setdefault(pool, {}).setdefault(job_of(occupant), occupant)
        self._since.setdefault((pool, job_of(occupant)), now)

    def came(self, occupant: Occupant) -> None:
        """Let a Job stay nowhere: its leader came to hosts. Where other pods of it are still, a look will find."""
        job = job_of(occupant)
        for pool in self.pools_of(occupant.owner.uid):
            self._since.pop((pool, job), None)
            self._of[pool].pop(job, None)
            if not self._of[pool]:
                del self._of[pool]

    def looked(self, pool: Pool, users: Iterable[Occupant], now: datetime) -> None:
        """Record the Jobs that have pods on these hosts, and no leader there."""
        before = self._of.pop(pool, {})
        found = {job_of(each): before.get(job_of(each), each) for each in users}
        for job in before.keys() - found.keys():
            self._since.pop((pool, job), None)
        for job in found:
            self._since.setdefault((pool, job), now)
        if found:
            self._of[pool] = found

    def since(self, pool: Pool, occupant: Occupant) -> datetime | None:
        """Return since when a Job stays on hosts without its leader."""
        return self._since.get((pool, job_of(occupant)))

    def leaves_behind(self, pool: Pool, users: Iterable[Occupant]) -> None:
        """Record the Jobs whose pods do not keep these hosts: their leaders wait in vain for them to be whole."""
        behind = frozenset(map(job_of, users))
        if behind:
            self._behind[pool] = behind
        else:
            self._behind.pop(pool, None)

    def behind(self, pool: Pool) -> frozenset[Job]:
        return self._behind.get(pool, frozenset())

    def forget(self, pool: Pool) -> None:
        """Forget a pool that has no hosts."""
        self.looked(pool, (), _LONG_AGO)
        self._behind.pop(pool, None)

    def of(self, pool: Pool) -> tuple[Occupant, ...]:
        return tuple(self._of.get(pool, {}).values())

    def pools_of(self, uid: WorkloadUid | None) -> frozenset[Pool]:
        """Return the pools on which Jobs of a workload stay; there are few at a time, of all workloads."""
        return frozenset(pool for pool, found in self._of.items() if any(job[0] == uid for job in found))

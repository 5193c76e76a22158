"""When it is looked who is on hosts that leaders left. Pure.

| a leader of a live Job                        | its Job                     | looked at              |
|-----------------------------------------------|-----------------------------|------------------------|
| left hosts, ended on one, or lost its node    | stays on the hosts          | after `vacated`        |
| - and others that share its slice are there   | is there by those           | no                     |
| other pods of its Job were found on the hosts | stays on the hosts          | again, by `look_every` |
| none was found                                | left the hosts: this is told| no more                |
| was found unknown, as the API server fails    | as before                   | again, by `look_every` |
| waits for `left_behind` while hosts of the    | leaves its other pods       | again, by `look_every` |
| pool are missing                              | behind: they keep no hosts  |                        |

A relay that starts looks at the hosts on which it sees no leader.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from relay.agenda import Agenda, Look, Timing
from relay.cluster_cache import ClusterCache
from relay.lookups.threads import Due
from relay.lookups.users import PodsOn, Users
from relay.objects import Leader, Pool, Workload
from tpu_slices.domain.model.facts import Occupant
from tpu_slices.domain.records.hosts import job_of


class Looking:
    """Schedules looks, and keeps in the cluster cache what they find."""

    def __init__(self, cache: ClusterCache, agenda: Agenda, timing: Timing) -> None:
        self._cache, self._agenda, self._timing = cache, agenda, timing

    def begin(self, now: datetime) -> None:
        """Look at all hosts without a leader: those of Jobs may have ended before the relay started."""
        for pool in self._cache.hosts.pools():
            if not self._cache.occupants(pool):
                self._agenda.schedule(Look(pool), now)

    def left(self, leaders: Iterable[Leader], now: datetime, pool: Pool | None = None) -> None:
        """Let live Jobs stay on hosts that their leaders left; `pool`: that of the node, which is gone."""
        for leader in leaders:
            occupant = self._cache.on_hosts(leader)
            for there in self._cache.pools_at(leader.node) if pool is None else (pool,):
                if occupant is not None and self._cache.without_leader(there, [occupant]):
                    self._cache.stays.left(there, occupant, now)
                    self._agenda.schedule(Look(there), now + self._timing.vacated)

    def came(self, leader: Leader) -> frozenset[Pool]:
        """Let a Job stay nowhere whose leader came to hosts; return where Jobs of its workload stayed."""
        occupant = self._cache.on_hosts(leader) if self._cache.pools_at(leader.node) else None
        if occupant is None:
            return frozenset()
        stayed = self._cache.stays.pools_of(occupant.owner.uid)
        self._cache.stays.came(occupant)
        return stayed

    def due(self, subject: Look) -> Iterator[Due]:
        """Yield the question who is on the hosts of a pool; nobody is if there are none."""
        asked = pods_on(subject.pool, self._cache)
        if asked.nodes:
            yield Due(subject, (), asked)
        else:
            self._cache.stays.forget(subject.pool)

    def looked(self, pool: Pool, users: Users | None, now: datetime) -> list[Workload]:
        """Record who is on the hosts of a pool, None: this could not be looked up; return workloads that are new."""
        cache, stays = self._cache, self._cache.stays
        if users is not None:
            found = cache.without_leader(pool, users.occupants)
            behind = [each for each in found if self._is_left_behind(pool, each, now)]
            stays.looked(pool, [each for each in found if each not in behind], now)
            stays.leaves_behind(pool, behind)
        if users is None or stays.of(pool) or stays.behind(pool):
            self._agenda.schedule(Look(pool), now + self._timing.look_every)
        return cache.calls_up(users.occupants) if users is not None else []

    def _is_left_behind(self, pool: Pool, occupant: Occupant, now: datetime) -> bool:
        """Return whether the pods of a Job keep no hosts: its leader waits in vain for the others of the pool."""
        stays = self._cache.stays
        since = stays.since(pool, occupant)
        for_long = since is not None and now - since >= self._timing.left_behind
        waits = self._cache.leader_waits(occupant) and self._cache.lacks_hosts(pool)
        return waits and (for_long or job_of(occupant) in stays.behind(pool))


def pods_on(pool: Pool, cache: ClusterCache) -> PodsOn:
    return PodsOn(pool, {host.node: host.ready for host in cache.hosts.of(pool)}, cache.stays.behind(pool))

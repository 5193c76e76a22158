"""The Jobs on the hosts of a pool, with all of their pods, and what is told of these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from relay.cluster_cache import ClusterCache
from relay.hosts.occupants import is_controlled
from relay.objects import Follower, Place, Pool, Workload
from relay.pods.counting import JobSeen, PodSeen, counted, pods_needed
from tpu_slices.domain.model.facts import Occupant
from tpu_slices.domain.model.pods import MOST_JOBS, JobPods


def job_pods_on(
    pool: Pool, cache: ClusterCache, told: Iterable[JobPods], now: datetime, settles: timedelta
) -> tuple[tuple[JobPods, ...], datetime | None]:
    """Return what is told of the pods of each occupant of a pool, and when that changes by itself; None: it does not.

    `told`: what was told of the pool last. `settles`: see `counting.counted`.
    """
    before = {each.pod_uid: each for each in told}
    found, changes = list[JobPods](), list[datetime]()
    for occupant in cache.occupants(pool)[:MOST_JOBS]:
        job = _job(occupant, pool, cache)
        if job is None:
            continue
        if job.running >= job.needed:
            cache.lacking_since[occupant.pod_uid] = None
        elif cache.lacking_since.get(occupant.pod_uid, now) is None:
            cache.lacking_since[occupant.pod_uid] = now
        lacking_since = cache.lacking_since.get(occupant.pod_uid)
        pods, at = counted(replace(job, lacking_since=lacking_since), before.get(occupant.pod_uid), now, settles)
        found += [pods] if pods is not None else []
        changes += [at] if at is not None else []
    return tuple(found), min(changes, default=None)


def pools_of(follower: Follower, cache: ClusterCache) -> frozenset[Pool]:
    """Return the pools on which a pod and the leaders of its Job are."""
    leaders = (each.node for each in cache.leaders.at(follower.workload, follower.place))
    return cache.pools_at(follower.node, *leaders)


def _job(occupant: Occupant, pool: Pool, cache: ClusterCache) -> JobSeen | None:
    """Return a Job with its pods; None: how many it needs is not known."""
    workload, place = cache.workload(occupant.owner.uid), Place(occupant.replicated_job, occupant.job_index)
    if workload is None:
        return None
    request = next((each for each in workload.requests if each.replicated_job == place.replicated_job), None)
    needed = pods_needed(request) if request is not None else 0
    if not needed:
        return None
    pods: Sequence[PodSeen] = [*cache.pods_of(workload, place), *_followers(workload, place, cache)]
    hosts = frozenset(host.node for host in cache.hosts.of(pool))
    return JobSeen(occupant.pod_uid, needed, pods, hosts)


def _followers(workload: Workload, place: Place, cache: ClusterCache) -> Iterator[Follower]:
    """Yield the pods beside a leader that its controller made, and no other of their labels."""
    beside = cache.followers.of(workload.name, place)
    return (each for each in beside if each.may_be_of(workload) and is_controlled(each, workload))

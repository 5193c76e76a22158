"""Whether the slices of a gang stand, so that its pods may start together. Pure.

A gang stands if each of its claims does:

| a claim                                                                                  | stands |
|------------------------------------------------------------------------------------------|--------|
| has a pool with as many hosts as its labels say that are usable, carry the key of the    | yes    |
| claim, and that no question keeps new pods off                                           |        |
| has a leader that is bound to a node, and neither ended nor is on its way out; of a      | yes    |
| JobSet, of the attempt that the pods are of which are held now                           |        |
| is of a Job that is over: its leader succeeded, or is gone since, and as many Jobs of    | yes    |
| its replicatedJob succeeded                                                              |        |
| is any other                                                                             | no     |

A leader that runs counts, as its Job may have been let go by a relay before this one, or may run on while another Job
of the gang is started anew. Nothing counts that the relay does not see itself: it asks nobody to start what stands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from relay.cluster_cache import ClusterCache
from relay.hosts.claims import claims_of
from relay.hosts.closing import Closing
from relay.hosts.occupants import is_controlled
from relay.objects import Follower, Leader, Place, Pool, Workload
from tpu_slices.domain.model.facts import TemplateRequest
from tpu_slices.domain.model.host_keys import within
from tpu_slices.domain.model.slices import WorkloadJob
from tpu_slices.domain.planning.keys import key_of
from tpu_slices.domain.planning.sharing import share_slice
from tpu_slices.wire.jobsets import RESTART_ATTEMPT
from tpu_slices.wire.workloads import is_count


@dataclass(frozen=True, slots=True)
class Missing:
    """A claim that does not stand."""

    place: Place
    key: str
    """That its hosts will carry."""


class Standing:
    """Judges gangs by what the relay sees."""

    def __init__(self, cache: ClusterCache, closing: Closing) -> None:
        self._cache, self._closing = cache, closing

    def missing(self, workload: Workload, gang: str, held: Collection[Leader | Follower]) -> Missing | None:
        """Return the first claim of a gang that does not stand; None: all do. `held`: its pods that are."""
        attempt = max((_attempt(each) for each in held if isinstance(each, Leader)), default=0)
        over = self._over(workload)
        for request, place in claims_of(workload, gang):
            key = self._key(workload, request, place)
            pods = [*self._cache.pods_of(workload, place)]
            is_over = all(each.status.ended for each in pods) if pods else place.replicated_job in over
            if not (is_over or self._has_hosts(key, workload) or _runs(pods, workload, attempt)):
                return Missing(place, key)
        return None

    def counted(self, workload: Workload, gang: str) -> tuple[int, int]:
        """Return how many slices of a gang stand, whoever is on them, and how many it has."""
        stand = [self._has_hosts(self._key(workload, *claim), workload) for claim in claims_of(workload, gang)]
        return sum(stand), len(stand)

    def _key(self, workload: Workload, request: TemplateRequest, place: Place) -> str:
        name, index = place
        owner = workload.ref.owner
        job = WorkloadJob(cluster=self._cache.cluster, owner=owner, replicated_job=name, job_index=index)
        return key_of(job, request.first_job, shared=share_slice(request))

    def _has_hosts(self, key: str, workload: Workload) -> bool:
        told = (key, within(workload.ref.owner.namespace, key)) if key else ()
        return any(self._is_whole(pool, each) for each in told for pool in self._cache.hosts.keyed(each))

    def _is_whole(self, pool: Pool, key: str) -> bool:
        hosts = self._cache.hosts.of(pool)
        expected = max((host.expected or 0 for host in hosts), default=0)
        fit = (host.usable and host.key == key and not self._closing.withholds(pool, host) for host in hosts)
        return 0 < expected <= sum(fit)

    def _over(self, workload: Workload) -> frozenset[str]:
        """Return the replicatedJobs of which all Jobs without a leader are over: as many have succeeded."""
        return frozenset(
            request.replicated_job
            for request in workload.requests
            if request.replicated_job in workload.succeeded
            and self._without_leader(workload, request) <= workload.succeeded[request.replicated_job]
        )

    def _without_leader(self, workload: Workload, request: TemplateRequest) -> int:
        """Return how many Jobs of a replicatedJob have no leader, with those whose leader succeeded."""
        places = (Place(request.replicated_job, index) for index in range(request.replicas))
        return sum(all(each.status.ended for each in self._cache.leaders.at(workload.name, place)) for place in places)


def _runs(pods: Iterable[Leader], workload: Workload, attempt: int) -> bool:
    alive = (each for each in pods if each.node is not None and not each.status.departing)
    return any(_attempt(each) >= attempt for each in alive if is_controlled(each, workload))


def _attempt(leader: Leader) -> int:
    """Return which start of its JobSet a leader is of, from 0 on."""
    said = dict(leader.asks.labels).get(RESTART_ATTEMPT, "")
    return int(said) if is_count(said) else 0

"""How claims that wait for slices are told: as their leader pods ask, or, where there are none, templates. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from relay.objects import Leader, Place, Workload
from tpu_slices.domain.model.facts import Reach, WaitingLeader
from tpu_slices.wire.workloads import beyond_template

Waiting = Mapping[Place, Leader | None]
"""As `ClusterCache.waiting` has it."""


def leaders_in_demand(workload: Workload, waiting: Waiting) -> Iterator[WaitingLeader]:
    """Yield the leaders that wait, in the order of their Jobs, without the labels that their templates have.

    Where a claim has no pod yet, its pods will reach the hosts that those of its gang do: the same policy judges them.
    """
    requests = {request.replicated_job: request for request in workload.requests}
    reach = {requests[each.replicated_job].gang: pod.asks.reach for each, pod in waiting.items() if pod is not None}
    for place in sorted(waiting):
        leader, request = waiting[place], requests[place.replicated_job]
        if leader is not None:
            yield beyond_template(replace(leader.asks, job_index=place.job_index), request)
        else:
            reached = reach.get(request.gang, Reach.OWN)
            yield WaitingLeader(replicated_job=place.replicated_job, job_index=place.job_index, reach=reached)


def mounted_volumes(waiting: Waiting) -> Mapping[str, tuple[str, ...]]:
    """Return the PersistentVolumeClaims that leaders mount, by replicatedJob; none of them is empty."""
    mounted: defaultdict[str, set[str]] = defaultdict(set)
    for place, leader in waiting.items():
        if leader is not None and leader.volumes:
            mounted[place.replicated_job].update(leader.volumes)
    return {replicated_job: tuple(sorted(names)) for replicated_job, names in mounted.items()}

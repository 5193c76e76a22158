"""What was told of each workload's demand: it is told again only if it differs, or if somebody asks. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from relay.objects import Place, Workload
from tpu_slices.domain.model.facts import TemplateRequest, WaitingLeader
from tpu_slices.domain.model.slices import ClusterId, Owner, WorkloadJob, WorkloadUid, claim_id
from tpu_slices.domain.records.workloads import demand_digest


@dataclass(slots=True)
class _Told:
    owner: Owner
    generation: int
    requests: tuple[TemplateRequest, ...]
    waiting: dict[Place, WaitingLeader]
    """Without those that stopped waiting since: that they did is told by what else they do, or by a list."""


class DemandTold:
    """By workload, as long as one of its leaders waits."""

    def __init__(self, cluster: ClusterId) -> None:
        self._cluster = cluster
        self._told: dict[WorkloadUid, _Told] = {}

    def is_told(self, workload: Workload, leaders: Sequence[WaitingLeader]) -> bool:
        told = self._told.get(workload.ref.owner.uid)
        known = told and (told.generation, told.requests, told.waiting)
        return known == (workload.ref.generation, workload.requests, _by_place(leaders))

    def tell(self, workload: Workload, leaders: Sequence[WaitingLeader]) -> None:
        owner, generation = workload.ref.owner, workload.ref.generation
        self._told[owner.uid] = _Told(owner, generation, workload.requests, _by_place(leaders))

    def ended(self, uid: WorkloadUid, place: Place) -> None:
        """Record that no leader of a Job waits any more."""
        if uid in self._told:
            self._told[uid].waiting.pop(place, None)

    def forget(self, uid: WorkloadUid) -> None:
        self._told.pop(uid, None)

    def digests(self, waiting: Callable[[WorkloadUid], Collection[Place]]) -> Mapping[WorkloadUid, int]:
        """Return the digest of the slices that leaders wait for, each for that of its own Job, by workload.

        `waiting`: the Jobs whose leaders wait now. Those of which nothing was told yet do not count.
        """
        digests = {uid: self._digest(told, waiting(uid)) for uid, told in self._told.items()}
        return {uid: digest for uid, digest in digests.items() if digest}

    def _digest(self, told: _Told, waiting: Collection[Place]) -> int:
        return demand_digest(
            {claim_id(self._job(told.owner, place)): it.reach for place, it in told.waiting.items() if place in waiting}
        )

    def _job(self, owner: Owner, place: Place) -> WorkloadJob:
        return WorkloadJob(
            cluster=self._cluster, owner=owner, replicated_job=place.replicated_job, job_index=place.job_index
        )


def _by_place(leaders: Sequence[WaitingLeader]) -> dict[Place, WaitingLeader]:
    return {Place(each.replicated_job, each.job_index): each for each in leaders}

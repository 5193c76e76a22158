"""What was told of each workload's demand: a leader is told again only if it differs, or if somebody asks. Pure.

| a leader that waits now                                   | is          |
|-----------------------------------------------------------|-------------|
| was told as it is: at this generation, with these         | told        |
| requests, and has waited since                            |             |
| has no pod, of a gang, and was told likewise, as its pod  | told        |
| asked or as its template does                             |             |
| is of a Job of which nothing was ever told                | new         |
| is of one that was told, but not since the last renewal   | to join it  |
| is of one that the last renewal told, or of none that the | a renewal   |
| workload asks for                                         |             |
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from relay.objects import Place, Workload
from tpu_slices.domain.model.facts import TemplateRequest, WaitingLeader
from tpu_slices.domain.model.slices import ClusterId, Owner, WorkloadJob, WorkloadUid, claim_id
from tpu_slices.domain.planning.sharing import slices_of
from tpu_slices.domain.records.workloads import demand_digest


class Unlike(NamedTuple):
    """The leaders that wait, and were not told as they are."""

    new: Sequence[WaitingLeader]
    joining: Sequence[WaitingLeader]
    renewed: Sequence[WaitingLeader]


@dataclass(frozen=True, slots=True)
class _Basis:
    generation: int
    requests: tuple[TemplateRequest, ...]


class _As(NamedTuple):
    leader: WaitingLeader
    basis: _Basis


@dataclass(slots=True)
class _Told:
    owner: Owner
    basis: _Basis
    waiting: dict[Place, _As] = field(default_factory=dict)
    """Without those that came to hosts since, which is told of the hosts."""
    over: set[Place] = field(default_factory=set)
    """Those of them that stopped waiting since otherwise: the functions learn it by a list only."""
    renewals: dict[Place, int] = field(default_factory=dict)
    """By Job that was ever told, the number of the renewal that told it last."""
    renewal: int = 0
    repeat_at: datetime | None = None
    """When all is told again; None: not before somebody asks."""


class DemandTold:
    """By workload, until it is gone."""

    def __init__(self, cluster: ClusterId) -> None:
        self._cluster = cluster
        self._told: dict[WorkloadUid, _Told] = {}

    def unlike(self, workload: Workload, leaders: Sequence[WaitingLeader]) -> Unlike:
        """Return those of the leaders that were not told as they are."""
        told = self._told.get(workload.ref.owner.uid)
        if told is None:
            return Unlike(leaders, (), ())
        basis, found = _basis(workload, told), Unlike([], [], [])
        slices = {request.replicated_job: slices_of(request) for request in workload.requests}
        for leader in leaders:
            place = place_of(leader)
            known, last = told.waiting.get(place), told.renewals.get(place)
            if known is not None and place not in told.over and _says(known, leader, basis):
                continue
            if last is None:
                kind = found.new if place.job_index < slices.get(place.replicated_job, 0) else found.renewed
            else:
                kind = found.renewed if last == told.renewal else found.joining
            assert isinstance(kind, list)
            kind.append(leader)
        return found

    def tell(self, workload: Workload, leaders: Iterable[WaitingLeader]) -> None:
        """Record that these leaders are told to wait, beside those that were told before."""
        owner = workload.ref.owner
        told = self._told.setdefault(owner.uid, _Told(owner, _Basis(workload.ref.generation, workload.requests)))
        told.basis = _basis(workload, told)
        for leader in leaders:
            place = place_of(leader)
            told.waiting[place], told.renewals[place] = _As(leader, told.basis), told.renewal
            told.over.discard(place)

    def renew(self, uid: WorkloadUid) -> None:
        """Let every Job be told once more."""
        if (told := self._told.get(uid)) is not None:
            told.renewal += 1

    def is_replaced(self, workload: Workload, place: Place) -> bool:
        """Return whether the last renewal told of a Job that waits now, though its workload did not change since."""
        told = self._told.get(workload.ref.owner.uid)
        return told is not None and (told.renewals.get(place), told.basis.generation) == (
            told.renewal,
            workload.ref.generation,
        )

    def came(self, uid: WorkloadUid, place: Place) -> None:
        """Record that the leader of a Job came to hosts, and no other one of it waits."""
        if (told := self._told.get(uid)) is not None:
            told.waiting.pop(place, None)
            told.over.discard(place)

    def ended(self, uid: WorkloadUid, place: Place) -> None:
        """Record that no leader of a Job waits any more, and none came to hosts."""
        if (told := self._told.get(uid)) is not None and place in told.waiting:
            told.over.add(place)

    def ended_but(self, uid: WorkloadUid, waiting: Collection[Place]) -> None:
        """Record that none but these Jobs wait: those of a gang without pods do no longer than its leaders."""
        if (told := self._told.get(uid)) is not None:
            told.over |= told.waiting.keys() - waiting

    def listed(self, waiting: Callable[[WorkloadUid], Collection[Place]]) -> None:
        """Record that demand is listed: the functions forget what is not in the list."""
        for uid, told in self._told.items():
            if told.over:
                for place in told.over - {*waiting(uid)}:
                    del told.waiting[place]
                told.over &= told.waiting.keys()

    def repeats(self, uid: WorkloadUid, now: datetime) -> bool:
        """Return whether all is to be told again."""
        told = self._told.get(uid)
        return told is not None and told.repeat_at is not None and told.repeat_at <= now

    def repeat_at(self, uid: WorkloadUid) -> datetime | None:
        told = self._told.get(uid)
        return told.repeat_at if told is not None else None

    def repeat(self, uid: WorkloadUid, at: datetime | None) -> None:
        """Let all be told again at a time; None: not before somebody asks."""
        if (told := self._told.get(uid)) is not None:
            told.repeat_at = at

    def forget(self, uid: WorkloadUid) -> None:
        self._told.pop(uid, None)

    def digests(self, waiting: Callable[[WorkloadUid], Collection[Place]]) -> Mapping[WorkloadUid, int]:
        """Return the digest of the slices that leaders wait for, each for that of its own Job, by workload.

        `waiting`: the Jobs whose leaders wait now. Those of which nothing was told yet do not count.
        """
        digests = {uid: self._digest(told, waiting(uid)) for uid, told in self._told.items()}
        return {uid: digest for uid, digest in digests.items() if digest}

    def _digest(self, told: _Told, waiting: Collection[Place]) -> int:
        there = ((place, it.leader) for place, it in told.waiting.items() if place in waiting)
        return demand_digest({claim_id(self._job(told.owner, place)): leader.reach for place, leader in there})

    def _job(self, owner: Owner, place: Place) -> WorkloadJob:
        return WorkloadJob(
            cluster=self._cluster, owner=owner, replicated_job=place.replicated_job, job_index=place.job_index
        )


def _basis(workload: Workload, told: _Told) -> _Basis:
    """Return what leaders are told with: the same object as before if it is alike, as they may be thousands."""
    basis = _Basis(workload.ref.generation, workload.requests)
    return told.basis if told.basis == basis else basis


def _says(known: _As, leader: WaitingLeader, basis: _Basis) -> bool:
    """Return whether what was told of a Job says all of its leader: one without a pod adds nothing to one that has."""
    return known.basis == basis and (leader.node_selector is None or known.leader == leader)


def place_of(leader: WaitingLeader) -> Place:
    return Place(leader.replicated_job, leader.job_index)

"""How the slices of a gang are, as far as the gang is concerned. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from tpu_slices.domain.model.reasons import LIMITED, OF_WAITING_GANGS, Phase, Reason
from tpu_slices.domain.model.slices import ClaimId, WorkloadJob, claim_id
from tpu_slices.domain.records.limiters import CapacityPool
from tpu_slices.domain.records.queues import capacity_pool_of
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord

RAN_OUT = frozenset(
    {
        Reason.STOCKOUT,
        Reason.RESOURCES_EXHAUSTED,
        Reason.RESERVATION_UNAVAILABLE,
        Reason.RESERVATION_AWAITED,
        Reason.AWAITING_CAPACITY,
        Reason.AWAITING_TURN,
        Reason.RESERVATION_NOT_OPEN,
    }
)
"""The reasons of slices whose capacity pool cannot provide hosts now, whoever tries."""


@dataclass(frozen=True, slots=True)
class Members:
    """The slices of a gang's claims, by how they are."""

    standing: Sequence[SliceRecord] = ()
    """All hosts are usable, whether or not somebody is on them."""
    used: Sequence[SliceRecord] = ()
    """The Job is on the hosts."""
    stuck: Sequence[SliceRecord] = ()
    """They cannot be made now."""
    made: Sequence[SliceRecord] = ()
    """They are being made, or wait for nothing but an operation."""
    over: int = 0
    """How many claims need none: their Jobs are over."""
    unread: Collection[ClaimId] = ()
    """The claims whose records cannot be read: neither standing nor stuck, as far as is known."""

    @property
    def satisfied(self) -> int:
        """How many claims need nothing more."""
        return len({each.last_claim for each in (*self.standing, *self.used)}) + self.over

    @property
    def chips(self) -> int:
        """The chips of what stands or is being made."""
        return sum({each.id: each.chips_bought for each in self._all}.values())

    @property
    def lacks(self) -> tuple[str, ...]:
        """The capacity pools that cannot provide slices of it."""
        pools = {capacity_pool_of(each.spec) for each in self.stuck if each.reason in RAN_OUT and each.spec}
        return tuple(sorted(pools))

    @property
    def holds(self) -> frozenset[str]:
        """The capacity pools of its slices that stand."""
        return frozenset(capacity_pool_of(each.made_as) for each in self.standing if each.made_as)

    @property
    def wants(self) -> frozenset[str]:
        """The capacity pools of all of its claims."""
        return frozenset(capacity_pool_of(each.spec) for each in self._all if each.spec)

    @property
    def of_reservations(self) -> Mapping[CapacityPool, int]:
        """The hosts that all of its claims need of each reservation."""
        needed: Counter[CapacityPool] = Counter()
        for each in {it.last_claim: it for it in self._all}.values():
            if each.spec is not None and each.spec.capacity.reservation:
                needed[capacity_pool_of(each.spec)] += each.spec.hosts
        return needed

    @property
    def costs_nothing(self) -> bool:
        """Whether holding what stands costs nothing beyond what is paid anyway: it is of reservations."""
        return all(each.made_as is not None and each.made_as.capacity.reservation for each in self.standing)

    def made_since(self, stuck_since: datetime) -> datetime | None:
        """Return since when none of its slices has been stuck, as some were; None: their transitions do not tell."""
        ceased = (at for each in (*self.made, *self.standing) for at in _ceased_to_be_stuck(each))
        return max((at for at in ceased if at > stuck_since), default=None)

    @property
    def _all(self) -> Sequence[SliceRecord]:
        return (*self.standing, *self.used, *self.stuck, *self.made)


def members_of(
    workload: WorkloadRecord, name: str, slices: Collection[SliceRecord], unreadable: Collection[ClaimId] = ()
) -> Members:
    """Return the slices of a gang, each in the first row that holds; `slices`: those of all claims on record.

    `unreadable`: the claims on record whose slices cannot be read.

    | the claim                                                        | its slice is  |
    |------------------------------------------------------------------|---------------|
    | cannot be read                                                   | not known     |
    | was scaled away, or shares another's slice                       | none of it    |
    | is on record no more, as its slice has been gone for long        | over          |
    | has a slice that its Job is on                                   | used          |
    | has a slice that is READY, and does not go                       | standing      |
    | no leader waits for it: its Job is over, or has not come         | over          |
    | waits, is blocked or refused, or for its turn or for capacity;   | stuck         |
    | was released by an operator                                      |               |
    | was not looked at since its gang waited                          | being made    |
    | else                                                             | being made    |
    """
    jobs = workload.gangs[name].replicated_jobs
    unread = _claims_among(unreadable, workload, name)
    standing, used, stuck, made, over = [], [], [], [], _forgotten(workload, name, slices, unread)
    for record in slices:
        has = not record.unclaimed and workload.has(record.replicated_job, record.job_index)
        if record.replicated_job not in jobs or not has:
            continue
        if record.occupied:
            used.append(record)
        elif record.phase is Phase.READY and not record.goes:
            standing.append(record)
        elif workload.demand.get(record.last_claim) is None:
            over += 1
        elif _is_stuck(record):
            stuck.append(record)
        else:
            made.append(record)
    return Members(standing, used, stuck, made, over, unread)


def _forgotten(workload: WorkloadRecord, name: str, slices: Iterable[SliceRecord], unread: Collection[ClaimId]) -> int:
    """Return how many claims of a gang nobody waits for whose records have expired."""
    known = {*unread, *(each.last_claim for each in slices)}
    gone = {claim for claim, told_at in workload.demand.items() if told_at is None and claim not in known}
    return len(_claims_among(gone, workload, name))


def _claims_among(some: Collection[ClaimId], workload: WorkloadRecord, name: str) -> Sequence[ClaimId]:
    """Return which claims of some are of a gang."""
    if not some:
        return ()
    gang = workload.gangs[name]
    jobs = (
        WorkloadJob(cluster=workload.cluster, owner=workload.owner, replicated_job=each, job_index=index)
        for each in gang.replicated_jobs
        for index in range(gang.claims)
    )
    has = (claim_id(job) for job in jobs if workload.has(job.replicated_job, job.job_index))
    return [claim for claim in has if claim in some]


def _is_stuck(record: SliceRecord) -> bool:
    released = record.release_requested and record.reason not in OF_WAITING_GANGS
    return released or _cannot_be_made(record.phase, record.reason)


def _cannot_be_made(phase: Phase, reason: Reason) -> bool:
    waits = phase in {Phase.WAITING, Phase.BLOCKED, Phase.REFUSED} or reason in RAN_OUT
    return waits and reason not in OF_WAITING_GANGS


def _ceased_to_be_stuck(record: SliceRecord) -> Iterator[datetime]:
    for before, after in pairwise(record.transitions):
        if _cannot_be_made(before.phase, before.reason) and not _cannot_be_made(after.phase, after.reason):
            yield after.at


def refused_for_good(members: Members) -> SliceRecord | None:
    """Return a slice that is refused as it is requested, whatever others hold; None: none is."""
    refused = (
        each
        for each in (*members.stuck, *members.made)
        if each.claim.refusal is not None or (each.phase is Phase.REFUSED and each.reason not in _RETRIED)
    )
    return next(refused, None)


def withheld(members: Members) -> str:
    """Return which claim gets no slice as an operator decided so, as a clause; empty: none."""
    for each in (*members.stuck, *members.made):
        if each.release_requested:
            return f"{each.job.job_name} was released by an operator"
        if each.hold and not each.chips_bought:
            return f"{each.job.job_name} is held by an operator"
    return ""


_RETRIED = frozenset({*LIMITED, *OF_WAITING_GANGS})

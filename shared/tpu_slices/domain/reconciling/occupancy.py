"""Who uses a slice's hosts, by what the relay counts there. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tpu_slices.domain.model.facts import HostsChanged, Listed, Occupant, WorkloadState
from tpu_slices.domain.model.slices import ClaimId, WorkloadJob, WorkloadUid, claim_id, slice_id
from tpu_slices.domain.reconciling.evidence import contradicts
from tpu_slices.domain.records.hosts import MOST_BELIEVED, Asked, Departure, Hosts, job_of, jobs, key_of
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord

MOST_DEPARTURES = 20
"""How many Jobs that left lately are kept: each host runs at most one leader."""

Workloads = Mapping[WorkloadUid, WorkloadRecord]


def counted(hosts: Hosts, fact: HostsChanged, now: datetime) -> Hosts | None:
    """Return the hosts after a count, or None if it is outdated.

    One with which the hosts still agree is not: what it answers counts, also if positions went back meanwhile.
    """
    after = Hosts(
        usable=fact.usable,
        joined=fact.joined,
        closed=fact.closed,
        maintained=fact.maintained,
        announced=fact.announced,
        sound=fact.sound,
        keys=fact.keys,
        pods=fact.pods,
        occupants=fact.occupants,
        departures=_departures(hosts, fact.occupants, now),
        vacant_since=None if fact.occupants else hosts.vacant_since or now,
        sequence=max(fact.sequence, hosts.sequence),
        asked=hosts.asked,
        highest=max(hosts.highest, min(fact.highest, MOST_BELIEVED)),
        answered=_answered(hosts.asked, fact) or hosts.answered,
        ends_by=fact.ends_by or (hosts.ends_by if fact.answers is None else None),
    )
    unasked = replace(after, answered=hosts.answered, highest=hosts.highest)
    outdated = fact.sequence < hosts.sequence and unasked != hosts
    return None if outdated else after


def _answered(asked: Asked | None, fact: HostsChanged) -> int | None:
    """Return the number of the question on record, if a count answers that."""
    answers = asked is not None and (fact.answers, fact.asked_at) == (asked.number, asked.at)
    return asked.number if asked is not None and answers else None


def _departures(hosts: Hosts, occupants: tuple[Occupant, ...], now: datetime) -> tuple[Departure, ...]:
    present = jobs(occupants)
    left = (Departure(user=occupant, at=now, sequence=hosts.sequence) for occupant in hosts.occupants)
    away = {
        (each.user.owner.uid, each.user.replicated_job, each.user.job_index): each
        for each in (*hosts.departures, *left)
    }
    return tuple(each for job, each in away.items() if job not in present)[-MOST_DEPARTURES:]


@dataclass(frozen=True, slots=True)
class Users:
    """The live Jobs that use the hosts of a pool."""

    present: tuple[Occupant, ...]
    restarting: tuple[Departure, ...]
    """They left so lately that they may be restarting."""

    def __bool__(self) -> bool:
        return bool(self.present or self.restarting)

    @property
    def jobs(self) -> tuple[Occupant, ...]:
        return (*self.present, *(each.user for each in self.restarting))

    def without(self, owner: WorkloadUid) -> Users:
        """Return the users that are not Jobs of this workload."""
        return Users(
            tuple(each for each in self.present if each.owner.uid != owner),
            tuple(each for each in self.restarting if each.user.owner.uid != owner),
        )

    def without_return_of(self, job: WorkloadJob) -> Users:
        """Return the users without a Job that left, and does not come back."""
        left = (job.owner.uid, job.replicated_job, job.job_index)
        return Users(self.present, tuple(each for each in self.restarting if job_of(each.user) != left))


def users(hosts: Hosts, workloads: Workloads, now: datetime, restart_grace: timedelta) -> Users:
    """Return the users of a pool.

    A Job of a workload without a record counts as live: missing information never causes a deletion. One whose leader
    was on the hosts at a later generation than that of its workload's suspension was resumed since. A group that was
    scaled away uses the hosts while its pods are there, and does not come back to them.
    """
    return Users(
        tuple(occupant for occupant in hosts.occupants if _is_live(occupant, workloads.get(occupant.owner.uid))),
        tuple(
            each
            for each in hosts.departures
            if now - each.at < restart_grace and _may_return(each.user, workloads.get(each.user.owner.uid))
        ),
    )


def may_use(occupant: Occupant, workloads: Workloads) -> bool:
    """Return whether a Job is of a workload on record that needs it."""
    workload = workloads.get(occupant.owner.uid)
    return workload is not None and _is_live(occupant, workload) and _is_of(occupant, workload)


def _is_live(occupant: Occupant, workload: WorkloadRecord | None) -> bool:
    if workload is None or workload.state is WorkloadState.ACTIVE:
        return True
    return workload.state is WorkloadState.SUSPENDED and occupant.generation > workload.generation


def _is_of(occupant: Occupant, workload: WorkloadRecord) -> bool:
    return workload.has(occupant.replicated_job, occupant.job_index)


def _may_return(left: Occupant, workload: WorkloadRecord | None) -> bool:
    kept = workload is None or left.generation > workload.generation or _is_of(left, workload)
    return kept and _is_live(left, workload)


@dataclass(frozen=True, slots=True)
class NewCount:
    """A count of a slice's hosts that is not outdated, and the slice as it was before."""

    record: SliceRecord
    after: Hosts
    now: datetime

    @property
    def before(self) -> Hosts:
        return self.record.current.hosts

    @property
    def is_news(self) -> bool:
        """Whether it changes the slice's record."""
        return not self.before.known or replace(self.after, sequence=self.before.sequence) != self.before

    @property
    def is_answer(self) -> bool:
        """Whether it answers a question about the hosts, for which a decision waits, or tells that none will be."""
        return (self.after.answered, self.after.overtaken) != (self.before.answered, self.before.overtaken)

    @property
    def can_wait(self) -> bool:
        """Whether the slice need not be looked at: nobody came, left or answered, and its pool's operation goes on.

        | its pool is   | and                      |
        |---------------|--------------------------|
        | being created | not all hosts are usable |
        | being deleted | hosts are there          |

        That it ended is told by GKE; where that is lost, the last host tells that it may have.
        """
        record = self.record
        if record.made_in_steps or self.before.occupants or self.after.occupants or self.is_answer:
            return False
        current = record.current
        if record.goes:
            return current.delete_requested_at is not None and self.after.joined > 0
        missing = record.made_as is not None and self.after.usable < record.made_as.hosts
        return missing and current.under_creation and current.operation is not None

    @property
    def contradicts(self) -> bool:
        """Whether what was seen of the pool is not so any more: it is to be looked at."""
        made_as = self.record.made_as
        whole = made_as is not None and self.after.usable >= made_as.hosts
        return contradicts(self.record.current, self.after, whole=whole)

    @property
    def arrivals(self) -> tuple[Occupant, ...]:
        """The occupants whose pods were not on the hosts before."""
        known = _pods(self.before)
        return tuple(each for each in self.after.occupants if each.pod_uid not in known)

    @property
    def guests(self) -> Mapping[ClaimId, Occupant]:
        """The Jobs on the hosts but that whose claim has the slice, or had it last, in the order of their arrival."""
        cluster = self.record.cluster
        others = (each for each in self.after.occupants if not self.record.is_of(each))
        return {claim_id(each.workload_job(cluster)): each for each in others}

    def is_outdated_for(self, own: SliceRecord) -> bool:
        """Return whether a Job was seen on the slice that its claim has later than on these hosts."""
        hosts, position = own.current.hosts, self.after.sequence
        left = any(each.sequence > position for each in hosts.departures if own.is_of(each.user))
        return left or (own.occupied and hosts.sequence > position)


def _pods(hosts: Hosts) -> frozenset[str]:
    return frozenset(each.pod_uid for each in hosts.occupants)


def settled_demand(count: NewCount, having: Mapping[ClaimId, SliceRecord]) -> Iterator[tuple[WorkloadUid, ClaimId]]:
    """Yield the demand of the Jobs that came to a slice's hosts: each waits no more, until that is confirmed again.

    Not by a count that is outdated for the Job: it may wait since then. `having`: the slices of the Jobs' claims.
    """
    for occupant in count.arrivals:
        claim = claim_id(occupant.workload_job(count.record.cluster))
        job = count.record if claim == count.record.claimed_by else having.get(claim)
        if job is None or not count.is_outdated_for(job):
            yield occupant.owner.uid, claim


def with_hosts(count: NewCount) -> SliceRecord:
    """Return the slice's record with the reported hosts."""
    record = count.record
    due = record.next_reconcile_at if count.can_wait else count.now
    look_at = count.now if count.contradicts else record.look_at
    changed_at = record.changed_at if count.after.pods == count.before.pods else count.now
    record = replace(record, next_reconcile_at=due, look_at=look_at, changed_at=changed_at)
    return record.with_current(hosts=count.after).used(count.now)


def with_report(record: SliceRecord, fact: HostsChanged, now: datetime) -> SliceRecord:
    """Return the slice's record with a report of the hosts of one of its pools, if that is not outdated."""
    after = counted(record.current.hosts, fact, now) if slice_id(fact.slice_id, fact.attempt) == record.id else None
    if after is None:
        return record
    count = NewCount(record, after, now)
    return with_hosts(count) if count.is_news else record


def lets_deletion_go_on(record: SliceRecord, fact: HostsChanged) -> bool:
    """Return whether a report is the answer that a deletion waits for, and nobody is on the hosts."""
    return record.goes and _answered(record.current.hosts.closing, fact) is not None and not fact.occupants


def lowered(record: SliceRecord, listed: Listed) -> SliceRecord:
    """Return the record with no higher position than that of a list of hosts that disagrees with it.

    Positions go back if etcd is restored: counts since then would be outdated for ever. Those of Jobs that left are
    lowered, too.
    """
    lower = (replace(it, sequence=min(it.sequence, listed.sequence)) for it in record.current.hosts.departures)
    record = record.with_current(hosts=replace(record.current.hosts, departures=tuple(lower)))
    hosts = record.current.hosts
    agrees = record.hosts_digest == listed.digests.get(key_of(record.maker, record.attempt), 0)
    if hosts.sequence > listed.sequence and not agrees:
        return record.with_current(hosts=replace(hosts, sequence=listed.sequence))
    return record

"""Who uses a slice's hosts, by what the relay counts there. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.facts import HostsChanged, Listed, Occupant, WorkloadState
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import ClaimId, SliceId, WorkloadJob, WorkloadUid, claim_id, slice_id
from tpu_slices.domain.reconciling.evidence import contradicts
from tpu_slices.domain.records.hosts import MOST_BELIEVED, Asked, Departure, Hosts, RunsOn, job_of, jobs, key_of
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
    left = (Departure(user=occupant, at=now) for occupant in hosts.occupants)
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


def _is_live(occupant: Occupant, workload: WorkloadRecord | None) -> bool:
    if workload is None or workload.state is WorkloadState.ACTIVE:
        return True
    return workload.state is WorkloadState.SUSPENDED and occupant.generation > workload.generation


def _may_return(left: Occupant, workload: WorkloadRecord | None) -> bool:
    kept = workload is None or left.generation > workload.generation or workload.has(left.job_index)
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
        """The other slices whose Jobs are on the hosts, left them, or lost their place there to others."""
        left = [each for each in self.before.occupants if each not in self.after.occupants]
        displaced = [each.user for each in self.before.departures] if self.arrivals else []
        others = (each for each in (*displaced, *left, *self.after.occupants) if not self.record.interchangeable(each))
        return {claim_id(each.workload_job(self.record.cluster)): each for each in others}

    def is_of(self, place: RunsOn) -> bool:
        return (place.slice_id, place.attempt) == (self.record.maker, self.record.attempt)

    def is_outdated_for(self, job: SliceRecord) -> bool:
        """Return whether a slice's Job, if it came to these hosts, was seen on others later than that."""
        place, position = job.claim.runs_on, self.after.sequence
        elsewhere = place is not None and place.sequence > position and not self.is_of(place)
        return elsewhere or (job.current.hosts.sequence > position and job.on(job.current.hosts))


def _pods(hosts: Hosts) -> frozenset[str]:
    return frozenset(each.pod_uid for each in hosts.occupants)


def settled_demand(count: NewCount, guests: Mapping[ClaimId, SliceRecord]) -> Iterator[tuple[WorkloadUid, ClaimId]]:
    """Yield the demand that arrivals on a slice's hosts settle until it is confirmed again; `guests`: their records.

    | arrived                       | settled                                                                       |
    |-------------------------------|-------------------------------------------------------------------------------|
    | its own Job                   | the demand for this slice                                                     |
    | a sibling of its template     | the demand for this slice: who waits for it now needs the one that was left   |
    | another Job                   | the demand for that Job's slice, and for this one, whose Job may run elsewhere|
    | a Job, by an outdated count   | not the demand for that Job's slice: it may wait since then                   |
    """
    record = count.record
    for occupant in count.arrivals:
        own = claim_id(occupant.workload_job(record.cluster))
        job = record if own == record.maker else guests.get(own)
        sibling = own != record.maker and record.interchangeable(occupant)
        if not sibling and (job is None or not count.is_outdated_for(job)):
            yield occupant.owner.uid, own
        if own != record.maker:
            yield record.owner.uid, record.maker


def with_hosts(count: NewCount) -> SliceRecord:
    """Return the slice's record with the reported hosts; its Job runs nowhere else once it came to them."""
    record = count.record
    came = record.on(replace(count.after, occupants=count.arrivals))
    place = None if came and not count.is_outdated_for(record) else record.claim.runs_on
    due = record.next_reconcile_at if count.can_wait else count.now
    look_at = count.now if count.contradicts else record.look_at
    changed = replace(record, next_reconcile_at=due, look_at=look_at)
    return changed.with_claim(runs_on=place).with_current(hosts=count.after)


def with_report(record: SliceRecord, fact: HostsChanged, now: datetime) -> SliceRecord:
    """Return the slice's record with a report of the hosts of one of its pools, if that is not outdated."""
    after = counted(record.current.hosts, fact, now) if fact.attempt == record.attempt else None
    if after is None:
        return record
    count = NewCount(record, after, now)
    return with_hosts(count) if count.is_news else record


def lets_deletion_go_on(record: SliceRecord, fact: HostsChanged) -> bool:
    """Return whether a report is the answer that a deletion waits for, and concerns no other slice."""
    hosts = record.current.hosts
    if not record.goes or _answered(hosts.closing, fact) is None or fact.occupants:
        return False
    were_there = (*hosts.occupants, *(each.user for each in hosts.departures))
    return all(record.interchangeable(each) for each in were_there)


def lowered(record: SliceRecord, listed: Listed) -> SliceRecord:
    """Return the record with no higher position than that of a list of hosts that disagrees with it.

    Positions go back if etcd is restored: counts since then would be outdated for ever.
    """
    hosts = record.current.hosts
    agrees = record.hosts_digest == listed.digests.get(key_of(record.maker, record.attempt), 0)
    if hosts.sequence > listed.sequence and not agrees:
        record = record.with_current(hosts=replace(hosts, sequence=listed.sequence))
    place = record.claim.runs_on
    if place is not None and place.sequence > listed.sequence:
        record = record.with_claim(runs_on=replace(place, sequence=listed.sequence))
    return record


def with_place(guest: SliceRecord, count: NewCount, occupant: Occupant) -> SliceRecord | None:
    """Return a slice's record after its Job was reported on the hosts of another slice, or is gone from them.

    None: nothing changes.

    | the Job                                 | runs on                                                           |
    |-----------------------------------------|-------------------------------------------------------------------|
    | came to the hosts                       | these hosts, with their chips, unless it was seen elsewhere later |
    | was on them already                     | these hosts, if nothing is known of where it runs                 |
    | left them a moment ago, or before       | these hosts, left: it may restart there                           |
    | left them before, and others came       | none                                                              |
    """
    here = guest.claim.runs_on if guest.claim.runs_on and count.is_of(guest.claim.runs_on) else None
    place: RunsOn | None
    if occupant.pod_uid in _pods(count.after):
        known = here is not None and (here.pod_uid, here.left_at) == (occupant.pod_uid, None)
        if known or (here is None and _is_elsewhere(guest, count, occupant)):
            return None
        place = _place(count, occupant)
    elif here is None:
        return None
    elif here.left_at is None:
        place = replace(here, left_at=count.now, sequence=min(here.sequence, count.after.sequence))
    elif count.after.occupants:
        place = None
    else:
        return None
    return replace(guest.with_claim(runs_on=place), next_reconcile_at=count.now)


def _is_elsewhere(guest: SliceRecord, count: NewCount, occupant: Occupant) -> bool:
    """Return whether a Job runs on other hosts than those that were counted, as far as is known.

    Of a pod that is listed for two pools, TPU Provisioner's one was reported for two slices: it is the Job's own.
    """
    at_home = guest.on(guest.current.hosts)
    if count.is_outdated_for(guest) or (at_home and occupant.pod_uid in _pods(guest.current.hosts)):
        return True
    known = guest.claim.runs_on is not None and guest.claim.runs_on.left_at is None
    return occupant not in count.arrivals and (known or at_home or not guest.wanted)


def _place(count: NewCount, occupant: Occupant) -> RunsOn:
    host = count.record
    return RunsOn(
        slice_id=host.maker,
        attempt=host.attempt,
        pod_uid=occupant.pod_uid,
        chips=host.chips_bought,
        since=count.now,
        sequence=count.after.sequence,
    )


def kept_for(before: SliceRecord, after: SliceRecord) -> SliceId | None:
    """Return the slice that was kept for a Job which is not wanted any more: it may go now; None: none was."""
    place = before.claim.runs_on
    ended = place is not None and before.wanted and not after.wanted
    return slice_id(place.slice_id, place.attempt) if place is not None and ended else None


def slices_of_guests(record: SliceRecord) -> Iterator[ClaimId]:
    """Yield the slices of the Jobs that took a slice's hosts, if its own Job is not there."""
    if not record.on(record.current.hosts):
        yield from (claim_id(each.workload_job(record.cluster)) for each in record.current.hosts.occupants)


def is_left(guest: SliceRecord, record: SliceRecord, now: datetime, limits: Limits) -> bool:
    """Return whether the Job of a slice, whose hosts a guest took, gets those that were made for the guest.

    | the guest's slice                                                                    | gets them                |
    |--------------------------------------------------------------------------------------|--------------------------|
    | was never bought, or is given up or released                                         | no                       |
    | is held by an operator, blocked or broken: it may stay as it is for good             | no                       |
    | is of another request                                                                | no                       |
    | somebody is on its hosts                                                             | no: who came is a guest  |
    | stands with all hosts usable, and for `restart_grace` no leader came since the first  | no: something hinders it |
    | else: it is being created, its hosts join, or the leader is about to be scheduled     | yes                      |
    """
    if guest.current.create_requested_at is None or not guest.wanted or guest.spec is None or record.spec is None:
        return False
    if guest.hold or guest.reason is Reason.POOL_BROKEN or guest.phase not in {Phase.PROVISIONING, Phase.READY}:
        return False
    if guest.spec.fingerprint != record.spec.fingerprint or guest.current.hosts.occupants:
        return False
    vacant_since = guest.current.hosts.vacant_since
    stands = guest.current.hosts.usable >= guest.spec.hosts
    return not stands or vacant_since is None or now - vacant_since < limits.restart_grace

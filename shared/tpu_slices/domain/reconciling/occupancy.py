"""Who uses a slice's hosts, by the relay's reports. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tpu_slices.domain.model.facts import HostsChanged, Occupant, WorkloadState
from tpu_slices.domain.model.hosts import Departure, Hosts, jobs
from tpu_slices.domain.model.records import RunsOn, SliceRecord
from tpu_slices.domain.model.slices import SliceId, WorkloadUid, slice_id
from tpu_slices.domain.model.workloads import WorkloadRecord

MOST_DEPARTURES = 20
"""How many Jobs that left lately are kept: each host runs at most one leader."""

Workloads = Mapping[WorkloadUid, WorkloadRecord]


def reported(hosts: Hosts, fact: HostsChanged, now: datetime) -> Hosts | None:
    """Return the hosts after a report, or None if it is outdated or says nothing new."""
    if fact.sequence < hosts.sequence:
        return None
    after = Hosts(
        usable=fact.usable,
        joined=fact.joined,
        closed=fact.closed,
        occupants=fact.occupants,
        departures=_departures(hosts, fact.occupants, now),
        vacant_since=None if fact.occupants else hosts.vacant_since or now,
        sequence=fact.sequence,
        answered=max((at for at in (hosts.answered, fact.answers) if at is not None), default=None),
    )
    return None if hosts.known and replace(after, sequence=hosts.sequence) == hosts else after


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


def users(hosts: Hosts, workloads: Workloads, now: datetime, restart_grace: timedelta) -> Users:
    """Return the users of a pool.

    A Job of a workload without a record counts as live: missing information never causes a deletion. One whose leader
    was on the hosts at a later generation than that of its workload's suspension was resumed since.
    """
    return Users(
        tuple(occupant for occupant in hosts.occupants if _is_live(occupant, workloads.get(occupant.owner.uid))),
        tuple(
            each
            for each in hosts.departures
            if now - each.at < restart_grace and _is_live(each.user, workloads.get(each.user.owner.uid))
        ),
    )


def _is_live(occupant: Occupant, workload: WorkloadRecord | None) -> bool:
    if workload is None or workload.state is WorkloadState.ACTIVE:
        return True
    return workload.state is WorkloadState.SUSPENDED and occupant.generation > workload.generation


def arrived(before: Hosts, after: Hosts) -> tuple[Occupant, ...]:
    """Return the occupants whose pods were not on the hosts before."""
    known = {occupant.pod_uid for occupant in before.occupants}
    return tuple(occupant for occupant in after.occupants if occupant.pod_uid not in known)


def settled_demand(record: SliceRecord, arrivals: tuple[Occupant, ...]) -> Iterator[tuple[WorkloadUid, SliceId]]:
    """Yield the demand that arrivals on a slice's hosts settle until it is confirmed again.

    | arrived                       | settled                                                                       |
    |-------------------------------|-------------------------------------------------------------------------------|
    | its own Job                   | the demand for this slice                                                     |
    | a sibling of its template     | nothing: each of them has a slice, and one still needs the other slice        |
    | another Job                   | the demand for that Job's slice, and for this one, whose Job may run elsewhere|
    """
    for occupant in arrivals:
        own = slice_id(occupant.workload_job(record.cluster))
        if own == record.id or not record.interchangeable(occupant):
            yield occupant.owner.uid, own
            yield record.owner.uid, record.id


def with_hosts(record: SliceRecord, attempt: int, hosts: Hosts, now: datetime) -> SliceRecord:
    """Return the record with the hosts of one of its attempts."""
    record = replace(record, runs_on=None if record.on(hosts) else record.runs_on, next_reconcile_at=now)
    if attempt != record.attempt:
        terminating = tuple(
            replace(each, hosts=hosts) if each.attempt == attempt else each for each in record.terminating
        )
        return replace(record, terminating=terminating)
    return replace(record, hosts=hosts)


def moved(record: SliceRecord, before: Hosts, after: Hosts) -> Mapping[SliceId, Occupant]:
    """Return the other slices whose Jobs came to a slice's hosts, left them, or lost their place there to others."""
    left = [occupant for occupant in before.occupants if occupant not in after.occupants]
    came = arrived(before, after)
    displaced = [each.user for each in before.departures] if came else []
    others = (each for each in (*displaced, *left, *came) if not record.interchangeable(each))
    return {slice_id(each.workload_job(record.cluster)): each for each in others}


def with_place(
    guest: SliceRecord, host: SliceRecord, attempt: int, occupant: Occupant, now: datetime
) -> SliceRecord | None:
    """Return a slice's record after its Job came to the hosts of another slice or left them; None if nothing changes.

    | the Job                                 | runs on                                       |
    |-----------------------------------------|-----------------------------------------------|
    | is on the hosts                         | these hosts, with their chips                 |
    | left them a moment ago, or before       | these hosts, left: it may restart there       |
    | left them before, and others came       | none                                          |
    """
    hosts = dict(host.all_hosts)[attempt]
    place = guest.runs_on
    if any(each.pod_uid == occupant.pod_uid for each in hosts.occupants):
        there = (host.id, attempt, occupant.pod_uid)
        if place is not None and place.left_at is None and (place.slice_id, place.attempt, place.pod_uid) == there:
            return None
        place = _place(host, attempt, occupant, now)
    elif place is None or (place.slice_id, place.attempt) != (host.id, attempt):
        return None
    elif place.left_at is None:
        place = replace(place, left_at=now)
    elif hosts.occupants:
        place = None
    else:
        return None
    return replace(guest, runs_on=place, next_reconcile_at=now)


def _place(host: SliceRecord, attempt: int, occupant: Occupant, now: datetime) -> RunsOn:
    chips = host.own_chips
    if attempt != host.attempt:
        chips = next((each.chips for each in host.terminating if each.attempt == attempt), 0)
    return RunsOn(slice_id=host.id, attempt=attempt, pod_uid=occupant.pod_uid, chips=chips, since=now)

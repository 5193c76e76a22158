"""From a fact to what is wanted: remember it, then nudge the slices that it touches."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import assert_never

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import (
    Answer,
    Fact,
    Heartbeat,
    HostsChanged,
    JobSetChanged,
    LeaderBound,
    SlicesWanted,
)
from tpu_slices.domain.model.slices import ClusterId, JobSetUid, SliceId, slice_id
from tpu_slices.domain.model.workloads import JobSetRecord
from tpu_slices.domain.reconciling import demand, occupancy
from tpu_slices.domain.reconciling.inventory import heard
from tpu_slices.flows.next_reconcile import clear
from tpu_slices.flows.retrying import again
from tpu_slices.ports.deps import Desk
from tpu_slices.ports.errors import Permanent, StaleRecord
from tpu_slices.ports.store import Change, Stored


def receive(fact: Fact, cluster: ClusterId, desk: Desk) -> None:
    """Take a fact in. Permanent: the cluster is not known to us. Temporary: let it come back."""
    settings = desk.store.settings(cluster)
    if settings is None:
        raise Permanent(f'no settings for cluster "{cluster}": write clusters/{cluster}, or stop its relay')
    again(lambda: _take_in(fact, settings, desk), desk.clock)


def _take_in(fact: Fact, settings: ClusterSettings, desk: Desk) -> None:
    match fact:
        case SlicesWanted():
            _wanted(fact, settings, desk)
        case JobSetChanged() | Answer():
            _changed(fact, settings.cluster, desk)
        case HostsChanged() | LeaderBound():
            _about_a_slice(fact, settings.cluster, desk)
        case Heartbeat():
            watch = desk.store.watch(settings.cluster)
            known = watch.value if watch else None
            desk.store.commit(Change(watch, heard(known, fact, settings.cluster, desk.clock.now())))
        case _:
            assert_never(fact)


def _wanted(fact: SlicesWanted, settings: ClusterSettings, desk: Desk) -> None:
    cluster, uid = settings.cluster, fact.jobset.uid
    known = desk.store.jobsets(cluster, [uid]).get(uid)
    waiting = [slice_id(demand.job_of(cluster, fact.jobset, leader)) for leader in demand.legitimate(fact)]
    slices = desk.store.slices(cluster, {*waiting, *(known.value.wants if known else ())})
    records = {id_: stored.value for id_, stored in slices.items()}
    change = demand.wanted(
        fact,
        known.value if known else None,
        records,
        desk.clock.now(),
        settings,
    )
    if change is None:
        _make_up(known, desk)
        return
    revision, *_ = desk.store.commit(
        Change(known, change.jobset), *(Change(slices.get(id_), record) for id_, record in change.slices.items())
    )
    claimed = [slice_id(claim.job) for claim in demand.claims(fact, cluster, records)]
    _nudge(Stored(change.jobset, revision), {*waiting, *claimed}, desk)


def _changed(fact: JobSetChanged | Answer, cluster: ClusterId, desk: Desk) -> None:
    known = desk.store.jobsets(cluster, [fact.jobset.uid]).get(fact.jobset.uid)
    record = demand.changed(fact, known.value if known else None, desk.clock.now(), cluster)
    if record is None:
        _make_up(known, desk)
        return
    revision, *_ = desk.store.commit(Change(known, record))
    _nudge(Stored(record, revision), record.wants, desk)


def _about_a_slice(fact: HostsChanged | LeaderBound, cluster: ClusterId, desk: Desk) -> None:
    """Take in what is news about a slice; one without a record is left to the audit, which finds its pool."""
    stored = desk.store.slices(cluster, [fact.slice_id]).get(fact.slice_id)
    if stored is None:
        return
    now = desk.clock.now()
    doubts: tuple[tuple[JobSetUid, SliceId], ...] = ()
    if isinstance(fact, HostsChanged):
        record = demand.counted(fact, stored.value, now)
    else:
        record = occupancy.bound(fact, stored.value, now)
        doubts = occupancy.doubtful(fact, stored.value) if record is not None else ()
    if record is not None:
        desk.store.commit(Change(stored, record), *_doubts(doubts, cluster, desk))
    if record is not None or stored.value.due_at is not None:
        desk.bus.nudge(cluster, {fact.slice_id, *(slice_ for _, slice_ in doubts)})


def _doubts(wants: Collection[tuple[JobSetUid, SliceId]], cluster: ClusterId, desk: Desk) -> Iterator[Change]:
    """Give what to save so that wants are not fresh until they are confirmed again."""
    jobsets = desk.store.jobsets(cluster, [uid for uid, _ in wants]) if wants else {}
    for uid, slice_ in wants:
        stored = jobsets.get(uid)
        if stored is not None and stored.value.wants.get(slice_) is not None:
            yield Change(stored, occupancy.doubted(stored.value, slice_))


def _make_up(known: Stored[JobSetRecord] | None, desk: Desk) -> None:
    """Late news changes nothing; but if the nudges of an earlier one were lost, they are made up for."""
    if known is not None and known.value.due_at is not None:
        _nudge(known, known.value.wants, desk)


def _nudge(jobset: Stored[JobSetRecord], slices: Collection[SliceId], desk: Desk) -> None:
    """Nudge, then clear the outbox."""
    desk.bus.nudge(jobset.value.cluster, slices)
    try:
        desk.store.commit(Change(jobset, replace(jobset.value, due_at=None)))
    except StaleRecord:  # it may have been reported on meanwhile
        clear(jobset.value, desk)

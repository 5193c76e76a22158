"""Compares what the relay sees with the records, and asks about what differs.

| a heartbeat's digest of a family | then                                                                              |
|----------------------------------|-----------------------------------------------------------------------------------|
| is that of the records           | these are confirmed                                                               |
| is another, or is not there, for | the relay is asked for a list, by the sweep                                       |
| three minutes                    |                                                                                   |
| is of a relay's first heartbeat  | the relay is asked for a list of each family, at once                             |

| a part of a list has             | then                                                                              |
|----------------------------------|-----------------------------------------------------------------------------------|
| what is not on record so         | the relay is asked to repeat it; demand on record is forgotten meanwhile          |
| not what is on record            | workloads are asked about; demand is forgotten; hosts are gone                    |
| what is on record, all of it     | the records are confirmed                                                         |
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import Family, Heartbeat, Listed
from tpu_slices.domain.model.questions import AnyQuestion, ListQuestion, RepeatQuestion
from tpu_slices.domain.model.slices import ClusterId, WorkloadUid
from tpu_slices.domain.reconciling.inventory import QUESTIONS_PER_LIST, lacking, questions, to_be_listed, to_be_repeated
from tpu_slices.domain.records.heartbeats import SILENT_AFTER, RelayHeartbeat, with_heartbeat, with_listed
from tpu_slices.flows import edits
from tpu_slices.flows.hosts import hosts_listed
from tpu_slices.flows.mirror.listing import confirm_mirror, with_mirror_compared
from tpu_slices.ports.deps import IntakeDeps, ReconcileDeps
from tpu_slices.ports.store import Change, Stored

UNDER_WAY = timedelta(seconds=30)
"""What was told of a workload so shortly before or after a list may not be in it, or not on record."""
MOST_FORGOTTEN = 500
"""The most workloads whose demand one part of a list changes; it confirms nothing if there are more."""


def heard(
    beat: Heartbeat, stored: Stored[RelayHeartbeat] | None, told_at: datetime, cluster: ClusterId, deps: IntakeDeps
) -> None:
    """Record a heartbeat, and ask for all lists if it is a relay's first one: what happened before may be lost.

    `stored`: the last one.
    """
    now, recorded = deps.clock.now(), deps.store.digests(cluster) if beat.digests else {}
    before = stored.value if stored else RelayHeartbeat.of(cluster)
    after = with_heartbeat(before, beat, recorded, told_at)
    if after is not before:
        after = with_mirror_compared(after, beat, told_at, deps)
    asked = tuple(Family) if beat.first else ()
    deps.store.commit(Change(stored, _asked(after, asked, now)))
    _ask(asked, now, cluster, deps)
    if after.mirror is not None and after.mirror.agreed_at == told_at:
        confirm_mirror(cluster, told_at, deps.publisher)
    _wake_if_stale(before, after, deps)


def ask_for_lists(cluster: ClusterId, deps: IntakeDeps) -> int:
    """Ask the relay to list what has differed from the records for a while; return the number of questions."""
    stored, now = deps.store.heartbeat(cluster), deps.clock.now()
    families = to_be_listed(stored.value, now) if stored is not None else ()
    if stored is not None and families:
        deps.store.commit(Change(stored, _asked(stored.value, families, now)))
        _ask(families, now, cluster, deps)
    return len(families)


def _asked(heartbeat: RelayHeartbeat, families: Collection[Family], now: datetime) -> RelayHeartbeat:
    for family in families:
        heartbeat = heartbeat.with_compared(family, asked_at=now)
    return heartbeat


def _ask(families: Collection[Family], now: datetime, cluster: ClusterId, deps: IntakeDeps) -> None:
    if families:
        deps.publisher.ask(cluster, [ListQuestion(family=family, asked_at=now) for family in families])


def listed(fact: Listed, told_at: datetime, cluster: ClusterId, deps: IntakeDeps) -> None:
    """Compare a part of a list with the records. It may come late, twice, before or after the others, or never."""
    match fact.family:
        case Family.WORKLOADS:
            agreed = _workloads_listed(fact, cluster, deps)
        case Family.DEMAND:
            agreed = _demand_listed(fact, told_at, cluster, deps)
        case Family.HOSTS:
            agreed = hosts_listed(fact, cluster, deps)
    if not agreed:
        return
    stored = deps.store.heartbeat(cluster)
    before = stored.value if stored else RelayHeartbeat.of(cluster)
    after = with_listed(before, fact, told_at)
    deps.store.commit(Change(stored, after))
    _wake_if_stale(before, after, deps)


def _wake_if_stale(before: RelayHeartbeat, after: RelayHeartbeat, deps: IntakeDeps) -> None:
    """Reconcile slices whose demand became stale, if it is confirmed again after a long time."""
    last, now = before.demand_confirmed_at, after.demand_confirmed_at
    if last is None or now is None or now - last <= SILENT_AFTER:
        return
    settings = deps.store.settings(after.cluster)
    if settings is not None and now - last > settings.limits.demand_ttl:
        edits.wake(after.cluster, deps)


def _workloads_listed(fact: Listed, cluster: ClusterId, deps: IntakeDeps) -> bool:
    """Ask about workloads that a part of the list lacks, or has otherwise than the records; return whether none is.

    Nothing is stored of it: the answers decide.
    """
    after, up_to = (WorkloadUid(key) if key is not None else None for key in (fact.after, fact.up_to))
    recorded = {uid: it.digest for uid, it in deps.store.live_standings(cluster, after, up_to)}
    unlike = fact.unlike(recorded)
    if not unlike:
        return True
    records = deps.store.workloads(cluster, lacking(fact, recorded))
    asked: list[AnyQuestion] = [*questions(fact, [stored.value for stored in records.values()])]
    asked += to_be_repeated(fact, unlike)
    if asked:
        deps.publisher.ask(cluster, asked)
    return False


def _demand_listed(fact: Listed, told_at: datetime, cluster: ClusterId, deps: IntakeDeps) -> bool:
    """Forget demand on record that a part of the list has otherwise, unless it is under way; return whether all was.

    Slices without demand are not bought, and keep their places in the queue. Of the demand that the list has, the
    function forgets only what it asks the relay to tell again. Slices for which no leader waits are reconciled.
    """
    recorded = deps.store.demand_digests(cluster)
    unlike = fact.unlike(recorded)
    gone = [key for key in unlike if not fact.digests.get(key)][:MOST_FORGOTTEN]
    asked = to_be_repeated(fact, unlike)
    again = [key for question in asked for key in question.keys]
    forgotten = [WorkloadUid(key) for key in (*gone, *again) if key in recorded]
    for stored in deps.store.workloads(cluster, forgotten).values() if forgotten else ():
        known = stored.value
        times = [at for at in known.demand.values() if at is not None]
        if not times or max(times) > told_at - UNDER_WAY:
            continue
        deps.store.commit(Change(stored, replace(known, demand=dict.fromkeys(known.demand))))
        if known.owner.uid not in fact.digests:
            waited_for = (slice_ for slice_, at in known.demand.items() if at is not None)
            deps.publisher.request_reconcile(cluster, sorted(waited_for))
    if asked:
        deps.publisher.ask(cluster, asked)
    return recorded.keys() & set(unlike) <= set(forgotten)


def ask_under_new_settings(settings: ClusterSettings, deps: ReconcileDeps) -> bool:
    """Ask for all demand again once the settings have changed: what was refused may be allowed now.

    Return whether they have.
    """
    stored = deps.store.heartbeat(settings.cluster)
    if stored is None or stored.value.settings_version == settings.version:
        return False
    known = stored.value.settings_version
    uids = [*deps.store.demand_digests(settings.cluster), *_declared(settings, deps)] if known else []
    parts = [uids[first : first + QUESTIONS_PER_LIST] for first in range(0, len(uids), QUESTIONS_PER_LIST)]
    deps.publisher.ask(settings.cluster, [RepeatQuestion(family=Family.DEMAND, keys=tuple(part)) for part in parts])
    deps.store.commit(Change(stored, replace(stored.value, settings_version=settings.version)))
    return True


def _declared(settings: ClusterSettings, deps: ReconcileDeps) -> Collection[WorkloadUid]:
    """Return the TPUNodeGroups that have slices, which are part of no list of demand."""
    kept = deps.store.kept_slices(settings.cluster) if settings.self_managed else ()
    return {each.value.owner.uid for each in kept if each.value.owner.kind.declares}

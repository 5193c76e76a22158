"""Compares the relay's lists of workloads and of demand with the records, and asks about what differs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import DemandListed, WorkloadsListed
from tpu_slices.domain.model.questions import AnyQuestion, RepeatQuestion
from tpu_slices.domain.model.slices import ClusterId, WorkloadUid
from tpu_slices.domain.reconciling.inventory import (
    QUESTIONS_PER_LIST,
    lacking,
    questions,
    to_be_repeated,
    with_demand_listed,
)
from tpu_slices.flows import edits
from tpu_slices.flows.heartbeats import change_heartbeat
from tpu_slices.ports.deps import IntakeDeps, ReconcileDeps
from tpu_slices.ports.store import Change

UNDER_WAY = timedelta(seconds=30)
"""What was told of a workload so shortly before or after a list may not be in it, or not on record."""
MOST_FORGOTTEN = 500
"""The most workloads that one part of a list changes; it confirms nothing if there are more."""


def demand_listed(fact: DemandListed, told_at: datetime, settings: ClusterSettings, deps: IntakeDeps) -> None:
    """Confirm the demand on record that agrees with a part of the list, and what is under way.

    Demand that does not agree is forgotten: its slices are not bought, and keep their places in the queue. What the
    list has of it is told again; slices for which no leader waits are reconciled. After a time without lists, slices
    whose demand became stale are reconciled, too.
    """
    cluster = settings.cluster
    unlike = _unlike(fact, cluster, deps)
    asked = [uid for uid in unlike if fact.digests.get(uid)]
    for stored in deps.store.workloads(cluster, unlike[:MOST_FORGOTTEN]).values():
        known = stored.value
        times = [at for at in known.demand.values() if at is not None]
        if not times or max(times) > told_at - UNDER_WAY:
            continue
        deps.store.commit(Change(stored, replace(known, demand=dict.fromkeys(known.demand))))
        if known.owner.uid not in fact.digests:
            waited_for = (slice_ for slice_, at in known.demand.items() if at is not None)
            deps.publisher.request_reconcile(cluster, sorted(waited_for))
    if asked:
        deps.publisher.ask(cluster, [RepeatQuestion(uids=tuple(asked[:MOST_FORGOTTEN]))])
    if len(unlike) <= MOST_FORGOTTEN:
        heartbeat = deps.store.heartbeat(cluster)
        last = heartbeat.value.demand_confirmed_at if heartbeat else None
        change_heartbeat(lambda known, _: with_demand_listed(known, fact, told_at), cluster, deps)
        if last is not None and told_at - last > settings.limits.demand_ttl:
            edits.wake(cluster, deps)


def ask_under_new_settings(settings: ClusterSettings, deps: ReconcileDeps) -> None:
    """Ask for all demand again once the settings have changed: what was refused may be allowed now."""
    stored = deps.store.heartbeat(settings.cluster)
    if stored is None or stored.value.settings_version == settings.version:
        return
    known = stored.value.settings_version
    uids = [*deps.store.demand_digests(settings.cluster), *_declared(settings, deps)] if known else []
    parts = [uids[first : first + QUESTIONS_PER_LIST] for first in range(0, len(uids), QUESTIONS_PER_LIST)]
    deps.publisher.ask(settings.cluster, [RepeatQuestion(uids=tuple(part)) for part in parts])
    deps.store.commit(Change(stored, replace(stored.value, settings_version=settings.version)))


def _declared(settings: ClusterSettings, deps: ReconcileDeps) -> Collection[WorkloadUid]:
    """Return the TPUNodeGroups that have slices, which are part of no list of demand."""
    kept = deps.store.kept_slices(settings.cluster) if settings.self_managed else ()
    return {each.value.owner.uid for each in kept if each.value.owner.kind.declares}


def _unlike(fact: DemandListed, cluster: ClusterId, deps: IntakeDeps) -> list[WorkloadUid]:
    """Return the workloads that are not on record as the list has them; one call, if all are."""
    if fact.parts == 1 and deps.store.demand_digest(cluster) == sum(fact.digests.values()):
        return []
    recorded = deps.store.demand_digests(cluster)
    within = _within(recorded, fact)
    return sorted(uid for uid in {*within, *fact.digests} if recorded.get(uid) != fact.digests.get(uid))


def _within(uids: Collection[WorkloadUid], fact: DemandListed) -> set[WorkloadUid]:
    after, up_to = fact.after, fact.up_to
    return {uid for uid in uids if (after is None or uid > after) and (up_to is None or uid <= up_to)}


def workloads_listed(fact: WorkloadsListed, cluster: ClusterId, deps: IntakeDeps) -> None:
    """Ask about JobSets that a part of the list lacks, or has otherwise than the records. Nothing is stored of it.

    A part may come late, twice, before or after the others, or never: it is complete for its range, and the answers
    decide.
    """
    recorded = {uid: it.digest for uid, it in deps.store.live_standings(cluster, fact.after, fact.up_to)}
    records = deps.store.workloads(cluster, lacking(fact, recorded))
    asked: list[AnyQuestion] = [*questions(fact, [stored.value for stored in records.values()])]
    asked += to_be_repeated(fact, recorded)
    if asked:
        deps.publisher.ask(cluster, asked)

"""The sweep, each minute: reconcile what is due, settle slots, check the inventory if due, and report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.domain.model.slices import ClusterId, SliceId
from tpu_slices.domain.model.workloads import WorkloadRecord
from tpu_slices.domain.reconciling.inventory import (
    INVENTORY_CHECK_EVERY,
    InventoryFindings,
    RelayHeartbeat,
    check_inventory,
    suspicions,
)
from tpu_slices.domain.reconciling.limiter import Slot
from tpu_slices.flows import slots
from tpu_slices.flows.next_reconcile import clear
from tpu_slices.flows.report import Reported, report_due
from tpu_slices.flows.retrying import retry_on_conflict
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.store import Change, Stored

PAGE = 500
"""The most slices, and JobSets, that one sweep reads as due; the earliest due come first, the others a minute later."""
SLOT_GRACE = timedelta(minutes=2)
"""How long a slot may be taken before it is on its slice's record: it is taken before the decision is saved."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did, for the log."""

    requested: int
    asked: int
    adopted: int
    left_out: int
    reported: tuple[Reported, ...]
    failures: tuple[str, ...]


def sweep(deps: ReconcileDeps) -> Swept:
    """Request reconciles of what is due, check each cluster, and report; errors of one cluster do not stop others."""
    requested = _request_due(deps)
    asked, adopted, left_out = 0, 0, 0
    failures: list[str] = []
    for cluster in deps.store.clusters():
        try:
            settings = deps.store.settings(cluster)
            if settings is None:
                continue
            requested += retry_on_conflict(partial(_settle_slots, settings, deps), deps.clock)
            findings, questions = retry_on_conflict(partial(_check_inventory_if_due, settings, deps), deps.clock)
        except (Temporary, Permanent) as error:
            failures.append(f"{cluster}: {error}")
            continue
        asked += questions
        adopted += len(findings.adopted)
        left_out += findings.left_out
    reported, unreported = report_due(deps)
    return Swept(requested, asked, adopted, left_out, tuple(reported), (*failures, *unreported))


def _request_due(deps: ReconcileDeps) -> int:
    now = deps.clock.now()
    due: dict[ClusterId, set[SliceId]] = defaultdict(set)
    for record in deps.store.due_slices(now, PAGE):
        due[record.cluster].add(record.id)
    workloads = deps.store.due_workloads(now, PAGE)
    for jobset in workloads:
        due[jobset.cluster].update(jobset.demand)
    for cluster, slices in due.items():
        deps.publisher.request_reconcile(cluster, sorted(slices))
    for jobset in workloads:
        clear(jobset, deps)
    return sum(len(slices) for slices in due.values())


def _settle_slots(settings: ClusterSettings, deps: ReconcileDeps) -> int:
    """Request reconciles where GKE's operation ended, read in one call, and free slots left over by a crash."""
    taken = deps.store.slots(settings.cluster)
    if not taken:
        return 0
    records = deps.store.slices(settings.cluster, [slot.value.slice_id for slot in taken])
    ended = deps.backend.ended_operations(settings)
    finished: list[SliceId] = []
    for slot in taken:
        stored = records.get(slot.value.slice_id)
        if stored is None or stored.value.slot != slot.value.number:
            _free_if_left(slot, settings, deps)
        elif stored.value.operation in ended:
            finished.append(stored.value.id)
    if finished:
        deps.publisher.request_reconcile(settings.cluster, finished)
    return len(finished)


def _free_if_left(slot: Stored[Slot], settings: ClusterSettings, deps: ReconcileDeps) -> None:
    if deps.clock.now() - slot.value.taken_at > SLOT_GRACE:
        slots.free(slot, settings, deps)


def _check_inventory_if_due(settings: ClusterSettings, deps: ReconcileDeps) -> tuple[InventoryFindings, int]:
    now = deps.clock.now()
    heartbeat = deps.store.heartbeat(settings.cluster)
    if (
        heartbeat is not None
        and heartbeat.value.next_inventory_check_at is not None
        and heartbeat.value.next_inventory_check_at > now
    ):
        return InventoryFindings(), 0
    live = [stored.value for stored in deps.store.live_workloads(settings.cluster)]
    questions = suspicions(live, heartbeat.value if heartbeat else None, now)
    findings = _compare(live, settings, deps, now)
    if questions:
        deps.publisher.ask(settings.cluster, questions)
    after = replace(
        heartbeat.value if heartbeat else RelayHeartbeat(cluster=settings.cluster),
        next_inventory_check_at=now + INVENTORY_CHECK_EVERY,
    )
    deps.store.commit(Change(heartbeat, after))
    return findings, len(questions)


def _compare(
    live: Iterable[WorkloadRecord], settings: ClusterSettings, deps: ReconcileDeps, now: datetime
) -> InventoryFindings:
    """Check the inventory and write the findings; each write is guarded by the revision that the check read."""
    cluster = settings.cluster
    pools = deps.backend.inventory(settings)
    kept = {stored.value.id: stored for stored in deps.store.kept_slices(cluster)}
    kept.update(deps.store.slices(cluster, {pool.slice_id for pool in pools} - kept.keys()))
    workloads = {record.owner.uid: record for record in live}
    uids = {stored.value.owner.uid for stored in kept.values()} | {pool.job.owner.uid for pool in pools}
    known = deps.store.workloads(cluster, uids - workloads.keys())
    workloads.update({uid: stored.value for uid, stored in known.items()})
    findings = check_inventory(workloads, {id_: stored.value for id_, stored in kept.items()}, pools, now)
    for placeholder in findings.placeholders:
        deps.store.commit(Change(None, placeholder))
    for adopted in findings.adopted:
        deps.store.commit(Change(None, adopted))
    for before, after in findings.mended:
        deps.store.commit(Change(kept[before.id], after))
    _request_found(findings, cluster, deps)
    return findings


def _request_found(findings: InventoryFindings, cluster: ClusterId, deps: ReconcileDeps) -> None:
    found: list[SliceRecord] = [*findings.adopted, *(after for _, after in findings.mended)]
    if found:
        deps.publisher.request_reconcile(cluster, [record.id for record in found])

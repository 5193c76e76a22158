"""Each minute: what is due, what ended unheard, and now and then whether the books agree."""

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
"""How many due slices one sweep nudges; the longest due come first, the rest next minute."""
SLOT_GRACE = timedelta(minutes=2)
"""How long a slot may be held before its slice's record says so: the time between taking and remembering."""


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
    """Nudge what is due everywhere, look after each cluster, and report; one cluster's trouble stops no other."""
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
        except (Temporary, Permanent) as trouble:
            failures.append(f"{cluster}: {trouble}")
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
    """Settle every running operation with one question to GKE, and free the slots that a crash left taken."""
    taken = deps.store.slots(settings.cluster)
    if not taken:
        return 0
    records = deps.store.slices(settings.cluster, [slot.value.slice_id for slot in taken])
    ended = deps.backend.ended_operations(settings)
    over: list[SliceId] = []
    for slot in taken:
        stored = records.get(slot.value.slice_id)
        if stored is None or stored.value.slot != slot.value.number:
            _free_if_left(slot, settings, deps)
        elif stored.value.operation in ended:
            over.append(stored.value.id)
    if over:
        deps.publisher.request_reconcile(settings.cluster, over)
    return len(over)


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
    """Lay the books side by side and write what the audit finds; each change is guarded by what it was found on."""
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

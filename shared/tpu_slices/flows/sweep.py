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
from tpu_slices.domain.model.workloads import JobSetRecord
from tpu_slices.domain.reconciling.inventory import AUDIT_EVERY, ClusterWatch, Findings, audit, suspicions
from tpu_slices.domain.reconciling.limiter import Slot
from tpu_slices.flows import slots
from tpu_slices.flows.next_reconcile import clear
from tpu_slices.flows.report import Reported, report_due
from tpu_slices.flows.retrying import again
from tpu_slices.ports.deps import Ports
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.store import Change, Stored

PAGE = 500
"""How many due slices one sweep nudges; the longest due come first, the rest next minute."""
SLOT_GRACE = timedelta(minutes=2)
"""How long a slot may be held before its slice's record says so: the time between taking and remembering."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did, for the log."""

    nudged: int
    asked: int
    adopted: int
    left_out: int
    reported: tuple[Reported, ...]
    failures: tuple[str, ...]


def sweep(ports: Ports) -> Swept:
    """Nudge what is due everywhere, look after each cluster, and report; one cluster's trouble stops no other."""
    nudged = _nudge_due(ports)
    asked, adopted, left_out = 0, 0, 0
    failures: list[str] = []
    for cluster in ports.store.clusters():
        try:
            settings = ports.store.settings(cluster)
            if settings is None:
                continue
            nudged += again(partial(_settle_slots, settings, ports), ports.clock)
            findings, questions = again(partial(_audit_if_due, settings, ports), ports.clock)
        except (Temporary, Permanent) as trouble:
            failures.append(f"{cluster}: {trouble}")
            continue
        asked += questions
        adopted += len(findings.adopted)
        left_out += findings.left_out
    reported, unreported = report_due(ports)
    return Swept(nudged, asked, adopted, left_out, tuple(reported), (*failures, *unreported))


def _nudge_due(ports: Ports) -> int:
    now = ports.clock.now()
    due: dict[ClusterId, set[SliceId]] = defaultdict(set)
    for record in ports.store.due_slices(now, PAGE):
        due[record.job.cluster].add(record.id)
    jobsets = ports.store.due_jobsets(now, PAGE)
    for jobset in jobsets:
        due[jobset.cluster].update(jobset.wants)
    for cluster, slices in due.items():
        ports.bus.nudge(cluster, sorted(slices))
    for jobset in jobsets:
        clear(jobset, ports)
    return sum(len(slices) for slices in due.values())


def _settle_slots(settings: ClusterSettings, ports: Ports) -> int:
    """Settle every running operation with one question to GKE, and free the slots that a crash left taken."""
    taken = ports.store.slots(settings.cluster)
    if not taken:
        return 0
    records = ports.store.slices(settings.cluster, [slot.value.slice_id for slot in taken])
    ended = ports.backend.ended_operations(settings)
    over: list[SliceId] = []
    for slot in taken:
        stored = records.get(slot.value.slice_id)
        if stored is None or stored.value.slot != slot.value.number:
            _free_if_left(slot, settings, ports)
        elif stored.value.operation in ended:
            over.append(stored.value.id)
    if over:
        ports.bus.nudge(settings.cluster, over)
    return len(over)


def _free_if_left(slot: Stored[Slot], settings: ClusterSettings, ports: Ports) -> None:
    if ports.clock.now() - slot.value.taken_at > SLOT_GRACE:
        slots.free(slot, settings, ports)


def _audit_if_due(settings: ClusterSettings, ports: Ports) -> tuple[Findings, int]:
    now = ports.clock.now()
    watch = ports.store.watch(settings.cluster)
    if watch is not None and watch.value.audit_due_at is not None and watch.value.audit_due_at > now:
        return Findings(), 0
    live = [stored.value for stored in ports.store.live_jobsets(settings.cluster)]
    questions = suspicions(live, watch.value if watch else None, now)
    findings = _compare(live, settings, ports, now)
    if questions:
        ports.bus.ask(settings.cluster, questions)
    after = replace(watch.value if watch else ClusterWatch(cluster=settings.cluster), audit_due_at=now + AUDIT_EVERY)
    ports.store.commit(Change(watch, after))
    return findings, len(questions)


def _compare(live: Iterable[JobSetRecord], settings: ClusterSettings, ports: Ports, now: datetime) -> Findings:
    """Lay the books side by side and write what the audit finds; each change is guarded by what it was found on."""
    cluster = settings.cluster
    pools = ports.backend.inventory(settings)
    kept = {stored.value.id: stored for stored in ports.store.kept_slices(cluster)}
    kept.update(ports.store.slices(cluster, {pool.slice_id for pool in pools} - kept.keys()))
    jobsets = {record.uid: record for record in live}
    uids = {stored.value.job.uid for stored in kept.values()} | {pool.job.uid for pool in pools}
    known = ports.store.jobsets(cluster, uids - jobsets.keys())
    jobsets.update({uid: stored.value for uid, stored in known.items()})
    findings = audit(jobsets, {id_: stored.value for id_, stored in kept.items()}, pools, now)
    for guardian in findings.guardians:
        ports.store.commit(Change(None, guardian))
    for adopted in findings.adopted:
        ports.store.commit(Change(None, adopted))
    for before, after in findings.mended:
        ports.store.commit(Change(kept[before.id], after))
    _nudge_found(findings, cluster, ports)
    return findings


def _nudge_found(findings: Findings, cluster: ClusterId, ports: Ports) -> None:
    found: list[SliceRecord] = [*findings.adopted, *(after for _, after in findings.mended)]
    if found:
        ports.bus.nudge(cluster, [record.id for record in found])

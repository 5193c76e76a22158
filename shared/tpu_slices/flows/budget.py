"""Counts chips: those that all other pools hold, before a creation is decided, and what a cluster has in all.

Tells who waits for chips when some are released: what is refused for a limit is looked at by no clock.
"""

from __future__ import annotations

import string
from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from tpu_slices.domain.capacity.warmth import BEING_DELETED, Needed, Short, in_the_way, kept_no_longer, short_of
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.reasons import IN_LINE, LIMITED, Phase, Reason
from tpu_slices.domain.model.slices import ClaimId, ClusterId, SliceId, WorkloadUid
from tpu_slices.domain.planning.policy import Held, Room
from tpu_slices.domain.records.gangs import GangKey, InLine, reserved
from tpu_slices.domain.records.limiters import Budget
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.domain.reporting.counts import COUNTED_PHASES, HELD, ON_HOLD, RELEASED_NOW, ClusterCount
from tpu_slices.ports.deps import IntakeDeps, ReconcileDeps
from tpu_slices.ports.errors import StaleRecord
from tpu_slices.ports.store import Change, Stored

NAMESPACES = 50
"""The most namespaces that are looked through for workloads that wait."""
WORKLOADS = 20
"""The most workloads of a namespace: those that have waited longest."""
_FIRST_LETTERS = string.ascii_lowercase + string.digits
MOST_TOLD = 100
"""The most slices that are told at once."""
MOST_WARM = 500
"""How many slices that go, or are kept warm, are looked at."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The chips that all other pools hold, and the write that orders a creation based on this count."""

    held: Held | None = None
    """None: no limit applies, or the slice is not in demand."""
    guards: tuple[Change, ...] = ()
    gangs: tuple[InLine, ...] = ()
    """Those in line, as they were read with the budget."""


def count(record: SliceRecord, settings: ClusterSettings, deps: ReconcileDeps, *, always: bool = False) -> Counted:
    """Return the chips that all other pools hold, earlier ones of the slice too, if a limit applies, or always.

    With those that are reserved for gangs of other workloads. The budget is read before the chips, so that a creation
    saved in between makes the next one's save stale.
    """
    cluster, namespace, uid = settings.cluster, record.owner.namespace, record.owner.uid
    if not (always or (record.wanted and settings.policy.counts(namespace))):
        return Counted()
    stored = deps.store.budget(cluster)
    now = deps.clock.now()
    before = stored.value if stored else Budget.of(cluster, now)
    line, own = before.gangs, record.chips_bought
    held = Held(
        in_namespace=deps.store.chips_bought(cluster, namespace) - own + reserved(line, namespace, but=uid),
        in_cluster=deps.store.chips_bought(cluster) - own + reserved(line, but=uid),
    )
    guard = Change(stored, replace(before, creations=before.creations + 1, changed_at=now))
    return Counted(held, (guard,), (*line.values(),))


def counted(settings: ClusterSettings, deps: ReconcileDeps) -> ClusterCount:
    """Return the count of a cluster; Firestore adds it up, so no record is read.

    What is kept for the next claim is counted where the settings say that it is.
    Its calls are made one after another: the parts may be of different moments.
    """
    cluster, now = settings.cluster, deps.clock.now()
    paid = deps.store.paid_longest(cluster)
    held, idle = deps.store.chips_held(cluster)
    return ClusterCount(
        cluster=cluster,
        phases={phase: deps.store.phase_count(cluster, phase) for phase in COUNTED_PHASES},
        on_hold=deps.store.reason_count(cluster, ON_HOLD),
        warm=deps.store.reason_count(cluster, [Reason.WARM]) if settings.keeps_warm else 0,
        spares=deps.store.reason_count(cluster, [Reason.SPARE]) if settings.spares else 0,
        chips_bought=deps.store.chips_bought(cluster),
        chips_held=held,
        chips_idle=idle,
        releasing_for=now - (deps.store.oldest_since(cluster, RELEASED_NOW) or now),
        held_for=now - (deps.store.oldest_since(cluster, HELD) or now),
        paid_for=now - paid[1] if paid else timedelta(0),
        paid_slice=paid[0] if paid else None,
    )


def tell_waiting(settings: ClusterSettings, deps: IntakeDeps, released_in: str | None = None) -> int:
    """Request reconciles of slices that are refused for a limit of chips, and that fit now; return how many.

    Namespaces take turns, that in which chips were released last; in each, workloads take turns, those that have waited
    longest first. Slices that are kept warm go for those that do not fit. `released_in`: None: some may have been,
    anywhere; then nobody is told where purchases are stopped.
    """
    cluster = settings.cluster
    if settings.paused is not None or settings.retired is not None or not deps.store.awaiting_chips(cluster, "", 1):
        return 0
    waiting = _waiting(cluster, released_in, deps)
    if waiting and released_in is None:
        brake = deps.store.brake(cluster)
        waiting = {each: it for each, it in waiting.items() if brake is None or not brake.value.stops(each)}
    if not waiting:
        return 0
    behind = sorted(waiting, key=lambda namespace: (namespace <= (released_in or ""), namespace))
    known = {stored.value.owner.uid: stored for each in waiting.values() for stored in each}
    line = _line_of_others(cluster, known, deps)
    held = {each: deps.store.chips_bought(cluster, each) + reserved(line, each) for each in behind}
    in_cluster = deps.store.chips_bought(cluster) + reserved(line)
    room = Room(settings.policy, in_cluster, held)
    for each in deps.store.queued_slices(cluster, MOST_TOLD):
        if each.reason in IN_LINE and each.spec is not None:  # perhaps told before: nothing is bought for it yet
            room.takes(each.spec.chips, each.owner.namespace)
    needed = {each: _needed(waiting[each], held[each]) for each in behind}
    ended = make_room(settings, short_of(needed, in_cluster, settings.policy), deps)
    fits = who_fits([[stored.value for stored in waiting[namespace]] for namespace in behind], room)
    told: list[ClaimId | SliceId] = [claim for uid, most in fits.items() for claim in _slices(known[uid], most, deps)]
    told += [each.name for each in ended]
    deps.publisher.request_reconcile(cluster, told)
    return len(told)


def _needed(waiting: Sequence[Stored[WorkloadRecord]], held: int) -> Needed:
    chips = [each.value.chips_awaited or 0 for each in waiting]
    return Needed(sum(chips), min(chips), held)


def _line_of_others(cluster: ClusterId, waiting: Collection[WorkloadUid], deps: IntakeDeps) -> Mapping[GangKey, InLine]:
    """Return the gangs that are in line, but for those of workloads that wait: nobody is told for what is theirs."""
    stored = deps.store.budget(cluster)
    line = stored.value.gangs if stored is not None else {}
    return {key: each for key, each in line.items() if each.workload not in waiting}


def make_room(settings: ClusterSettings, short: Short, deps: IntakeDeps) -> list[SliceRecord]:
    """Let slices be kept no longer whose chips somebody waits for; return them: they are to be reconciled."""
    keeps = settings.keeps_warm or bool(settings.spares)
    if not keeps or settings.paused is not None or not short:
        return []
    cluster, now = settings.cluster, deps.clock.now()
    kept = [Reason.WARM, Reason.SPARE, *BEING_DELETED]
    found = {each.value.id: each for each in deps.store.for_reasons(cluster, kept, MOST_WARM)}
    ended = []
    for each in in_the_way(short, (stored.value for stored in found.values())):
        after = replace(kept_no_longer(each), next_reconcile_at=now)
        with suppress(StaleRecord):
            deps.store.commit(Change(found[each.id], after))
            ended.append(after)
    return ended


def who_fits(waiting: Iterable[Sequence[WorkloadRecord]], room: Room) -> Mapping[WorkloadUid, int]:
    """Return how many slices of which workloads fit into the room; `waiting`: the workloads of each namespace."""
    fits: Counter[WorkloadUid] = Counter()
    turns = deque(deque(each) for each in waiting)
    while turns and fits.total() < MOST_TOLD:
        workloads = turns.popleft()
        while workloads:
            first = workloads.popleft()
            if first.chips_awaited is not None and room.takes(first.chips_awaited, first.owner.namespace):
                fits[first.owner.uid] += 1
                workloads.append(first)
                turns.append(workloads)
                break
    return fits


def _waiting(
    cluster: ClusterId, released_in: str | None, deps: IntakeDeps
) -> Mapping[str, Sequence[Stored[WorkloadRecord]]]:
    """Return the workloads that wait, by namespace: from that in which chips were released on, and round to it.

    None: from any on, another one each minute.
    """
    found: dict[str, Sequence[Stored[WorkloadRecord]]] = {}
    any_ = _FIRST_LETTERS[deps.clock.now().minute % len(_FIRST_LETTERS)]
    for start in (released_in or any_, ""):
        while len(found) < NAMESPACES and (page := deps.store.awaiting_chips(cluster, start, WORKLOADS)):
            namespace = page[0].value.owner.namespace
            if namespace in found:
                break
            found[namespace] = [stored for stored in page if stored.value.owner.namespace == namespace]
            start = f"{namespace} "  # noqa: PLW2901 - where the next one begins
    return found


def _slices(waiting: Stored[WorkloadRecord], most: int, deps: IntakeDeps) -> list[ClaimId]:
    """Return the slices of a workload that are told. One that has none waits no more, until a report finds some."""
    workload = waiting.value
    find = partial(deps.store.told_alike, workload.cluster, workload.owner.uid, most=most)
    found = [stored.value.last_claim for reason in LIMITED for stored in find((Phase.REFUSED, reason))]
    if not found:
        with suppress(StaleRecord):
            deps.store.commit(Change(waiting, replace(workload, chips_awaited=None, chips_awaited_since=None)))
    return found[:most]

"""The concurrency limiter's slots: taken with the operation that is saved, handed on once its end is saved."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from tpu_slices.domain.gangs.turns import Line, told_behind
from tpu_slices.domain.model.clusters import ClusterSettings, Limits
from tpu_slices.domain.model.observations import Observed
from tpu_slices.domain.model.slices import ClusterId, SliceId
from tpu_slices.domain.reconciling.limiter import (
    RAN_OUT,
    admit,
    awaited_of,
    candidate_of,
    differ,
    forgetting,
    free_numbers,
    held,
    last_served,
    learned,
    raised,
    runs_out,
    shortage_of,
)
from tpu_slices.domain.records.awaited import PoolOperation, Shortage, SlotAwaited
from tpu_slices.domain.records.limiters import Candidate, CapacityPool, ConcurrencyLimiter, Slot
from tpu_slices.domain.records.queues import FIRST_QUEUES, SHORT_QUEUES
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows.queues.walk import AT_ONCE, Walk
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.errors import StaleRecord, Temporary
from tpu_slices.ports.store import Change, Stored

PAUSES = (0.0, 0.2, 0.4, 0.8)
"""Seconds, at most, after which handing on is tried again if others handed a slot on to the same operation.

At once first, and further down the queue.
"""
MOST_TOLD = 200
"""The most slices that are told at once that their capacity ran out, or is not short any more."""


@dataclass(slots=True)
class Taking:
    """The slots that one decision takes: stored in the commit that saves it, so that a crash leaves none behind."""

    before: SliceRecord
    limiter: ConcurrencyLimiter | None
    """None: not read yet."""
    settings: ClusterSettings
    deps: ReconcileDeps
    taken: Sequence[Stored[Slot]] | None = None
    """None: not read yet."""
    numbers: dict[int, int] = field(default_factory=dict)
    """By attempt."""
    changes: list[Change] = field(default_factory=list)
    shortage: Shortage | None = None
    """The shortage of its capacity pool, if the creation has to wait: one slice at a time tries."""

    def take(self, after: SliceRecord, awaited: SlotAwaited) -> bool:
        """Reserve a slot for the operation that a decision lacks one for; return whether one was free."""
        cluster, now, limits = self.settings.cluster, self.deps.clock.now(), self.settings.limits
        limiter = self.limiter or limiter_of(self.deps.store.limiter(cluster), self.settings, now)
        candidate = candidate_of(after, awaited)
        taken = self.deps.store.slots(cluster) if self.taken is None else self.taken
        running = {slot.value.number: slot for slot in taken}
        own = next((slot for slot in running.values() if self._reusable(slot.value, candidate, after)), None)
        new = [change.after for change in self.changes if isinstance(change.after, Slot)]
        others = {number: slot.value for number, slot in running.items() if slot is not own}
        others.update({slot.number: slot for slot in new})
        if (behind := self._behind(after, candidate, limiter)) is not None:
            self.shortage = behind
            return False
        if awaited.attempt in self.numbers or not admit([candidate], [*others.values()], limiter, now, limits):
            self.shortage = awaited_of(candidate, [*others.values()], limiter, now)
            return False
        free = free_numbers([*others.values()], limiter, now, limits)
        number = own.value.number if own else _one_of(free, after.id, now)
        self.changes.append(Change(own, Slot.of(candidate, number, cluster, now)))
        self.numbers[awaited.attempt] = number
        return True

    def _behind(self, after: SliceRecord, candidate: Candidate, limiter: ConcurrencyLimiter) -> Shortage | None:
        """Return the shortage for which a creation waits behind a gang; None: it does not. The line is read for it."""
        now, limits, pool = self.deps.clock.now(), self.settings.limits, candidate.capacity_pool
        shortage = None if pool is None else shortage_of(pool, limiter, now)
        if shortage is None or limits.gang_backfill:
            return None
        front = line_of(self.settings, self.deps).holds_back(after)
        return None if front is None else replace(shortage, behind=told_behind(front, after))

    def used_by(self, record: SliceRecord) -> tuple[Change, ...]:
        """Return the changes of the slots that a decision uses."""
        slots = (each for each in self.changes if isinstance(each.after, Slot))
        return tuple(each for each in slots if isinstance(each.after, Slot) and each.after.number in record.slots)

    def _reusable(self, slot: Slot, candidate: Candidate, after: SliceRecord) -> bool:
        """Return whether a slot is left of the same operation, or of one that ended and whose pool is to be deleted."""
        if slot.slice_id != after.maker or slot.number in {*after.slots, *self.numbers.values()}:
            return False
        same = (slot.operation, slot.attempt) == (candidate.operation, candidate.attempt)
        return same or (candidate.operation is PoolOperation.DELETE and slot.number in self.before.slots)


@dataclass(slots=True)
class Settling:
    """A step of a slice that is about to be saved, and the slots as they are before, if it concerns them.

    Whoever stalls once it is saved then hands on none that the slice has taken again meanwhile.
    """

    before: SliceRecord
    after: SliceRecord
    settings: ClusterSettings
    deps: ReconcileDeps
    taken: Sequence[Stored[Slot]] | None = None
    """As read with the slice; None: not read yet."""
    let_go: SliceRecord | None = None
    """The slice that its claim lets go in the same step, which keeps its slots; None: it lets none go."""

    def __post_init__(self) -> None:
        """Read the slots, unless those that were read with the slice show what it frees."""
        if self._concerns_slots and (self.taken is None or not self._freed <= self._ours):
            self.taken = self.deps.store.slots(self.settings.cluster)

    @property
    def _freed(self) -> frozenset[int]:
        kept = self.let_go.slots if self.let_go is not None else frozenset[int]()
        return self.before.slots - self.after.slots - kept

    @property
    def _ours(self) -> frozenset[int]:
        return frozenset(slot.value.number for slot in self.taken or () if slot.value.id == self.before.id)

    @property
    def _concerns_slots(self) -> bool:
        return bool(self._freed) or runs_out(self.before, self.after)

    def saved(self, seen: Observed) -> list[SliceRecord]:
        """Let the limiter learn from the step; hand on the slots that it freed, and return to whom."""
        if self.taken is None or not self._concerns_slots:
            return []
        before, after, limiter = self.before, self.after, None
        laddered = before.made_as is not None and bool(before.made_as.ladder)
        if after.reason in RAN_OUT or (before.current.slot is not None and (laddered or not before.goes)):
            limiter = change_limiter(
                lambda limiter, now: learned(limiter, before, after, seen, now), self.settings, self.deps
            )
        return hand_on(self.taken, self._freed & self._ours, self.settings, self.deps, limiter)


@dataclass(frozen=True, slots=True)
class _Read:
    """What is taken, and how much may be."""

    taken: Sequence[Stored[Slot]]
    limiter: ConcurrencyLimiter | None = None
    """None: not read yet."""


def hand_on(
    taken: Sequence[Stored[Slot]],
    freed: Collection[int],
    settings: ClusterSettings,
    deps: ReconcileDeps,
    limiter: ConcurrencyLimiter | None = None,
) -> list[SliceRecord]:
    """Hand freed slots, and others that may be taken, on to the operations that come first; delete what is left.

    Return the slices that got one, as they were: they are to be reconciled, and wait for nothing else. A slot and the
    record of the slice that gets it are written in one commit, so that no operation gets two. Of several slots that are
    handed on at the same time, all but the first find that somebody else served who comes first: then more of the
    queue is read. If others get in the way again and again, the sweep hands the slots on. `limiter`: as it was read or
    written last; None: it is read. Temporary: nobody got one.
    """
    left = {slot.value.number: slot for slot in taken if slot.value.number in freed}
    served: list[SliceRecord] = []
    try:
        _hand_on(_Read(taken, limiter), left, served, settings, deps)
    except Temporary:
        if not served:
            raise
    return served


def _hand_on(
    read: _Read,
    left: dict[int, Stored[Slot]],
    served: list[SliceRecord],
    settings: ClusterSettings,
    deps: ReconcileDeps,
) -> None:
    for pause in (None, *PAUSES):
        if served and pause:
            break
        if pause:
            deps.clock.pause(pause)
        if pause is not None:
            read = _Read(deps.store.slots(settings.cluster))
            for number in [number for number, slot in left.items() if slot not in read.taken]:
                del left[number]
        turn = _turn(read, left, settings, deps, more=0 if pause is None else AT_ONCE)
        if turn is None or turn.serve_all(left, served, deps):
            break
    for unused in left.values():
        with suppress(StaleRecord):
            deps.store.commit(Change(unused, None))


def is_left(slot: Stored[Slot], holder: Stored[SliceRecord] | None, limits: Limits, deps: ReconcileDeps) -> bool:
    """Return whether nothing uses a slot that was taken longer ago than an order may be under way.

    One handed on for nothing is withdrawn.
    """
    if limits.order_may_arrive(slot.value.taken_at, deps.clock.now()):
        return False
    if holder is None or slot.value.number not in holder.value.slots:
        return True
    awaited = holder.value.slot_awaited
    if awaited is None or awaited.number != slot.value.number:
        return False
    with suppress(StaleRecord):
        deps.store.commit(Change(holder, replace(holder.value, slot_awaited=None)))
        return True
    return False


def change_limiter(
    change: Callable[[ConcurrencyLimiter, datetime], ConcurrencyLimiter], settings: ClusterSettings, deps: ReconcileDeps
) -> ConcurrencyLimiter | None:
    """Change the limiter and return it; None: another process changed it at the same time, and its change is kept."""
    now, stored = deps.clock.now(), deps.store.limiter(settings.cluster)
    before = limiter_of(stored, settings, now)
    after = change(before, now)
    if after != before:
        try:
            deps.store.commit(Change(stored, after))
        except StaleRecord:
            return None
        _tell_waiting(differ(before, after, now), settings.cluster, deps)
    return after


def _tell_waiting(pools: Iterable[CapacityPool], cluster: ClusterId, deps: ReconcileDeps) -> None:
    """Request reconciles of those that wait for capacity that is short now, or no longer: their reason is another one.

    Not of all if they are very many: the others are told when they are met, as slots are handed on.
    """
    for pool in pools:
        waiting = deps.store.creations_in_pool(cluster, pool, MOST_TOLD)
        if waiting:
            deps.publisher.request_reconcile(cluster, [each.value.name for each in waiting])


def _tell(unaware: Sequence[SliceRecord], cluster: ClusterId, deps: ReconcileDeps) -> None:
    """Request reconciles of slices that do not say yet that they wait for their turn; if that fails, the next time."""
    if unaware:
        with suppress(Temporary):
            deps.publisher.request_reconcile(cluster, sorted({each.name for each in unaware})[:MOST_TOLD])


def settle_limit(settings: ClusterSettings, deps: ReconcileDeps) -> ConcurrencyLimiter | None:
    """Raise the limit if it is due, and forget old shortages; return the limiter as `change_limiter` does."""
    return change_limiter(lambda limiter, now: forgetting(raised(limiter, now, settings.limits), now), settings, deps)


def limiter_of(
    stored: Stored[ConcurrencyLimiter] | None, settings: ClusterSettings, now: datetime
) -> ConcurrencyLimiter:
    """Return the limiter on record, or the one that a cluster begins with."""
    return stored.value if stored else ConcurrencyLimiter.of(settings.cluster, now, settings.limits.operations)


def line_of(settings: ClusterSettings, deps: ReconcileDeps) -> Line:
    """Read the line of a cluster's gangs."""
    stored = deps.store.budget(settings.cluster)
    return Line(stored.value.gangs if stored is not None else {}, deps.clock.now(), settings.limits)


@dataclass(slots=True)
class _Turn:
    """Who waits for slots, as it was read once."""

    waiting: Mapping[SliceId, Stored[SliceRecord]]
    running: list[Slot]
    limiter: ConcurrencyLimiter
    settings: ClusterSettings
    now: datetime
    line: Line

    def _first(self, first: Candidate, waiting: Sequence[Candidate]) -> Candidate:
        """Return who starts, if the first may: a gang that comes before that which it is of, if it may start, too."""
        before = self.line.before(first, waiting, {id_: each.value for id_, each in self.waiting.items()})
        limits = self.settings.limits
        return next((each for each in before if admit([each], self.running, self.limiter, self.now, limits)), first)

    def serve_all(self, left: dict[int, Stored[Slot]], served: list[SliceRecord], deps: ReconcileDeps) -> bool:
        """Hand on slots; return whether all are, or nobody waits for them, as far as others did not get in the way."""
        cluster, limits = self.settings.cluster, self.settings.limits
        records = [each.value for each in self.waiting.values()]
        candidates = [candidate_of(each, each.slot_awaited) for each in records if each.slot_awaited]
        overtaken = False
        while first := admit(candidates, self.running, self.limiter, self.now, limits):
            candidate = self._first(first[0], candidates)
            free = free_numbers(self.running, self.limiter, self.now, limits)
            number = next((each for each in free if each in left), free[0])
            slot, record = (
                Slot.of(candidate, number, cluster, self.now),
                self.waiting[candidate.id],
            )
            candidates.remove(candidate)
            try:
                deps.store.commit(
                    Change(left.get(number), slot), Change(record, _with_slot(record.value, number, self.now))
                )
            except StaleRecord:
                overtaken = True
            else:
                left.pop(number, None)
                self.running.append(slot)
                served.append(record.value)
        return not overtaken or not free_numbers(self.running, self.limiter, self.now, limits)


def _turn(
    read: _Read,
    left: Mapping[int, Stored[Slot]],
    settings: ClusterSettings,
    deps: ReconcileDeps,
    more: int,
) -> _Turn | None:
    """Read who waits for the slots that are free, and `more`; None: none is free, or nobody waits."""
    cluster, now, limits = settings.cluster, deps.clock.now(), settings.limits
    running = [slot.value for slot in read.taken if slot.value.number not in left]
    if settings.paused is not None or not deps.store.awaits_slot(cluster):
        return None
    limiter = read.limiter or limiter_of(deps.store.limiter(cluster), settings, now)
    free = len(free_numbers(running, limiter, now, limits))
    if not free:
        return None
    waiting, line = [*deps.store.deletions_awaiting_slot(cluster, free + more)], line_of(settings, deps)
    if len(waiting) < free + more:
        short = held(running, limiter, now, limits)
        walk, taken = Walk(limiter, free + more, short, line, deps), [slot.value for slot in read.taken]
        for between, of_short in ((FIRST_QUEUES, False), (SHORT_QUEUES, True)):
            waiting += walk.creations(between, last_served(taken, limiter, now, short=of_short))
        _tell(walk.unaware, cluster, deps)
    return _Turn({each.value.id: each for each in waiting}, running, limiter, settings, now, line)


def _with_slot(record: SliceRecord, number: int, now: datetime) -> SliceRecord:
    awaited = record.slot_awaited
    return replace(record, slot_awaited=awaited and replace(awaited, number=number), next_reconcile_at=now)


def _one_of(numbers: Sequence[int], slice_: SliceId, now: datetime) -> int:
    """Return one of the numbers, so that slices that begin together, and repeated tries, take different ones."""
    return numbers[zlib.crc32(f"{slice_} {now}".encode()) % len(numbers)]

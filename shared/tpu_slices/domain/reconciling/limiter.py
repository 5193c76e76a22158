"""Limits concurrent node pool operations: GKE accepts only so many per cluster at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from tpu_slices.domain.capacity import reservations
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.observations import Busy, Observed, OperationSeen, Running
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import PoolName, SliceSpec, pool_name
from tpu_slices.domain.model.texts import DIGEST_BITS, digest
from tpu_slices.domain.records.awaited import PoolOperation, Shortage, SlotAwaited
from tpu_slices.domain.records.limiters import Candidate, CapacityPool, ConcurrencyLimiter, Slot
from tpu_slices.domain.records.queues import capacity_pool_of
from tpu_slices.domain.records.slices import SliceRecord

SHORTAGE_MEMORY = timedelta(minutes=45)
"""How long a capacity pool counts as short after a stockout, and once it is due again, unless a creation in it
succeeds: longer than GKE takes to fail one."""
FIRST_AVOIDED, LONGEST_AVOIDED = timedelta(minutes=2), timedelta(minutes=30)
"""How long nobody comes to a pool that ran out who has another: twice as long each time, a fifth more or less."""
SPREAD = 0.2
_OF_RESERVATIONS = frozenset({Reason.RESERVATION_UNAVAILABLE, Reason.RESERVATION_AWAITED})
RAN_OUT = frozenset({Reason.STOCKOUT, Reason.QUOTA_EXCEEDED, Reason.RESOURCES_EXHAUSTED, *_OF_RESERVATIONS})
"""The reasons of slices whose capacity pool cannot provide hosts, whoever tries."""
RAISE_AFTER = timedelta(minutes=5)
"""How long after its last change, and after the last rejection, the limit may be raised by one."""
LOWER_AGAIN_AFTER = timedelta(minutes=40)
"""How long the limit is halved once at most: longer than a creation runs, of which GKE takes 35 minutes to fail one."""
REFUSAL_PAUSE = timedelta(seconds=10)
"""How long nothing starts after GKE rejected an operation because of too many: the next one would be rejected too."""
PROBE_FOR = timedelta(minutes=3)
"""How long after a rejection operations start one by one. It outlasts the sweeps, which try again each minute."""


def slot_awaited(record: SliceRecord, operation: PoolOperation, attempt: int, now: datetime) -> SlotAwaited:
    """Return the operation of a slice that lacks a slot, and since when."""
    before = record.slot_awaited
    same = before is not None and (before.operation, before.attempt) == (operation, attempt)
    return SlotAwaited(
        operation=operation,
        attempt=attempt,
        since=before.since if before is not None and same else _first_asked(record, operation) or now,
    )


def _first_asked(record: SliceRecord, operation: PoolOperation) -> datetime | None:
    """Return since when a slice is waited for, whenever it was looked at; None: it is to be deleted."""
    return record.claim.awaited_since if operation is PoolOperation.CREATE else None


def candidate_of(record: SliceRecord, awaited: SlotAwaited) -> Candidate:
    """Return the operation of a slice that waits for a slot."""
    return Candidate(
        slice_id=record.maker,
        namespace=record.owner.namespace,
        operation=awaited.operation,
        attempt=awaited.attempt,
        capacity_pool=_capacity_pool(record, awaited.operation),
        since=awaited.since,
        hosts=record.spec.hosts if record.spec and awaited.operation is PoolOperation.CREATE else 0,
        laddered=record.owner.kind.is_spare or (record.spec is not None and bool(record.spec.ladder)),
    )


def _capacity_pool(record: SliceRecord, operation: PoolOperation) -> CapacityPool | None:
    return capacity_pool_of(record.spec) if record.spec and operation is PoolOperation.CREATE else None


def free_numbers(
    running: Sequence[Slot], limiter: ConcurrencyLimiter, now: datetime, limits: Limits
) -> tuple[int, ...]:
    """Return the numbers of the slots that may be taken now. The first row that holds counts.

    | when GKE last rejected an operation because of too many | so many may be taken                              |
    |---------------------------------------------------------|---------------------------------------------------|
    | less than REFUSAL_PAUSE ago                             | none                                              |
    | less than PROBE_FOR ago                                 | one, if none that runs was taken for less than    |
    |                                                         | REFUSAL_PAUSE: GKE may be full below the limit    |
    | earlier, or never                                       | as many as the limit leaves                       |
    """
    limit, taken = _limit(limiter, limits), {slot.number for slot in running}
    left = max(0, limit - len(running))
    refused = limiter.refused_at
    if refused is not None and now - refused < PROBE_FOR:
        started = [refused, *(slot.taken_at for slot in running)]
        left = min(left, 0 if now - max(started) < REFUSAL_PAUSE else 1)
    return tuple(number for number in range(limit) if number not in taken)[:left]


def admit(
    waiting: Iterable[Candidate], running: Sequence[Slot], limiter: ConcurrencyLimiter, now: datetime, limits: Limits
) -> tuple[Candidate, ...]:
    """Return the candidates that may start, first come first, up to the number of free slots.

    Deletions come before creations. Creations go round the namespaces: that one comes first whose namespace holds the
    fewest slots, then who waits longest; where capacity ran out for so many hosts, of one namespace who needs the
    fewest. A capacity pool with a recent stockout gets one probe at a time, a reservation none before it is due, and
    all such pools together at most half of the slots. Who needs fewer hosts than were refused probes nothing. A
    reservation gets no more creations than it is known to have hosts for.
    """
    left = sorted(waiting, key=lambda candidate: (candidate.since, candidate.slice_id))
    slots = list(running)
    admitted: list[Candidate] = []
    for number in free_numbers(running, limiter, now, limits):
        able = [each for each in left if may_start(each, slots, limiter, now, limits)]
        if not able:
            break
        held = Counter(slot.namespace for slot in slots)
        first = next((each for each in able if each.operation is PoolOperation.DELETE), None)
        first = first or _smallest(min(able, key=lambda candidate: held[candidate.namespace]), able, limiter, now)
        left.remove(first)
        admitted.append(first)
        slots.append(Slot.of(first, number, limiter.cluster, now))
    return tuple(admitted)


def _smallest(first: Candidate, able: Iterable[Candidate], limiter: ConcurrencyLimiter, now: datetime) -> Candidate:
    """Return who tries for the namespace of the first in its capacity pool: if that is short, who needs the fewest."""
    if not is_short(first, limiter, now):
        return first
    alike = (each for each in able if (each.namespace, each.capacity_pool) == (first.namespace, first.capacity_pool))
    return min(alike, key=lambda each: each.hosts)


def is_used(slot: Slot, operations: Iterable[OperationSeen]) -> bool:
    """Return whether the vendor's list shows the operation that a slot is held for as running, and no earlier one.

    The pool of an attempt 0 has a name of its own: what becomes of it, its slice's record tells.
    """
    found = _ends(slot, pool_name(slot.slice_id, slot.attempt), operations) if slot.attempt else []
    return bool(found) and not any(found)


def has_ended(slot: Slot, holder: SliceRecord, operations: Iterable[OperationSeen]) -> bool:
    """Return whether the operation for which a slot is held may have ended, by the vendor's list: a reason to look.

    | in the list, on the same pool and of the same kind | ended                                                     |
    |----------------------------------------------------|-----------------------------------------------------------|
    | one that ended                                     | yes, or else an earlier one                               |
    | one that runs                                      | no                                                        |
    | none                                               | yes, on Compute Engine, which lists those that run; or it |
    |                                                    | never began, or GKE has forgotten it                      |
    """
    found = _ends(slot, holder.pool_of(slot.attempt), operations)
    return any(found) or not found


def _ends(slot: Slot, pool: PoolName, operations: Iterable[OperationSeen]) -> list[bool]:
    """Return of each operation like the slot's on a pool whether it ended."""
    creates = slot.operation is PoolOperation.CREATE
    return [each.ended for each in operations if (each.pool, each.creates) == (pool, creates)]


def may_start(
    candidate: Candidate, running: Sequence[Slot], limiter: ConcurrencyLimiter, now: datetime, limits: Limits
) -> bool:
    """Return whether an operation may start, if a slot is free."""
    pool = candidate.capacity_pool
    if pool is None:
        return True
    fewest = fewest_held(pool, running, limiter, now, limits)
    avoids = candidate.laddered and is_avoided(pool, candidate.hosts, limiter, now)
    return not avoids and (fewest is None or candidate.hosts < fewest)


def is_avoided(capacity_pool: CapacityPool, hosts: int, limiter: ConcurrencyLimiter, now: datetime) -> bool:
    """Return whether nobody asks in a capacity pool for so many hosts now who has a ladder of places."""
    short = shortage_of(capacity_pool, limiter, now)
    return short is not None and hosts >= short.hosts and short.until is not None and now < short.until


def fewest_held(
    capacity_pool: CapacityPool,
    running: Iterable[Slot],
    limiter: ConcurrencyLimiter,
    now: datetime,
    limits: Limits,
) -> int | None:
    """Return the fewest hosts for which no creation in a capacity pool may start now; None: any may."""
    slots = [*running]
    reserved = reservations.fewest_held(capacity_pool, slots, limiter.reservations.get(capacity_pool), now)
    short = _fewest_short(capacity_pool, slots, limiter, now, limits)
    return min((each for each in (reserved, short) if each is not None), default=None)


def held(
    running: Sequence[Slot], limiter: ConcurrencyLimiter, now: datetime, limits: Limits
) -> dict[CapacityPool, int]:
    """Return by capacity pool the fewest hosts for which nothing may start; left out: anything may."""
    found = {
        pool: fewest_held(pool, running, limiter, now, limits) for pool in {**limiter.shortages, **limiter.reservations}
    }
    return {pool: fewest for pool, fewest in found.items() if fewest is not None}


def _fewest_short(
    capacity_pool: CapacityPool, running: Sequence[Slot], limiter: ConcurrencyLimiter, now: datetime, limits: Limits
) -> int | None:
    """Return the fewest hosts for which nobody may try a capacity pool that ran out; None: one may."""
    shortage = shortage_of(capacity_pool, limiter, now)
    if shortage is None:
        return None
    probes = [slot.capacity_pool for slot in running if is_short(slot, limiter, now)]
    due = shortage.again_at is None or now >= shortage.again_at
    may = due and capacity_pool not in probes and len(probes) < max(1, _limit(limiter, limits) // 2)
    return None if may else shortage.hosts


def may_try(spec: SliceSpec, held: Mapping[CapacityPool, int], limiter: ConcurrencyLimiter, now: datetime) -> bool:
    """Return whether a creation may start as far as its place is concerned; `held`: by pool the `fewest_held`."""
    pool = capacity_pool_of(spec)
    avoids = bool(spec.ladder) and is_avoided(pool, spec.hosts, limiter, now)
    return not avoids and (pool not in held or spec.hosts < held[pool])


def awaited_of(
    candidate: Candidate, running: Sequence[Slot], limiter: ConcurrencyLimiter, now: datetime
) -> Shortage | None:
    """Return why a creation waits beside the limit: by what is known of its reservation, or as capacity ran out."""
    pool = candidate.capacity_pool
    if pool is None:
        return None
    known = reservations.lack(pool, candidate.hosts, running, limiter.reservations.get(pool), now)
    return known or (shortage_of(pool, limiter, now) if is_short(candidate, limiter, now) else None)


def is_short(operation: Candidate | Slot, limiter: ConcurrencyLimiter, now: datetime) -> bool:
    """Return whether an operation needs as many hosts as its capacity pool lately refused, or more."""
    pool = operation.capacity_pool
    shortage = None if pool is None else shortage_of(pool, limiter, now)
    return shortage is not None and operation.hosts >= shortage.hosts


def last_served(running: Iterable[Slot], limiter: ConcurrencyLimiter, now: datetime, *, short: bool) -> str:
    """Return the namespace that was last given a slot in a capacity pool that is short now, or in another one.

    Empty: none that still has it.
    """
    of_kind = [slot for slot in running if slot.capacity_pool is not None and is_short(slot, limiter, now) is short]
    last = max(of_kind, key=lambda slot: (slot.taken_at, slot.number), default=None)
    return last.namespace if last is not None else ""


def shortage_of(capacity_pool: CapacityPool, limiter: ConcurrencyLimiter, now: datetime) -> Shortage | None:
    """Return the shortage of a capacity pool, unless it is forgotten."""
    shortage = limiter.shortages.get(capacity_pool)
    return shortage if shortage is not None and now - (shortage.until or shortage.at) < SHORTAGE_MEMORY else None


def avoided_for(times: int, capacity_pool: CapacityPool) -> timedelta:
    """Return how long nobody comes to a pool that ran out so often in succession, who has another place."""
    pause = min(FIRST_AVOIDED * (1 << min(times - 1, 10)), LONGEST_AVOIDED)
    drawn = digest(f"{capacity_pool} {times}") / (1 << DIGEST_BITS)
    return pause * (1 + SPREAD * (2 * drawn - 1))


def lowered(limiter: ConcurrencyLimiter, now: datetime, limits: Limits) -> ConcurrencyLimiter:
    """Return the limiter after GKE rejected an operation because of too many (429).

    | when the limit was last halved   | what fills GKE                             | the limit             |
    |----------------------------------|--------------------------------------------|-----------------------|
    | less than LOWER_AGAIN_AFTER ago  | perhaps what already filled it then,       | stays: until GKE has  |
    |                                  | operations of ours or of others            | room, one is tried at |
    |                                  |                                            | a time                |
    | earlier, or never                | operations that started under this limit   | is halved             |
    """
    refused = replace(limiter, refused_at=now)
    if limiter.lowered_at is not None and now - limiter.lowered_at < LOWER_AGAIN_AFTER:
        return refused
    return replace(refused, limit=max(1, _limit(limiter, limits) // 2), changed_at=now, lowered_at=now)


def raised(limiter: ConcurrencyLimiter, now: datetime, limits: Limits) -> ConcurrencyLimiter:
    """Return the limiter with its limit raised by one, up to the limit in the settings, if it is due.

    It is due RAISE_AFTER after the limit was changed, and after GKE rejected an operation because of too many.
    """
    quiet_since = max(limiter.changed_at, limiter.refused_at or limiter.changed_at)
    if now - quiet_since < RAISE_AFTER or limiter.limit >= limits.operations:
        return limiter
    return replace(limiter, limit=limiter.limit + 1, changed_at=now)


def ran_out(limiter: ConcurrencyLimiter, capacity_pool: CapacityPool, shortage: Shortage) -> ConcurrencyLimiter:
    """Return the limiter with a new shortage of a capacity pool, and without old shortages."""
    return replace(limiter, shortages={**forgetting(limiter, shortage.at).shortages, capacity_pool: shortage})


def forgetting(limiter: ConcurrencyLimiter, now: datetime) -> ConcurrencyLimiter:
    """Return the limiter without old shortages."""
    kept = {pool: each for pool, each in limiter.shortages.items() if shortage_of(pool, limiter, now) is not None}
    return limiter if len(kept) == len(limiter.shortages) else replace(limiter, shortages=kept)


def differ(before: ConcurrencyLimiter, after: ConcurrencyLimiter, now: datetime) -> set[CapacityPool]:
    """Return the capacity pools that are short now or no longer, or for fewer hosts, or are known otherwise."""
    pools = before.shortages.keys() | after.shortages.keys()
    held = [{pool: each.hosts for pool, each in limiter.shortages.items()} for limiter in (before, after)]
    otherwise = reservations.told_otherwise(before.reservations, after.reservations, now)
    return {pool for pool in pools if held[0].get(pool) != held[1].get(pool)} | otherwise


def runs_out(before: SliceRecord, after: SliceRecord) -> bool:
    """Return whether a step of a slice shows that its capacity pool cannot provide hosts."""
    return after.reason in RAN_OUT and after.transition_count > before.transition_count


def learned(
    limiter: ConcurrencyLimiter, before: SliceRecord, after: SliceRecord, seen: Observed, now: datetime
) -> ConcurrencyLimiter:
    """Return the limiter after a step of a slice: a stockout begins a shortage, a creation that succeeded ends it."""
    if after.spec is None:
        return limiter
    capacity_pool = capacity_pool_of(after.spec)
    if runs_out(before, after):
        before_it = shortage_of(capacity_pool, limiter, now)
        times = before_it.times + 1 if before_it is not None else 1
        shortage = Shortage(
            at=now,
            reason=after.reason,
            what=f"{after.spec.accelerator} {after.spec.topology}",
            again_at=after.claim.retry_at if after.reason in _OF_RESERVATIONS else None,
            hosts=min(after.spec.hosts, before_it.hosts if before_it is not None else after.spec.hosts),
            times=times,
            until=now + avoided_for(times, capacity_pool),
        )
        return _with_stock(ran_out(limiter, capacity_pool, shortage), after)
    if _frees_quota(before, after) and _is_of_quota(limiter.shortages.get(capacity_pool)):
        return replace(limiter, shortages={pool: it for pool, it in limiter.shortages.items() if pool != capacity_pool})
    freed = before.current.slot is not None and after.current.slot is None
    if not (freed and not before.goes and isinstance(seen.pool, Running | Busy)):
        return limiter
    if (known := limiter.reservations.get(capacity_pool)) is not None:
        now_used = reservations.used(known, after.spec.hosts, before.current.create_requested_at)
        limiter = replace(limiter, reservations={**limiter.reservations, capacity_pool: now_used})
    if capacity_pool not in limiter.shortages:
        return limiter
    left = {pool: each for pool, each in limiter.shortages.items() if pool != capacity_pool}
    return replace(limiter, shortages=left)


def _frees_quota(before: SliceRecord, after: SliceRecord) -> bool:
    """Return whether a slice is gone whose chips counted on a quota."""
    return before.goes and bool(before.chips_bought) and not after.chips_bought


def _is_of_quota(shortage: Shortage | None) -> bool:
    return shortage is not None and shortage.reason is Reason.QUOTA_EXCEEDED


def _with_stock(limiter: ConcurrencyLimiter, after: SliceRecord) -> ConcurrencyLimiter:
    """Return the limiter without shortages of such hosts in the zones where the vendor says that it has them."""
    spec, zones = after.spec, after.claim.stocked
    stocked = {capacity_pool_of(replace(spec, zone=zone)) for zone in zones} if spec is not None else set()
    kept = {pool: each for pool, each in limiter.shortages.items() if pool not in stocked}
    return replace(limiter, shortages=kept) if stocked else limiter


def _limit(limiter: ConcurrencyLimiter, limits: Limits) -> int:
    return min(limiter.limit, limits.operations)

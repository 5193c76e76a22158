"""Makes spares, as the settings ask for them, and sees what comes before them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from tpu_slices.domain.capacity.seats import as_wanted, is_settled, needed_again
from tpu_slices.domain.capacity.spares import (
    BEYOND,
    UNPINNED,
    First,
    Seat,
    beyond_limit,
    not_needed,
    seats_of,
    usd_an_hour,
    waits_for_such,
)
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import Pinning
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import ClaimId, ClusterId, SliceId
from tpu_slices.domain.reconciling.limiter import RAN_OUT
from tpu_slices.domain.records.awaited import PoolOperation
from tpu_slices.domain.records.gangs import InLine
from tpu_slices.domain.records.heartbeats import RelayHeartbeat
from tpu_slices.domain.records.limiters import Budget
from tpu_slices.domain.records.queues import FIRST_QUEUES, capacity_pool_of
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows.hosts import with_free_name
from tpu_slices.ports.deps import IntakeDeps, ReconcileDeps
from tpu_slices.ports.errors import StaleRecord
from tpu_slices.ports.store import Change, Found, Stored

MOST_WAITING = 100
"""How many claims that wait for capacity are looked at."""
MOST_SEEN = 500
"""How many spares are compared with the settings: more than there may be."""


def first_of(
    record: SliceRecord,
    gangs: Iterable[InLine],
    heartbeat: Stored[RelayHeartbeat] | None,
    settings: ClusterSettings,
    deps: ReconcileDeps,
) -> First:
    """Return what comes before a spare that would be made; `gangs`: those in line."""
    cluster = settings.cluster
    pinning = heartbeat.value.pinning_at(deps.clock.now()) if heartbeat is not None else None
    seats, own, tried = seats_of(settings), record.owner.namespace, _tried_again(cluster, deps)
    waiting = _waiting_for_chips(own, cluster, deps)
    others = deps.store.having(cluster, seats.keys()) if settings.spares_most_usd_an_hour else {}
    creations = (each.value for each in deps.store.slots(cluster) if each.value.operation is PoolOperation.CREATE)
    return First(
        making=sum(each.slice_id in seats and each.slice_id != record.maker for each in creations),
        unpinned=pinning is Pinning.NOTHING,
        unheard=pinning is None,
        slots=_others_wait_for_slots(record, deps),
        chips=any(each.namespace == own for each in waiting),
        chips_elsewhere=max((each.chips for each in (*waiting, *tried) if each.namespace != own), default=0),
        chips_tried=max((each.chips for each in tried if each.namespace == own), default=0),
        gangs=waits_for_such(gangs, record, settings),
        capacity=record.spec is not None and any(each.pool == capacity_pool_of(record.spec) for each in tried),
        usd_an_hour=usd_an_hour(record, (each.value for each in others.values()), settings),
    )


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A workload that waits for chips, or a claim that is tried again."""

    namespace: str
    chips: int
    pool: str = ""
    """The capacity pool that ran out when the claim was last tried."""


def _waiting_for_chips(namespace: str, cluster: ClusterId, deps: IntakeDeps) -> list[_Waiting]:
    """Return workloads that wait for chips: those of all namespaces, and of this one, if there are many."""
    every = deps.store.awaiting_chips(cluster, "", MOST_WAITING)
    own = deps.store.awaiting_chips(cluster, namespace, 1) if len(every) == MOST_WAITING else ()
    found = (each.value for each in (*every, *own))
    return [_Waiting(each.owner.namespace, each.chips_awaited or 0) for each in found]


def _others_wait_for_slots(record: SliceRecord, deps: ReconcileDeps) -> bool:
    """Return whether an operation waits for a slot that this one would take, or for its turn in the same place.

    Those that wait for capacity elsewhere wait for long.
    """
    cluster, store = record.cluster, deps.store
    if not store.awaits_slot(cluster):
        return False
    if store.deletions_awaiting_slot(cluster, 1) or store.creations_awaiting_slot(cluster, *FIRST_QUEUES, 1):
        return True
    return record.spec is not None and bool(store.creations_in_pool(cluster, capacity_pool_of(record.spec), 1))


def _tried_again(cluster: ClusterId, deps: ReconcileDeps) -> list[_Waiting]:
    """Return the claims that wait for capacity, which ran out when they were last tried."""
    waiting = (each.value for each in deps.store.for_reasons(cluster, sorted(RAN_OUT), MOST_WAITING))
    claims = (each for each in waiting if each.wanted and not each.owner.kind.is_spare)
    return [
        _Waiting(each.owner.namespace, each.spec.chips, capacity_pool_of(each.spec))
        for each in claims
        if each.spec is not None
    ]


def make_spares(settings: ClusterSettings, deps: ReconcileDeps) -> int:
    """See that each spare that the settings ask for has a record; return how many are to be reconciled for it.

    | the seat                                                 | then                                                 |
    |----------------------------------------------------------|------------------------------------------------------|
    | has a record                                             | nothing: it is looked at by its own time             |
    | is settled, as it was not needed, or its chips were      | it is needed again: it waits for whoever comes first |
    | has none                                                 | it gets one                                          |
    """
    seats = seats_of(settings)
    if not seats or settings.paused is not None:
        return 0
    having = deps.store.having(settings.cluster, seats.keys())
    settled = [stored for stored in having.values() if is_settled(stored.value)]
    made = _made(seats, having, settings, deps)
    for stored in settled:
        after = needed_again(stored.value)
        with suppress(StaleRecord):
            deps.store.commit(Change(stored, replace(after, next_reconcile_at=deps.clock.now())))
            made.append(after)
    deps.publisher.request_reconcile(settings.cluster, [each.name for each in made])
    return len(made)


def _made(
    seats: Mapping[ClaimId, Seat], having: Found[ClaimId, SliceRecord], settings: ClusterSettings, deps: ReconcileDeps
) -> list[SliceRecord]:
    """Write a record for each seat that has none; two sweeps at the same time make one.

    The budget orders them: it is read before it is known that a seat has nothing.
    """
    missing = seats.keys() - having.keys() - having.unreadable.keys()
    if not missing:
        return []
    now, budget = deps.clock.now(), deps.store.budget(settings.cluster)
    before = budget.value if budget else Budget.of(settings.cluster, now)
    having = deps.store.having(settings.cluster, missing)
    missing -= having.keys() | having.unreadable.keys()
    made = [with_free_name(SliceRecord.of(seats[claim].job, now), deps) for claim in sorted(missing)]
    if made:
        guard = Change(budget, replace(before, creations=before.creations + 1, changed_at=now))
        deps.store.commit(guard, *(Change(None, each) for each in made))
    return made


def ask_spares(settings: ClusterSettings, deps: IntakeDeps) -> None:
    """Have each spare looked at that the settings do not ask for any more, or not so, and each that may not stay."""
    found = deps.store.for_reasons(settings.cluster, [Reason.SPARE], MOST_SEEN)
    asked = {each.value.name for each in found if as_wanted(each.value, settings) != each.value}
    if found and settings.paused is None:
        asked |= _let_go(found, settings, deps)
    if asked:
        deps.publisher.request_reconcile(settings.cluster, sorted(asked))


def _let_go(
    standing: Sequence[Stored[SliceRecord]], settings: ClusterSettings, deps: IntakeDeps
) -> set[ClaimId | SliceId]:
    """Let spares go that may not stay; return their names. `make_spares` makes each anew once that is allowed again.

    | where                                                          | go                                        |
    |----------------------------------------------------------------|-------------------------------------------|
    | the relay says that nothing pins pods                          | all                                       |
    | all together cost more than they may                           | the newest (`spares.beyond_limit`)        |
    """
    heartbeat, now = deps.store.heartbeat(settings.cluster), deps.clock.now()
    pinning = heartbeat.value.pinning_at(now) if heartbeat is not None else None
    why, going = UNPINNED, {each.value.id for each in standing}
    if pinning is not Pinning.NOTHING:
        limited = settings.spares_most_usd_an_hour is not None
        seats = deps.store.having(settings.cluster, seats_of(settings).keys()) if limited else {}
        why, going = BEYOND, {each.id for each in beyond_limit((it.value for it in seats.values()), settings)}
    asked = set[ClaimId | SliceId]()
    for stored in standing:
        each = stored.value
        if each.id in going and each.wanted and not each.hold:
            with suppress(StaleRecord):
                deps.store.commit(Change(stored, replace(not_needed(each, why), next_reconcile_at=now)))
                asked.add(each.name)
    return asked

"""Requests reconciles of what is due in a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import zip_longest
from typing import TypeVar

from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows.failures import Failures
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.errors import StaleRecord
from tpu_slices.ports.store import Change, Stored

T = TypeVar("T")

PAGE = 500
"""The most slices of a cluster that one sweep requests as due: the earliest, or if there are more, some of each
namespace; the others come a minute later."""
MOST_NAMESPACES = 100
"""The most namespaces that are looked for beside those of the slices that are due earliest."""
NO_EFFECT_AFTER = timedelta(minutes=1)
"""A slice that has been due for so long was requested by an earlier sweep, too."""
MOVED_ON_BY = timedelta(minutes=10)
"""When such a slice is requested again: it is under way, or redelivered, or fails each time."""
_BATCH = 100
"""How many slices are moved on in one commit."""


def request_due(cluster: ClusterId, deps: ReconcileDeps, failures: Failures) -> int:
    """Request reconciles of the cluster's due slices; return their number.

    A slice stays due until its reconcile is saved. One that an earlier sweep requested without that effect is moved on,
    so that it is neither requested each minute nor in the way of others; it is never settled by that.
    """
    now = deps.clock.now()
    slices = _due(cluster, now, deps)
    deps.publisher.request_reconcile(cluster, sorted(stored.value.name for stored in slices))
    stuck = [stored for stored in slices if now - (stored.value.next_reconcile_at or now) >= NO_EFFECT_AFTER]
    moved_on = [Change(stored, replace(stored.value, next_reconcile_at=now + MOVED_ON_BY)) for stored in stuck]
    for first in range(0, len(moved_on), _BATCH):
        batch = moved_on[first : first + _BATCH]
        failures.attempt(cluster, partial(_commit, batch, deps), None, "slices are requested again in a minute")
    return len(slices)


def _due(cluster: ClusterId, now: datetime, deps: ReconcileDeps) -> Sequence[Stored[SliceRecord]]:
    """Return the earliest due slices; if they fill the page, the earliest of each namespace in turn.

    Each namespace gets its share of the page, whatever number of slices others have. What is read has a bound: the
    page, a read for each of MOST_NAMESPACES, and once more a page in shares.
    """
    earliest = deps.store.due_slices(cluster, now, PAGE)
    if len(earliest) < PAGE:
        return earliest
    found: dict[str, Sequence[Stored[SliceRecord]]] = {
        namespace: [stored for stored in earliest if stored.value.owner.namespace == namespace]
        for namespace in dict.fromkeys(stored.value.owner.namespace for stored in earliest)
    }
    found |= {each: () for each in deps.store.due_namespaces(cluster, now, MOST_NAMESPACES) if each not in found}
    share = max(PAGE // len(found), 1)
    for namespace, known in found.items():
        if len(known) < share:
            found[namespace] = deps.store.due_slices(cluster, now, share, namespace)
    return in_turn(found.values(), PAGE)


def in_turn(queues: Iterable[Sequence[T]], most: int) -> list[T]:
    """Return the first of each queue, then the second of each, and so on; at most so many."""
    rounds = zip_longest(*([(each,) for each in queue] for queue in queues))
    return [each for turn in rounds for one in turn if one is not None for each in one][:most]


def _commit(changes: Sequence[Change], deps: ReconcileDeps) -> None:
    """Write the changes, without those of records that were written meanwhile."""
    try:
        deps.store.commit(*changes)
    except StaleRecord:
        for change in changes:
            with suppress(StaleRecord):
                deps.store.commit(change)

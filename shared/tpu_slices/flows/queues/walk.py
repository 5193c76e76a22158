"""A walk round the queues in which creations wait for a slot."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from tpu_slices.domain.gangs.turns import Line
from tpu_slices.domain.model.slices import SliceId
from tpu_slices.domain.reconciling.limiter import may_try, shortage_of
from tpu_slices.domain.records.limiters import CapacityPool, ConcurrencyLimiter
from tpu_slices.domain.records.queues import slot_pool, slot_queue
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.store import Stored

MOST_NAMESPACES = 20
"""The most reads of queues to hand a slot on: each namespace has one, and one more in capacity pools that are short."""
MOST_POOLS = 3
"""The most reads of a queue's capacity pools, if those who wait longest in it wait where nothing may start now."""
AT_ONCE = 10
"""How many more of the queue are then read: as many slots as may be handed on at the same time."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A walk round the queues of a cluster: the namespaces, and within one who waits longest."""

    limiter: ConcurrencyLimiter
    most: int
    held: Mapping[CapacityPool, int]
    """By capacity pool the fewest hosts for which nothing may start; left out: anything may."""
    line: Line
    deps: ReconcileDeps
    unaware: list[SliceRecord] = field(default_factory=list)
    """Slices that were found where nothing may start, and do not say yet that they wait for their turn."""

    def creations(self, between: tuple[str, str], last: str) -> list[Stored[SliceRecord]]:
        """Return who waits longest in the queues behind that of `last` and round to it, and may start."""
        begin, end = between
        after = start = f"{begin}{last}"
        round_again, found = start == begin, dict[SliceId, Stored[SliceRecord]]()
        for _ in range(MOST_NAMESPACES):
            page = self.deps.store.creations_awaiting_slot(self.limiter.cluster, after, end, self.most)
            for queue, waiting in groupby(page, key=lambda each: slot_queue(each.value)):
                after = queue or end
                found.update((each.value.id, each) for each in self._able(after, [*waiting]))
            if round_again and (not page or after >= start != begin):
                break
            if not page:
                after, round_again = begin, True
        return list(found.values())

    def _able(self, queue: str, waiting: Sequence[Stored[SliceRecord]]) -> list[Stored[SliceRecord]]:
        """Return those of a queue who may start; if some may not, of its other capacity pools, too."""
        able = self._sorted_out(waiting)
        if len(able) == len(waiting):
            return able
        short = sorted(self.held)
        after = start = ("", *short)[zlib.crc32(f"{queue} {self.line.now}".encode()) % (len(short) + 1)]
        for _ in range(MOST_POOLS):
            page = self.deps.store.creations_in_queue(self.limiter.cluster, queue, after, max(self.most, AT_ONCE))
            able += self._sorted_out(page)
            if not page and not start:
                break
            after, start = (slot_pool(page[-1].value) or "", start) if page else ("", "")
        return able

    def _sorted_out(self, waiting: Iterable[Stored[SliceRecord]]) -> list[Stored[SliceRecord]]:
        able = []
        for each in waiting:
            spec, awaited = each.value.spec, each.value.slot_awaited
            behind = self.line.holds_back(each.value) is not None
            if not behind and (spec is None or may_try(spec, self.held, self.limiter, self.line.now)):
                able.append(each)
            elif awaited is not None and (awaited.shortage is None or (behind and self._may_say_so(each.value))):
                self.unaware.append(each.value)
        return able

    def _may_say_so(self, record: SliceRecord) -> bool:
        """Return whether a creation that waits behind a gang does not say so, and would: its capacity ran out."""
        pool, awaited = slot_pool(record), record.slot_awaited
        says = awaited is not None and awaited.shortage is not None and awaited.shortage.behind
        return not says and pool is not None and shortage_of(pool, self.limiter, self.line.now) is not None

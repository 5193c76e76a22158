"""Who comes first where slots and capacity are short: gangs in their order, and singles beside them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.slices import SliceId, WorkloadUid
from tpu_slices.domain.records.awaited import PoolOperation
from tpu_slices.domain.records.gangs import GangKey, InLine
from tpu_slices.domain.records.limiters import Candidate
from tpu_slices.domain.records.queues import capacity_pool_of
from tpu_slices.domain.records.slices import SliceRecord


@dataclass(frozen=True, slots=True)
class Line:
    """The gangs of a cluster that do not stand, by `records.gangs`."""

    gangs: Mapping[GangKey, InLine]
    now: datetime
    limits: Limits
    _since: Mapping[WorkloadUid, datetime] = field(init=False)

    def __post_init__(self) -> None:
        since: dict[WorkloadUid, datetime] = {}
        for each in self.gangs.values():
            since[each.workload] = min(each.since, since.get(each.workload, each.since))
        object.__setattr__(self, "_since", since)

    def holds_back(self, record: SliceRecord) -> InLine | None:
        """Return the gang behind which a creation waits. The first row that holds counts.

        | the creation                                                              | waits                   |
        |---------------------------------------------------------------------------|-------------------------|
        | any, where `gang_backfill` is set; for a gang that is in line itself      | behind none             |
        | a gang came before it, has slices that stand, lacks some of the capacity  | behind the first such   |
        | pool that it needs, and did not hold these for longer than its `hold_for` | gang                    |
        | any other                                                                 | behind none             |

        Else single claims would take one by one what a large gang waits for, which is billed meanwhile.
        """
        if self.limits.gang_backfill or record.owner.uid in self._since or record.spec is None:
            return None
        pool, asked = capacity_pool_of(record.spec), record.claim.awaited_since or self.now
        before = (
            each for each in self.gangs.values() if each.since < asked and pool in each.lacks and self._holds(each)
        )
        return min(before, key=lambda each: (each.since, each.workload), default=None)

    def _holds(self, gang: InLine) -> bool:
        return gang.holds_until is not None and self.now < gang.holds_until

    def before(
        self, first: Candidate, waiting: Iterable[Candidate], records: Mapping[SliceId, SliceRecord]
    ) -> list[Candidate]:
        """Return the creations of gangs that come before the one that a creation is of, in the order of the line.

        So one gang is finished before the next is begun, whichever namespace's turn it is. None come before a deletion,
        or before what is of no gang: between gangs namespaces take turns.
        """

        def place(each: Candidate) -> datetime | None:
            creates = each.operation is PoolOperation.CREATE
            return self._since.get(records[each.id].owner.uid) if creates else None

        own = place(first)
        if own is None:
            return []
        elder = [(at, each.since, each.id, each) for each in waiting if (at := place(each)) is not None and at < own]
        return [each for *_, each in sorted(elder, key=lambda it: it[:3])]


def told_behind(front: InLine, record: SliceRecord) -> str:
    """Return behind what a creation waits, as a clause; names of another namespace are not told."""
    whose = front.workload_name if front.namespace == record.owner.namespace else "a workload of another namespace"
    until = f", until {front.holds_until:%H:%M} UTC at most" if front.holds_until is not None else ""
    return f"the gang of {whose}, which came before it and holds slices that wait for the same capacity{until}"

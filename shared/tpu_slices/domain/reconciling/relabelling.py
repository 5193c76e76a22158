"""What a record knows of whose its pools are, and what is done about one whose labels somebody replaced. Pure.

A pool is ours if its labels say so, or if the record does: its creation was accepted, or a look showed our labels on
it. On Compute Engine the description of the group is what labels are on GKE. Of pools that have our names and nothing
on them says what they were made for,

| the record of the slice of its name               | the pool is                                                      |
|---------------------------------------------------|------------------------------------------------------------------|
| knows it as ours                                  | ours: its labels are put back once the slice is reconciled       |
| cannot be read                                    | unknown                                                          |
| knows nothing of it, or there is none             | unproven: told at each inventory check, and never touched        |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from tpu_slices.domain.model.observations import Busy, Observation, Observed, PoolSeen, Running
from tpu_slices.domain.model.slices import SliceId
from tpu_slices.domain.model.vendors import Vendor
from tpu_slices.domain.reconciling.case import Situation
from tpu_slices.domain.reconciling.decisions import Action, Relabel
from tpu_slices.domain.records.attempts import Relabelling
from tpu_slices.domain.records.slices import SliceRecord


@dataclass(frozen=True, slots=True)
class Relabelled:
    """What is decided about the labels of the current pool."""

    state: Relabelling | None
    actions: tuple[Action, ...] = ()

    @property
    def until(self) -> datetime | None:
        """When the slice is looked at again for it."""
        return self.state.again_at if self.state else None


def known_ours(record: SliceRecord, seen: Observed, now: datetime) -> SliceRecord:
    """Return the record with what a look has shown: a pool whose labels prove it ours."""
    since = now if record.current.ours_since is None and _proves(seen.pool) else record.current.ours_since
    return record.with_current(ours_since=since)


def _proves(seen: Observation) -> bool:
    """Return whether an observation is of a pool that stands, and that is ours: without a record, by its labels."""
    return isinstance(seen, Running | Busy)


def relabelling(case: Situation) -> Relabelled:
    """Return what is done about the labels of the current pool.

    | the current pool                                        | then                                                |
    |---------------------------------------------------------|-----------------------------------------------------|
    | does not stand, or goes                                 | nothing                                             |
    | runs, and has its labels                                | nothing                                             |
    | runs without them, for the first time, or it is time to | they are put back, and it is looked at again        |
    | look at it again                                        | after `resync_after`                                |
    | runs without them otherwise                             | wait                                                |
    | stands otherwise: GKE changes no labels meanwhile       | wait                                                |
    """
    known, seen, again_at = case.record.current.relabelling, case.seen.pool, case.now + case.limits.resync_after
    if case.record.goes or case.nothing_stands or (isinstance(seen, Running) and not seen.lacking):
        return Relabelled(None)
    if known is not None and case.now < known.again_at:
        return Relabelled(known)
    if not isinstance(seen, Running):
        return Relabelled(replace(known, again_at=again_at) if known is not None else None)
    refused = known.refused if known else ""
    anew = Relabelling(lacking=seen.lacking, again_at=again_at, refused=refused)
    return Relabelled(anew, (Relabel(case.record.attempt),))


def labels_replaced(state: Relabelling, vendor: Vendor, *, frozen: bool = False) -> str:
    """Return what is told of a pool whose labels were replaced; `frozen`: nothing is done to it now."""
    known = f"Somebody replaced {vendor.labels} of its {vendor.pool}: {state.lacking} By its record it is ours"
    if frozen:
        return f"{known}; they are put back once nothing is held any more."
    if state.refused:
        again = f"tried again at {state.again_at:%H:%M} UTC"
        return f"{known}. {vendor} refused to put them back, which is {again}: {state.refused}"
    return f"{known}; they are put back."


def unproven(
    pools: Iterable[PoolSeen], slices: Mapping[SliceId, SliceRecord], unreadable: frozenset[str]
) -> tuple[str, ...]:
    """Return the names of the pools that neither they themselves nor a record prove to be ours."""
    nameless = (pool for pool in pools if pool.job is None)
    unknown = (pool for pool in nameless if pool.id not in unreadable)
    return tuple(sorted(each.name for each in unknown if not is_known(slices.get(each.id))))


def is_known(record: SliceRecord | None) -> bool:
    """Return whether the record that has a pool knows it as ours."""
    return record is not None and record.current.ours_since is not None

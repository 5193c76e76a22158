"""Who may start a node pool operation now: a cluster takes only so many at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NewType

from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.slices import ClusterId, SliceId, SliceSpec

Cell = NewType("Cell", str)  # where capacity comes from: zone, accelerator, capacity

FIRST_WIDTH = 5
"""How many operations a cluster starts with: the number in GKE's own refusal (terraform-provider-google#15205)."""
SHORTAGE_MEMORY = timedelta(minutes=15)
"""How long a cell counts as short after it ran out."""
WIDEN_AFTER = timedelta(minutes=5)
"""How long without a refusal until one operation more is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """The document `slots/{cluster}.{number}`: one running creation. Taken by being created, freed by deletion."""

    cluster: ClusterId
    number: int
    slice_id: SliceId
    attempt: int
    cell: Cell
    taken_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Governor:
    """The document `governors/{cluster}`: how wide the door is, and which cells lately ran out."""

    cluster: ClusterId
    width: int = FIRST_WIDTH
    changed_at: datetime
    shortages: Mapping[Cell, datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The document `budgets/{cluster}`: rewritten with each creation that was decided under a limit of chips.

    Its revision puts such creations in order, so that two at once cannot both take the last chips.
    """

    cluster: ClusterId
    creations: int = 0
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class Candidate:
    """A slice that waits for its creation to be admitted."""

    slice_id: SliceId
    cell: Cell
    since: datetime


def cell_of(spec: SliceSpec) -> Cell:
    return Cell(f"{spec.zone}/{spec.accelerator}/{spec.capacity.reservation or spec.capacity.kind}")


def admit(
    waiting: Iterable[Candidate], running: Sequence[Slot], governor: Governor, now: datetime, limits: Limits
) -> tuple[Candidate, ...]:
    """Say who may start: in the order of waiting, as many as there are free slots.

    A cell that lately ran out gets one probe at a time, and all such cells together at most half of the slots.
    """
    width = min(governor.width, limits.operations)
    cells = [slot.cell for slot in running]
    admitted: list[Candidate] = []
    for candidate in sorted(waiting, key=lambda candidate: (candidate.since, candidate.slice_id)):
        if len(cells) >= width:
            break
        if is_short(candidate.cell, governor, now) and not _may_probe(candidate.cell, cells, governor, now, width):
            continue
        admitted.append(candidate)
        cells.append(candidate.cell)
    return tuple(admitted)


def _may_probe(cell: Cell, cells: Sequence[Cell], governor: Governor, now: datetime, width: int) -> bool:
    probes = sum(is_short(taken, governor, now) for taken in cells)
    return cell not in cells and probes < max(1, width // 2)


def is_short(cell: Cell, governor: Governor, now: datetime) -> bool:
    ran_out = governor.shortages.get(cell)
    return ran_out is not None and now - ran_out < SHORTAGE_MEMORY


def narrowed(governor: Governor, now: datetime) -> Governor:
    """Halve the door after GKE refused an operation for their number (429)."""
    return replace(governor, width=max(1, governor.width // 2), changed_at=now)


def widened(governor: Governor, now: datetime, limits: Limits) -> Governor:
    """Open the door by one after a quiet while, up to what is set."""
    if now - governor.changed_at < WIDEN_AFTER or governor.width >= limits.operations:
        return governor
    return replace(governor, width=governor.width + 1, changed_at=now)


def ran_out(governor: Governor, cell: Cell, now: datetime) -> Governor:
    """Remember that a cell had nothing to give, and forget old shortages."""
    kept = {known: at for known, at in governor.shortages.items() if now - at < SHORTAGE_MEMORY}
    return replace(governor, shortages={**kept, cell: now})

"""Splits waiting leaders, and the list of JobSets, into parts that fit into one fact each. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from tpu_slices.domain.model.facts import WaitingLeader, WorkloadsListed
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.wire.bounds import LEADERS_PER_FACT, UIDS_PER_PART
from tpu_slices.wire.messages import bytes_of

LEADERS_BYTES = 250_000
"""The bytes of a message that `tpu_slices.wire.workloads` leaves for leaders; each one of them takes less."""


def parts_of(leaders: Iterable[WaitingLeader]) -> Iterator[tuple[WaitingLeader, ...]]:
    """Yield leaders, in their order, in parts that fit into a fact each; no part is empty."""
    part: list[WaitingLeader] = []
    room = LEADERS_BYTES
    for leader in leaders:
        takes = bytes_of(leader)
        if part and (takes > room or len(part) == LEADERS_PER_FACT):
            yield tuple(part)
            part, room = [], LEADERS_BYTES
        part.append(leader)
        room -= takes
    if part:
        yield tuple(part)


def list_of(uids: Sequence[WorkloadUid], asked_at: datetime) -> tuple[WorkloadsListed, ...]:
    """Return the list of JobSets, which is in ascending order, in parts whose ranges cover every UID there can be."""
    starts = range(0, max(1, len(uids)), UIDS_PER_PART)
    return tuple(
        WorkloadsListed(
            asked_at=asked_at,
            after=uids[start - 1] if start else None,
            up_to=uids[start + UIDS_PER_PART - 1] if start + UIDS_PER_PART < len(uids) else None,
            uids=tuple(uids[start : start + UIDS_PER_PART]),
            parts=len(starts),
        )
        for start in starts
    )

"""Splits waiting leaders into parts that fit into one fact each. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tpu_slices.domain.model.facts import WaitingLeader
from tpu_slices.wire.bounds import LEADERS_PER_FACT
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

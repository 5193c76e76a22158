"""How many waiting leaders go into one fact. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tpu_slices.domain.model.facts import WaitingLeader
from tpu_slices.wire.messages import bytes_of

LEADERS_PER_FACT = 200
"""So many slices are written down in one delivery of a fact."""
LEADERS_BYTES = 250_000
"""What `tpu_slices.wire.workloads` leaves of a message for them, and more than any one of them takes."""


def parts_of(leaders: Iterable[WaitingLeader]) -> Iterator[tuple[WaitingLeader, ...]]:
    """Split leaders, in their order, into parts that each fit into a fact; none is empty."""
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

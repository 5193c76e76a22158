"""What a slice is paid for: the chips of its hosts that stand, and since when without use."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from tpu_slices.domain.model.reasons import IN_LINE, UNUSED, Phase, Reason
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.usage import HELD, Use

VAIN = (Reason.HOSTS_NOT_USABLE, Reason.CREATION_FAILED)
"""The reasons of attempts that came to nothing though hosts were, or may have been, bought: none is a lack of them."""
_IN_VAIN = 2
"""So many of these attempts are a fault that another one does not mend."""
_CREATED = (Reason.CREATION_STARTED, Reason.CREATING)
_AWAITED = (Reason.HOSTS_JOINING, Reason.HOSTS_LOST, Reason.POOL_BROKEN)


def chips_held(record: SliceRecord) -> int:
    """Return the chips of a slice's hosts that stand: see `usage.use_of`."""
    return record.made_as.chips if record.made_as and record.use in HELD else 0


def chips_idle(record: SliceRecord) -> int:
    """Return those of them that are idle."""
    return chips_held(record) if record.use is Use.IDLE else 0


def paid_since(record: SliceRecord) -> datetime | None:
    """Return since when a slice has been paid for without use; None: it is not, or something else tells.

    | slice                                                        | since                                          |
    |--------------------------------------------------------------|------------------------------------------------|
    | needed, its pool is being created                            | its creation was requested                     |
    | needed, hosts of its pool are missing, and nobody is known   | they have been missing, or nobody brings them  |
    | to bring them                                                | back                                           |
    | needed, tried again after two or more attempts of VAIN       | it has been waited for                         |
    | its pool cannot be read                                      | that has been so                               |
    | needed, whole, and its Job does not train on it (UNUSED)     | that has been so                               |

    The first of these times counts. Capacity that is waited for costs nothing; of hosts that come back `hosts.late`
    tells, and of a slice that is RELEASING the count of those.
    """
    return min(_times(record), default=None)


def _times(record: SliceRecord) -> Iterator[datetime]:
    if record.current.unreadable_since is not None:
        yield record.current.unreadable_since
    if record.goes:
        return
    if record.seen_as in _CREATED and record.current.create_requested_at is not None:
        yield record.current.create_requested_at
    if record.seen_as in _AWAITED and record.current.hosts_awaited_since is not None:
        over_at = record.current.returning.over_at if record.current.returning is not None else None
        yield over_at or record.current.hosts_awaited_since
    if record.reason in UNUSED:
        yield record.transitions[-1].at if record.transitions else record.since
    tried_again = record.phase in {Phase.WAITING, Phase.PROVISIONING} or record.reason in IN_LINE
    vain = sum(record.claim.setbacks.get(reason, 0) for reason in VAIN)
    if tried_again and vain >= _IN_VAIN and record.claim.waits_since is not None:
        yield record.claim.waits_since

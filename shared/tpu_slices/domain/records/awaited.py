"""What an operation on a pool waits for: a slot, or its turn to try what ran out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tpu_slices.domain.model.reasons import Reason


class PoolOperation(StrEnum):
    CREATE = "CREATE"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """That a capacity pool could not provide hosts."""

    at: datetime
    reason: Reason
    what: str = "such hosts"
    """The accelerator and topology of the slice that did not get them."""
    again_at: datetime | None = None
    """Before this nobody tries again; None: one may at once. A reservation answers at once, whoever asks."""
    hosts: int = 1
    """The fewest that were refused: of fewer nothing is known."""
    behind: str = ""
    """Of a creation that waits behind a gang: behind which, as a clause; empty: it waits for its turn to try."""
    times: int = 1
    """How often in succession."""
    until: datetime | None = None
    """Before this nobody asks here who has a ladder of places; None: as `at`."""
    message: str = ""
    """What a look at its reservation found, for which nobody may try; empty: it was tried, and is one slice's turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotAwaited:
    """An operation that starts once the cluster has a slot for it."""

    operation: PoolOperation
    attempt: int
    since: datetime
    shortage: Shortage | None = None
    """The shortage for which it waits its turn, as one slice at a time tries; None: it lacks a slot alone."""
    number: int | None = None
    """The slot that was handed on to it: it starts when the slice is reconciled, or gives the slot up."""

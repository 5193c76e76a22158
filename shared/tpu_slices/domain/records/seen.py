"""What was last seen of an attempt's pool, as it was seen."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tpu_slices.domain.model.observations import Visible, Witness


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was seen of a pool; that it could not be read is no evidence."""

    pool: Visible
    since: datetime
    """Since when it has been seen so, by the functions' clocks."""
    by: Witness

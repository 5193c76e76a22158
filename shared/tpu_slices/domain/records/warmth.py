"""What is on record of a slice that is kept warm: nobody uses it, and it waits for a claim that fits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Warmth:
    """Since when a slice has been kept warm, and until when."""

    since: datetime
    until: datetime
    """By the settings as they were when it was looked at last."""
    kept_by: str
    """The namespace by whose setting; empty: by the cluster's."""
    cents_an_hour: int = 0
    """Its price by list, of a dollar; 0: unknown, or it is paid with its reservation."""
    ended: str = ""
    """Why it is kept no longer, although its time is not over; empty: it is not so."""

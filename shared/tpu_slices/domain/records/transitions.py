"""What a slice has said of itself: its last transitions stand in its record."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tpu_slices.domain.model.reasons import Phase, Reason

HISTORY = 20
"""The number of transitions that a record keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    at: datetime
    phase: Phase
    reason: Reason
    message: str

"""The documents `rejected/`: messages that could not be handled."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedMessage:
    """A message that could not be handled; the beginning of each text is kept for operators in `rejected/`."""

    message_id: str
    source: str
    """The source of its CloudEvent, which names the topic."""
    rejected_at: datetime
    error: str
    data: str
    """Its data, as text."""

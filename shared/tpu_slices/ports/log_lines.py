"""Reads whether lines of the log become numbers. Only `slices doctor` asks."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from tpu_slices.ports.log_events import LogEvent


class LogLines(Protocol):
    """The log-based metrics of the project, and the lines that they count."""

    def counts(self, event: LogEvent, since: datetime) -> bool:
        """Return whether the metric of an event has counted a line that was written since then.

        Temporary: it is not known, as the log cannot be read. Permanent: as whoever asks may not read it, or there is
        no such metric.
        """

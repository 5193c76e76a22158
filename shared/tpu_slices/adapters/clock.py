"""The clock of the system."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime


class SystemClock:
    """The port `Clock` on the system clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def pause(self, at_most: float) -> None:
        time.sleep(random.uniform(0, at_most))  # noqa: S311 - jitter, not a secret

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The waitForPodsReady section of Kueue's Configuration (apis/config)."""

    pods_ready_timeout: timedelta | None = None
    """How long the pods of an admitted Workload may take to be ready, also after a failure; None: no limit."""

    backoff_base: timedelta = timedelta(seconds=60)
    """requeuingStrategy.backoffBaseSeconds: the backoff after the first timeout; it doubles each time."""

    backoff_max: timedelta = timedelta(seconds=3600)
    """requeuingStrategy.backoffMaxSeconds."""

    def backoff(self, count: int) -> timedelta:
        """Return the backoff before a Workload is requeued for the `count`th time, counted from 1."""
        times: int = 2 ** min(count - 1, 32)
        return min(self.backoff_base * times, self.backoff_max)

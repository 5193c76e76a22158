from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What Kueue's Configuration (apis/config) says in waitForPodsReady."""

    pods_ready_timeout: timedelta | None = None
    """How long the pods of an admitted Workload may take to be ready, also after a failure; None: for ever."""

    backoff_base: timedelta = timedelta(seconds=60)
    """requeuingStrategy.backoffBaseSeconds: how long it waits after the first timeout; then twice as long each time."""

    backoff_max: timedelta = timedelta(seconds=3600)
    """requeuingStrategy.backoffMaxSeconds."""

    def backoff(self, count: int) -> timedelta:
        """Give the wait before a Workload is queued again for the `count`th time, from 1."""
        times: int = 2 ** min(count - 1, 32)
        return min(self.backoff_base * times, self.backoff_max)

"""Expiry of stored events: an hour after they were last written (kube-apiserver --event-ttl; pure)."""

from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from infra.local.cluster.ownership import Key

EVENT_TTL = timedelta(hours=1)


class _Lease(NamedTuple):
    ends: datetime
    key: Key
    version: str


class Expiry:
    """The leases of events, in the order in which they expire."""

    def __init__(self) -> None:
        self._leases: deque[_Lease] = deque()

    def note(self, key: Key, version: str, now: datetime) -> None:
        """Record that an event was written."""
        self._leases.append(_Lease(now + EVENT_TTL, key, version))

    def due(self, now: datetime) -> Iterator[tuple[Key, str]]:
        """Yield each expired lease once: the event's key and the version that was written."""
        while self._leases and self._leases[0].ends <= now:
            lease = self._leases.popleft()
            yield lease.key, lease.version

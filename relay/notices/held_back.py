"""Tells whoever looks at a workload that changes too often why it waits: once for each hold, by an Event on it.

| of an active workload is held back              | is told of                                      |
|-------------------------------------------------|-------------------------------------------------|
| what will be told within `LONG`                 | never: nobody would read it by then             |
| what will be told later                         | once, with how often it changed, and until when |

No fact comes of it (`relay.telling` has what is held back).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from math import ceil
from typing import Any, Protocol

import structlog

from relay.events import held_back
from relay.telling.workloads import HeldBack
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent

_log = structlog.get_logger()

LOOK_EVERY = 5.0
LONG = timedelta(seconds=10)


class Cluster(Protocol):
    """Single calls, as in `relay.cluster.Cluster`."""

    def renew(self, event: Mapping[str, Any]) -> None: ...


class HeldBackTold:
    """Looks each `LOOK_EVERY` seconds; `held` may fail with Temporary, and `now` is the clock of its times."""

    def __init__(self, held: Callable[[], Iterable[HeldBack]], cluster: Cluster, now: Callable[[], datetime]) -> None:
        self._held = held
        self._cluster = cluster
        self._now = now
        self._told: dict[WorkloadUid, datetime] = {}
        self._stopping = threading.Event()

    def run(self) -> None:
        """Look until `stop` is called."""
        while not self._stopping.wait(LOOK_EVERY):
            self.look()

    def stop(self) -> None:
        self._stopping.set()

    def look(self) -> None:
        """Post an Event on each workload of which something is held back for long, if it has none of this hold."""
        now = self._now()
        self._told = {uid: until for uid, until in self._told.items() if until > now}
        try:
            held = [*self._held()]
        except Temporary:
            return
        for each in held:
            if self._told.get(each.owner.uid) != each.until and each.until - now > LONG:
                self._tell(each, now)

    def _tell(self, held: HeldBack, now: datetime) -> None:
        message = why(held, now)
        try:
            self._cluster.renew(held_back(held.owner, message, now, held.since))
        except (Temporary, Permanent) as trouble:
            _log.debug(LogEvent.HELD_BACK_FAILED, owner=held.owner.full_name, error=str(trouble))
            return
        self._told[held.owner.uid] = held.until
        _log.info(LogEvent.HELD_BACK_TOLD, owner=held.owner.full_name, message=message)


def why(held: HeldBack, now: datetime) -> str:
    """Return why something is held back, and until when."""
    minutes = max(1, ceil((now - held.since) / timedelta(minutes=1)))
    within = f"{minutes} minutes" if minutes > 1 else "a minute"
    what = "It was suspended, resumed or changed, or its leader pods were replaced,"
    return f"{what} {held.changes} times within {within}: what it needs is asked for at {held.until:%H:%M:%S} UTC."

"""The loop of controllers: a round after every change, and when one of them wants it."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, Protocol, TypeVar

from tpu_standins.clients.errors import ApiError
from tpu_standins.clients.objects import Objects
from tpu_standins.clients.rounds import soonest

_log = logging.getLogger(__name__)

P = TypeVar("P")
"""The durations that a program's controllers share."""

Controller = Callable[[Objects, datetime, P], datetime | None]
"""Brings the cluster one step nearer to what is asked for; returns when to run again if nothing changes."""

_LONGEST = timedelta(minutes=1)


class Changing(Objects, Protocol):
    """Objects of which one can wait for the next change: `tpu_standins.clients.cache.Cache`."""

    @property
    def changes(self) -> int: ...

    def wait_for_change(self, since: int, within: float) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    gather: timedelta = timedelta(milliseconds=20)
    """How long changes are gathered before the next round; at least as long as the last one took."""

    retry: timedelta = timedelta(seconds=1)
    """After an error, until the next round."""


class Program(Generic[P]):
    """Controllers of one process. `clock` returns timezone-aware UTC datetimes."""

    def __init__(
        self, controllers: Sequence[Controller[P]], pace: P, clock: Callable[[], datetime], rounds: Rounds | None = None
    ) -> None:
        self._controllers = controllers
        self._pace = pace
        self._clock = clock
        self._rounds = rounds or Rounds()

    def run(self, objects: Changing) -> None:
        """Run until interrupted: a signal's handler raises (`tpu_standins.interrupts.orderly_end`)."""
        while True:
            seen, began = objects.changes, time.monotonic()
            now = self._clock()
            wake = self.round(objects, now) or now + _LONGEST
            time.sleep(max(self._rounds.gather.total_seconds(), time.monotonic() - began))
            objects.wait_for_change(seen, max((wake - self._clock()).total_seconds(), 0))

    def round(self, objects: Objects, now: datetime) -> datetime | None:
        """Run every controller once; return when one wants to run again even if nothing changes."""
        return soonest([self._look(controller, objects, now) for controller in self._controllers])

    def _look(self, controller: Controller[P], objects: Objects, now: datetime) -> datetime | None:
        """Run one controller. An error is logged; the other controllers, and the next round, go on."""
        try:
            return controller(objects, now, self._pace)
        except ApiError as error:
            _log.warning("%s: %s", controller.__module__, error)
        except Exception:  # noqa: BLE001 - an error in one controller must not end the others
            _log.exception("a round of %s failed", controller.__module__)
        return now + self._rounds.retry

"""One round of a controller: every object once, and when to run again even without a change."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

from tpu_standins.clients.errors import ApiError, Unreachable
from tpu_standins.clients.objects import Object

Doubt = Callable[[Object, Exception], None]
"""Called with an object that a controller could not process, and the error."""

_Outcome = tuple[Object, datetime | None, Exception | None]

Across = Callable[[Callable[[Object], Any], Iterable[Object]], Iterable[Any]]
"""Calls a function for every object: `map`, or that of an executor if each takes its time."""


def crew(most: int = 12) -> Across:
    """Return a `map` that works on several objects at a time: mostly, that is waiting for the server."""
    return ThreadPoolExecutor(most).map


def soonest(wakes: Iterable[datetime | None]) -> datetime | None:
    return min((wake for wake in wakes if wake is not None), default=None)


def each(
    objects: Iterable[Object], step: Callable[[Object], datetime | None], doubt: Doubt, *, across: Across = map
) -> datetime | None:
    """Call `step` for every object and return the earliest wake-up time.

    An object that was changed or deleted meanwhile (404, 409) is skipped: another round follows that change. Where
    the server does not answer, the round ends; if it could not do something now, at the end: `run` tries again. Any
    other error of an object is passed to `doubt`. None affects other objects.
    """

    def tried(obj: Object) -> _Outcome:
        try:
            return obj, step(obj), None
        except Exception as error:  # noqa: BLE001 - user input can fail in more ways than there are error types
            return obj, None, error

    wakes: list[datetime | None] = []
    passing: ApiError | None = None
    for obj, wake, error in across(tried, objects):
        wakes.append(wake)
        if isinstance(error, Unreachable):
            raise error
        if isinstance(error, ApiError) and error.passes:
            passing = error
        elif error is not None and not _is_past(error):
            doubt(obj, error)
    if passing is not None:
        raise passing
    return soonest(wakes)


def _is_past(error: Exception) -> bool:
    return isinstance(error, ApiError) and error.reason in ("NotFound", "Conflict")

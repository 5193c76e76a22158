"""One round of a controller: every object once, and when to run again even without a change."""

from collections.abc import Callable, Iterable
from datetime import datetime

from infra.local.clients.errors import ApiError, Unreachable
from infra.local.clients.objects import Object

Doubt = Callable[[Object, Exception], None]
"""Called with an object that a controller could not process, and the error."""


def soonest(wakes: Iterable[datetime | None]) -> datetime | None:
    return min((wake for wake in wakes if wake is not None), default=None)


def each(objects: Iterable[Object], step: Callable[[Object], datetime | None], doubt: Doubt) -> datetime | None:
    """Call `step` for every object and return the earliest wake-up time.

    An object that was changed or deleted meanwhile (404, 409) is skipped: another round follows that change. Where
    the server does not answer, the round ends; if it could not do something now, at the end: `run` tries again. Any
    other error of an object is passed to `doubt`. None affects other objects.
    """
    wakes: list[datetime | None] = []
    passing: ApiError | None = None
    for obj in objects:
        try:
            wakes.append(step(obj))
        except Unreachable:
            raise
        except ApiError as error:
            if error.passes:
                passing = error
            elif error.reason not in ("NotFound", "Conflict"):
                doubt(obj, error)
        except Exception as error:  # noqa: BLE001 - user input can fail in more ways than there are error types
            doubt(obj, error)
    if passing is not None:
        raise passing
    return soonest(wakes)

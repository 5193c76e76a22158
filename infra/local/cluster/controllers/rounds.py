"""One iteration of a controller: every object once, and when to run again even without a change."""

from collections.abc import Callable, Iterable
from datetime import datetime

from infra.local.cluster.objects import ApiError, Object

Doubt = Callable[[Object, Exception], None]
"""Called with an object that a controller could not process, and the error."""


def soonest(wakes: Iterable[datetime | None]) -> datetime | None:
    return min((wake for wake in wakes if wake is not None), default=None)


def each(objects: Iterable[Object], step: Callable[[Object], datetime | None], doubt: Doubt) -> datetime | None:
    """Call `step` for every object and return the earliest wake-up time.

    An object that was changed or deleted during the iteration (404, 409) is skipped: its change has raised the
    version, so that another iteration follows. Any other error of an object is passed to `doubt` and does not
    affect other objects.
    """
    wakes: list[datetime | None] = []
    for obj in objects:
        try:
            wakes.append(step(obj))
        except ApiError as error:
            if error.reason not in ("NotFound", "Conflict"):
                doubt(obj, error)
        except Exception as error:  # noqa: BLE001 - user input can fail in more ways than there are error types
            doubt(obj, error)
    return soonest(wakes)

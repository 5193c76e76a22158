"""One round of a controller: every object once, and when to look again by itself."""

from collections.abc import Callable, Iterable
from datetime import datetime

from infra.local.cluster.objects import ApiError, Object

Doubt = Callable[[Object, Exception], None]
"""Told of an object that a controller could not deal with, and why."""


def soonest(wakes: Iterable[datetime | None]) -> datetime | None:
    return min((wake for wake in wakes if wake is not None), default=None)


def each(objects: Iterable[Object], step: Callable[[Object], datetime | None], doubt: Doubt) -> datetime | None:
    """Take a step for every object and answer the soonest wake-up.

    An object that changed or went while the round was under way (404, 409) is passed over: what happened to
    it has raised the version, so another round follows. Whatever else is wrong with an object is told to
    `doubt` and harms no other object.
    """
    wakes: list[datetime | None] = []
    for obj in objects:
        try:
            wakes.append(step(obj))
        except ApiError as error:
            if error.reason not in ("NotFound", "Conflict"):
                doubt(obj, error)
        except Exception as error:  # noqa: BLE001 - users write objects in more ways than there are error types
            doubt(obj, error)
    return soonest(wakes)

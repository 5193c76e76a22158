"""One round of a controller: every object once, and when to look again by itself."""

from collections.abc import Callable, Iterable
from datetime import datetime

from infra.local.cluster.objects import ApiError, Object


def soonest(wakes: Iterable[datetime | None]) -> datetime | None:
    return min((wake for wake in wakes if wake is not None), default=None)


def each(objects: Iterable[Object], step: Callable[[Object], datetime | None]) -> datetime | None:
    """Take a step for every object and answer the soonest wake-up.

    An object that changed or went while the round was under way (404, 409) is passed over: what happened to
    it has raised the version, so another round follows. Every other error is raised.
    """
    wakes: list[datetime | None] = []
    for obj in objects:
        try:
            wakes.append(step(obj))
        except ApiError as error:
            if error.reason not in ("NotFound", "Conflict"):
                raise
    return soonest(wakes)

"""Which claims a gang has, by the object of its workload, with pods or without, and how many claims wait. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum, auto

from relay.objects import Place, Workload
from tpu_slices.domain.model.facts import TemplateRequest
from tpu_slices.domain.planning.sharing import slices_of


class Awaited(Enum):
    """How many of a workload's slices have a leader that waits for them."""

    NONE = auto()
    SOME = auto()
    ALL = auto()


def has_gangs(workload: Workload) -> bool:
    """Return whether claims of a workload are of gangs."""
    return any(request.gang for request in workload.requests)


def gangs_of(workload: Workload, places: Iterable[Place]) -> frozenset[str]:
    """Return the gangs that these claims are of."""
    by_name = {request.replicated_job: request.gang for request in workload.requests}
    return frozenset(filter(None, (by_name.get(each.replicated_job) for each in places)))


def claims_of(workload: Workload, gang: str) -> Iterator[tuple[TemplateRequest, Place]]:
    """Yield the claims of a gang, in the order of the spec, each with what its pods request."""
    for request in workload.requests:
        if request.gang == gang:
            yield from ((request, Place(request.replicated_job, index)) for index in range(slices_of(request)))

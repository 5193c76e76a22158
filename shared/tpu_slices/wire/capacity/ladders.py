"""Reads a workload's ladder, how long it runs, and whether it takes hosts of others.

Its annotations hold for the pod templates without such.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tpu_slices.domain.model.capacity import EXPECTED_DURATION, FRESH, LADDER
from tpu_slices.domain.model.facts import TemplateRequest
from tpu_slices.domain.model.slices import Pairs
from tpu_slices.wire.workloads import Json, annotations_of, reading

_OF_WORKLOADS = (LADDER, EXPECTED_DURATION, FRESH)
_LONGEST = 64
"""Characters of what they say that are read: nothing valid is as long."""

Requests = Callable[[Json], tuple[TemplateRequest, ...]]


def with_ladder(requests_of: Requests) -> Requests:
    """Return what reads a workload's requests with what it says itself."""

    def requests(obj: Json) -> tuple[TemplateRequest, ...]:
        found = requests_of(obj)
        with reading("metadata"):
            annotations = annotations_of(obj)
        said = tuple((key, annotations[key][:_LONGEST]) for key in _OF_WORKLOADS if key in annotations)
        return tuple(_with(each, said) for each in found) if said else found

    return requests


def _with(request: TemplateRequest, said: Pairs) -> TemplateRequest:
    own = dict(request.requested_annotations)
    more = tuple((key, value) for key, value in said if key not in own)
    return replace(request, requested_annotations=(*request.requested_annotations, *more))

"""Reads the ladder that a workload's annotation names: it holds for the pod templates that name none themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tpu_slices.domain.model.capacity import LADDER
from tpu_slices.domain.model.facts import TemplateRequest
from tpu_slices.wire.workloads import Json, annotations_of, reading

_LONGEST = 64
"""Characters of a name that are read: none is as long."""

Requests = Callable[[Json], tuple[TemplateRequest, ...]]


def with_ladder(requests_of: Requests) -> Requests:
    """Return what reads a workload's requests with the ladder that it names."""

    def requests(obj: Json) -> tuple[TemplateRequest, ...]:
        found = requests_of(obj)
        with reading("metadata"):
            named = annotations_of(obj).get(LADDER)
        return found if named is None else tuple(_named(each, named[:_LONGEST]) for each in found)

    return requests


def _named(request: TemplateRequest, ladder: str) -> TemplateRequest:
    if LADDER in dict(request.requested_annotations):
        return request
    return replace(request, requested_annotations=(*request.requested_annotations, (LADDER, ladder)))

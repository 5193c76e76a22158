"""Recognises super-, sub- and dynamic slicing, where GKE forms slices of parts of pools, or of several. Pure.

That needs pools of cubes that are made beforehand (Compute Engine's topology mode PROVISION_ONLY), and GKE's slice
controller; here each slice is a pool of its own, whose hosts are connected from the start.
"""

from __future__ import annotations

from collections.abc import Iterator

from tpu_slices.domain.model.facts import INJECT_SLICE_SELECTOR, SLICE_TOPOLOGY, TemplateRequest
from tpu_slices.domain.planning.host_labels import TOPOLOGY
from tpu_slices.domain.planning.obstacles import Obstacle, does_not_fit

_HERE = "super-, sub- or dynamic slicing, and a slice of this provisioner has hosts of its own"


def asks_gke_for_a_slice(request: TemplateRequest) -> bool:
    """Return whether a template asks for a slice that GKE forms."""
    return next(sliced_by_gke(request), None) is not None


def sliced_by_gke(request: TemplateRequest) -> Iterator[Obstacle]:
    """Yield the marks of such a slice; an annotation with the topology that the pods select asks for nothing else."""
    marks = dict(request.slicing)
    slice_ = marks.get(SLICE_TOPOLOGY)
    if slice_ is not None and slice_ != request.topology:
        selected = f'select "{request.topology}"' if request.topology else "select no topology"
        yield does_not_fit(
            f'{SLICE_TOPOLOGY}: the annotation is "{slice_}" and the pods {selected}: that is {_HERE}: select '
            f'"{slice_}" with {TOPOLOGY}, and remove the annotation'
        )
    if INJECT_SLICE_SELECTOR in marks:
        yield does_not_fit(
            f'{INJECT_SLICE_SELECTOR}: "{marks[INJECT_SLICE_SELECTOR]}" is for {_HERE}: remove it, and select the '
            f"whole slice with {TOPOLOGY}"
        )

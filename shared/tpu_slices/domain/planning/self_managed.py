"""What slices of self-managed clusters, which are groups of instances on Compute Engine, cannot have. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tpu_slices.domain.catalogue.accelerators import CATALOGUE, SETTING
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import PROVISIONING_REQUESTS, TemplateRequest
from tpu_slices.domain.planning.flex_start import is_flex_start
from tpu_slices.domain.planning.host_labels import ACCELERATOR, FLEX_START
from tpu_slices.domain.planning.obstacles import Obstacle, does_not_fit


def not_in_groups(request: TemplateRequest, settings: ClusterSettings) -> Iterator[Obstacle]:
    """Yield what of a request only node pools of GKE can have."""
    kind = settings.accelerators.get(request.accelerator or "")
    if kind is not None and not kind.in_groups:
        supported = " or ".join(each.label for each in settings.accelerators.values() if each.in_groups)
        own = "" if kind.label in CATALOGUE else f", or have {SETTING} of the settings say of it in_groups: yes"
        yield does_not_fit(
            f'{ACCELERATOR}: the pods select "{kind.label}", of which a self-managed cluster can have no hosts: select '
            f"{supported}{own}"
        )
    if is_flex_start(request):
        yield does_not_fit(
            f'{FLEX_START}: the pods select "true", and in a self-managed cluster there is no flex-start: remove the '
            "selector; capacity that is missing is awaited without it too"
        )
    annotations = dict(request.requested_annotations)
    for key in PROVISIONING_REQUESTS:
        if key in annotations:
            yield does_not_fit(
                f'{key}: the pods consume the ProvisioningRequest "{annotations[key]}", and in a self-managed cluster '
                "none is provisioned: remove the annotation"
            )

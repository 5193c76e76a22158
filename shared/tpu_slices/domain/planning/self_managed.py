"""What slices of self-managed clusters, which are groups of instances on Compute Engine, cannot have. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import SliceSpec
from tpu_slices.domain.planning.host_labels import FLEX_START, PLACEMENT_POLICY
from tpu_slices.domain.planning.obstacles import Obstacle, does_not_fit


def not_in_groups(spec: SliceSpec, settings: ClusterSettings) -> Iterator[Obstacle]:
    """Yield what of a request only node pools of GKE can have, in a cluster that has none."""
    if not settings.self_managed:
        return
    if spec.is_flex_start:
        yield does_not_fit(
            f'{FLEX_START}: the pods select "true", and in a self-managed cluster there is no flex-start: remove the '
            "selector; capacity that is missing is awaited without it too"
        )
    if spec.workload_policy is not None:
        yield does_not_fit(
            f'{PLACEMENT_POLICY}: the pods select "{spec.workload_policy}", and in a self-managed cluster each slice '
            "gets a workload policy of its own: remove the selector"
        )

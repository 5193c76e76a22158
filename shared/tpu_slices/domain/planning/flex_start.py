"""Flex-start: hosts that GKE adds to an empty node pool when it has them, and takes back after a while. Pure.

Sources: GKE's page on flex-start (concepts/dws); GKE's cluster autoscaler, which adds all hosts of a slice at once
(GoogleCloudPlatform/cluster-autoscaler@7d25050, pkg/autoprovisioning/injection.go: durations, and what excludes what).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import MAX_RUN_DURATION, TemplateRequest
from tpu_slices.domain.model.slices import Capacity, CapacityKind
from tpu_slices.domain.model.texts import duration
from tpu_slices.domain.planning.gangs import not_by_flex_start
from tpu_slices.domain.planning.host_labels import ACCELERATOR, FLEX_START, NAMESPACED_JOB
from tpu_slices.domain.planning.obstacles import DoesNotFit, Obstacle, does_not_fit

SHORTEST = timedelta(minutes=10)
LONGEST = timedelta(days=7)
"""GKE's limits of the run duration of flex-start hosts."""


def is_flex_start(request: TemplateRequest) -> bool:
    """Return whether the template selects flex-start hosts."""
    return dict(request.node_selector).get(FLEX_START) == "true"


def flex_start_fits(
    request: TemplateRequest, settings: ClusterSettings, *, selected: bool = True
) -> Iterator[Obstacle]:
    """Yield what of a template excludes flex-start hosts, which it selects, or else a rung of its ladder is."""
    asked = 'the pod selects "true"' if selected else "a rung of the ladder is flex-start"
    accelerator = settings.accelerators.get(request.accelerator or "")
    if accelerator is not None and accelerator.flex_start is False:
        yield does_not_fit(
            f"{FLEX_START}: {asked}, and GKE has no flex-start for {accelerator.label}: "
            f"{'remove the selector, or ' if selected else ''}select another {ACCELERATOR}"
        )
    yield from not_by_flex_start(request)
    if request.exclusive_nodes:
        yield does_not_fit(
            f"{FLEX_START}: {asked}, and GKE adds hosts only for pods that fit them: placement by "
            f"node selector needs the label {NAMESPACED_JOB}, which hosts get once they are there: remove one of them"
        )


def flex_start(request: TemplateRequest, settings: ClusterSettings) -> Capacity:
    """Return flex-start with the run duration of the template, else of the settings; raise DoesNotFit by key."""
    given = dict(request.requested_annotations).get(MAX_RUN_DURATION)
    if given is None:
        return Capacity(CapacityKind.FLEX_START, max_run_duration=settings.max_run_duration)
    seconds = int(given) if given.isascii() and given.isdigit() and len(given) < len("1000000") else 0
    if not SHORTEST <= timedelta(seconds=seconds) <= LONGEST:
        raise DoesNotFit(
            f'{MAX_RUN_DURATION}: the pod has "{given}", and GKE takes {SHORTEST.total_seconds():.0f} to '
            f"{LONGEST.total_seconds():.0f} seconds ({duration(SHORTEST)} to {duration(LONGEST)})"
        )
    return Capacity(CapacityKind.FLEX_START, max_run_duration=timedelta(seconds=seconds))


def no_run_duration(request: TemplateRequest, settings: ClusterSettings) -> Iterator[Obstacle]:
    """Yield that a template that does not select flex-start hosts says how long they are to run."""
    given = dict(request.requested_annotations).get(MAX_RUN_DURATION)
    if given is not None:
        select = "" if settings.self_managed else f'select {FLEX_START}: "true", or '
        yield does_not_fit(
            f'{MAX_RUN_DURATION}: the pod has "{given}", and only flex-start hosts end by themselves: {select}'
            "remove the annotation"
        )

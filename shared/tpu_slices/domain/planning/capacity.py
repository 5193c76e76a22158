"""The capacity of a slice: what its template selects, or what a rung of its ladder is. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta

from tpu_slices.domain.model.capacity import EXPECTED_DURATION, FRESH
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import MAX_RUN_DURATION, TemplateRequest
from tpu_slices.domain.model.slices import Capacity, CapacityKind, OwnerKind, RungSpec, Taint
from tpu_slices.domain.model.texts import as_duration, shortened
from tpu_slices.domain.planning.flex_start import flex_start, flex_start_fits, is_flex_start, no_run_duration
from tpu_slices.domain.planning.host_labels import (
    JOBSET_TAINT,
    RESERVATION,
    RESERVATION_BLOCK,
    RESERVATION_PROJECT,
    RESERVATION_SUBBLOCK,
    SPOT,
)
from tpu_slices.domain.planning.obstacles import DoesNotFit, Obstacle, Obstacles, does_not_fit

_RESOURCE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SPOT_TAINT = Taint(SPOT, "true")
"""The taint that GKE's autoprovisioning sets on spot nodes; every TPU pod tolerates GKE's other one, google.com/tpu."""
_LONGEST_EXPECTED = timedelta(days=365)


def capacity_of(request: TemplateRequest, settings: ClusterSettings, found: Obstacles) -> Capacity:
    """Return the capacity that the template requests: flex-start, a reservation, spot, or on demand."""
    if settings.force_on_demand:
        return Capacity()
    if is_flex_start(request) and settings.self_managed:
        return Capacity()  # which `not_in_groups` refuses
    if is_flex_start(request):
        found.add(flex_start_fits(request, settings))
        return found.part(lambda: flex_start(request, settings), Capacity(CapacityKind.FLEX_START))
    found.add(no_run_duration(request, settings))
    some = Capacity(CapacityKind.RESERVATION)  # besides flex-start the only kind of which a part can be wrong
    return found.part(lambda: _selected(dict(request.node_selector)), some)


def _selected(selector: Mapping[str, str]) -> Capacity:
    """Return the capacity that a node selector requests: a reservation, spot, or on demand.

    A reservation of another project, and a block or sub-block of one, are named as GKE's `values` require.
    """
    if RESERVATION not in selector:
        return Capacity(CapacityKind.SPOT) if selector.get(SPOT) == "true" else Capacity()
    name = resource(selector, RESERVATION)
    if RESERVATION_PROJECT in selector:
        name = f"projects/{resource(selector, RESERVATION_PROJECT)}/reservations/{name}"
    if RESERVATION_BLOCK in selector:
        name = f"{name}/reservationBlocks/{resource(selector, RESERVATION_BLOCK)}"
        if RESERVATION_SUBBLOCK in selector:
            name = f"{name}/reservationSubBlocks/{resource(selector, RESERVATION_SUBBLOCK)}"
    return Capacity(CapacityKind.RESERVATION, name)


def resource(selector: Mapping[str, str], key: str) -> str:
    """Return the name of a resource that a selector gives, as Compute Engine allows names; raise DoesNotFit."""
    if not _RESOURCE_NAME.fullmatch(selector[key]):
        raise DoesNotFit(f'{key}: "{selector[key]}" is not a name: up to 63 of a-z, 0-9 and -, with no - at either end')
    return selector[key]


def taints_of(request: TemplateRequest, capacity: Capacity) -> tuple[Taint, ...]:
    spot = (_SPOT_TAINT,) if capacity.kind is CapacityKind.SPOT else ()
    return (*spot, Taint(JOBSET_TAINT, "true")) if request.exclusive_nodes else spot


def capacity_at(rung: RungSpec, request: TemplateRequest, settings: ClusterSettings, found: Obstacles) -> Capacity:
    """Return the capacity of a rung for a template, which may say how long flex-start hosts are to run."""
    kind = rung.capacity.kind
    found.add(_not_bought(rung, settings))
    if kind is not CapacityKind.FLEX_START:
        return rung.capacity
    found.add(flex_start_fits(request, settings, selected=False))
    says = MAX_RUN_DURATION in dict(request.requested_annotations)
    return found.part(lambda: flex_start(request, settings), rung.capacity) if says else rung.capacity


def _not_bought(rung: RungSpec, settings: ClusterSettings) -> Iterator[Obstacle]:
    kind = rung.capacity.kind
    if settings.force_on_demand and kind is not CapacityKind.ON_DEMAND:
        yield does_not_fit(f"force_on_demand: the cluster's settings have nothing bought as {kind.lower()}")
    if settings.self_managed and kind is CapacityKind.FLEX_START:
        yield does_not_fit("capacity: in a self-managed cluster there is no flex-start")


def expected_duration(request: TemplateRequest) -> timedelta | None:
    """Return how long a Job runs; None: nobody says. Raise DoesNotFit if it is no duration."""
    given = dict(request.requested_annotations).get(EXPECTED_DURATION)
    if given is None:
        return None
    try:
        lasts = as_duration(given)
    except ValueError:
        lasts = timedelta(0)
    if not timedelta(0) < lasts <= _LONGEST_EXPECTED:
        raise DoesNotFit(
            f'{EXPECTED_DURATION}: "{shortened(given, 40)}" is no duration: write it as 90m, 12h or 2d, up to '
            f"{_LONGEST_EXPECTED.days}d"
        )
    return lasts


def takes(kind: OwnerKind, request: TemplateRequest, settings: ClusterSettings) -> bool:
    """Return whether a claim may get hosts that another namespace had; raise DoesNotFit if `fresh` is no answer.

    | the claim                                       | may  |
    |-------------------------------------------------|------|
    | asks for `fresh` hosts                          | no   |
    | is of a LeaderWorkerSet, or a TPUNodeGroup      | no   |
    | is in a cluster that keeps no slices for all    | no   |
    | else                                            | yes  |
    """
    given = dict(request.requested_annotations).get(FRESH, "false")
    if given not in {"true", "false"}:
        raise DoesNotFit(
            f'{FRESH}: "{shortened(given, 40)}" is neither "true" nor "false": write "true" if no slice is wanted that '
            "another namespace had, or remove it"
        )
    return given == "false" and not kind.stays and settings.hands_across

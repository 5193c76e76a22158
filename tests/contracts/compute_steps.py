"""The steps in which the adapter for Compute Engine makes and deletes a pool."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.adapters.compute_stories import TPU7X, story
from tests.contracts.local_compute import LocalCompute
from tests.contracts.test_backend import started
from tpu_slices.adapters.compute.requests import part_names
from tpu_slices.domain.model.observations import Absent, Begun, Deleting, Observation
from tpu_slices.domain.model.slices import InstanceRequest
from tpu_slices.ports.backend import PoolOrder

POLICIES, TEMPLATES, GROUPS = "resourcePolicies", "instanceTemplates", "instanceGroupManagers"
PARTS = (POLICIES, TEMPLATES, GROUPS)
MINUTE = timedelta(minutes=1)


def an_order(place: LocalCompute, **changes: Any) -> PoolOrder:
    """Return the order of a slice of two hosts."""
    return replace(story(TPU7X, place.cluster.pools).order, **changes)


def with_template(order: PoolOrder, path: str) -> PoolOrder:
    assert order.spec is not None
    return replace(order, spec=replace(order.spec, instance=InstanceRequest(template=path)))


def step(place: LocalCompute, order: PoolOrder) -> PoolOrder:
    """Make the next step to its end; return the order with its operation."""
    operation = started(place.backend.create(order))
    place.finish(order.name)
    return replace(order, operation=operation)


def made(place: LocalCompute, order: PoolOrder) -> PoolOrder:
    """Make all steps until the group stands; return the order with the last operation."""
    while isinstance(place.backend.look(order), Absent | Begun):
        order = step(place, order)
    return order


def until(place: LocalCompute, order: PoolOrder, parts: int) -> PoolOrder:
    for _ in range(parts):
        order = step(place, order)
    return order


def unmade(place: LocalCompute, order: PoolOrder) -> list[Observation]:
    """Delete a pool as the flows do; return what is seen after each step."""
    seen = [place.backend.look(order)]
    while not isinstance(seen[-1], Absent):
        stood = seen[-1].message if isinstance(seen[-1], Begun) else "its instance group"
        begun = isinstance(seen[-1], Begun)
        started((place.backend.delete_remains if begun else place.backend.delete)(order))
        assert place.backend.look(order) == Deleting(stood)
        place.finish(*part_names(order))
        seen.append(place.backend.look(order))
    return seen

"""Groups on Compute Engine whose description somebody replaced: what is on record proves them ours, too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import NOW
from tests.contracts.compute_steps import MINUTE, an_order, made
from tests.contracts.local_compute import LocalCompute
from tests.contracts.test_backend import refused, started
from tpu_slices.domain.model.observations import (
    Begun,
    Deleting,
    FailureKind,
    Running,
    Started,
    Unowned,
)
from tpu_slices.ports.backend import PoolOrder
from tpu_slices_simulator.fakes.troubles import Trouble, Verb


@pytest.fixture
def place() -> LocalCompute:
    return LocalCompute()


def bare(place: LocalCompute) -> PoolOrder:
    """Return the order, as the record has it, of a group whose description was replaced."""
    order = replace(made(place, an_order(place)), ours_since=place.now())
    place.describe(order.name, "the best group")
    return order


def test_it_is_ours_by_its_record_and_gets_its_description_back(place: LocalCompute) -> None:
    order = bare(place)
    seen = place.backend.look(order)
    assert isinstance(seen, Running)
    assert seen.lacking == "its description is not a line of JSON with tpu-slice-provisioner."
    started(place.backend.relabel(order))
    place.finish(order.name)
    assert place.backend.look(replace(order, ours_since=None)) == Running(
        order.spec.fingerprint if order.spec else None
    )
    assert place.backend.relabel(order) == Started(None)


def test_nothing_else_of_the_group_is_changed(place: LocalCompute) -> None:
    order = made(place, an_order(place))
    place.wait(5 * MINUTE)
    before = place.group(order.name)
    place.describe(order.name, "the best group")
    started(place.backend.relabel(replace(order, ours_since=place.now())))
    place.finish(order.name)
    assert place.group(order.name) == before


def test_it_is_deleted_without_its_description(place: LocalCompute) -> None:
    order = bare(place)
    started(place.backend.delete(order))
    assert isinstance(place.backend.look(order), Deleting)
    place.finish(order.name)
    assert isinstance(place.backend.look(order), Begun)


def test_without_a_record_it_is_unowned_and_left_alone(place: LocalCompute) -> None:
    order = replace(bare(place), ours_since=None)
    assert isinstance(place.backend.look(order), Unowned)
    assert place.backend.relabel(order) == Started(None)
    assert place.backend.delete(order) == Started(None)


def test_a_group_that_is_younger_than_what_the_record_knows_is_somebody_elses(place: LocalCompute) -> None:
    order = replace(bare(place), ours_since=NOW - 60 * MINUTE)
    assert isinstance(place.backend.look(order), Unowned)
    assert place.backend.delete(order) == Started(None)


def test_the_inventory_has_it_by_its_name_alone(place: LocalCompute) -> None:
    order = bare(place)
    listed = {seen.job for seen in place.backend.inventory(place.cluster) if seen.name == order.name}
    assert listed <= {None, order.job}
    assert listed


def test_one_of_another_cluster_is_none_of_this_ones(place: LocalCompute) -> None:
    order = made(place, an_order(place))
    other = replace(place.cluster, cluster=type(place.cluster.cluster)("other"))
    assert order.name not in {seen.name for seen in place.backend.inventory(other)}


def test_one_that_may_not_be_changed_is_refused(place: LocalCompute) -> None:
    order = bare(place)
    place.trouble(Trouble.FORBIDDEN, Verb.RELABEL)
    assert refused(place.backend.relabel(order)) is FailureKind.CONFIGURATION

"""The adapter on a cluster in a zone: GKE's links have `zones/` there, where the calls say `locations/`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.contracts.local_gke import LocalGke, local_gke
from tests.contracts.stores import REAL
from tests.contracts.test_backend import an_order, name_of, started
from tpu_slices.domain.model.observations import (
    Absent,
    Busy,
    Cause,
    Creating,
    Deleting,
    OperationSeen,
    Running,
)

pytestmark = REAL


@pytest.fixture
def zonal() -> Iterator[LocalGke]:
    with local_gke(location="us-central2-b") as found:
        yield found


def test_a_pool_is_made_seen_and_deleted(zonal: LocalGke) -> None:
    order = an_order(zonal)
    assert zonal.backend.look(order) == Absent()
    begun = started(zonal.backend.create(order))
    assert zonal.backend.look(replace(order, operation=begun)) == Creating()
    zonal.finish(name_of(order))
    assert isinstance(zonal.backend.look(order), Running)
    started(zonal.backend.delete(order))
    assert zonal.backend.look(order) == Deleting()
    zonal.finish(name_of(order))
    assert zonal.backend.look(order) == Absent()


def test_operations_are_found_by_their_pools_without_a_record_of_them(zonal: LocalGke) -> None:
    order = an_order(zonal)
    started(zonal.backend.create(order))
    assert zonal.backend.look(order) == Creating()
    seen = OperationSeen(pool=name_of(order), creates=True, ended=False)
    assert zonal.backend.pool_operations(zonal.cluster) == {seen}


def test_what_gke_does_to_a_pool_is_told_by_its_operation(zonal: LocalGke) -> None:
    order = an_order(zonal)
    started(zonal.backend.create(order))
    zonal.finish(name_of(order))
    zonal.repair(name_of(order))
    found = zonal.backend.look(replace(order, asks_work=True))
    assert isinstance(found, Busy)
    assert found.work is Cause.REPAIR

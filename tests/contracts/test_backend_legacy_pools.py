"""How every `Backend` treats the pools that TPU Provisioner made."""

from __future__ import annotations

import pytest

from tests.builders import a_job
from tests.contracts.backends import Place
from tests.contracts.test_backend import an_order, made, name_of, started
from tpu_slices.domain.model.observations import Deleting, LegacyPool, Running, Started, Unowned
from tpu_slices.ports.errors import Temporary

LEGACY = LegacyPool(name="llama-4f2a1", namespace="research", jobset="llama", job="llama-slice-0")


def test_a_legacy_pool_is_listed_as_such_and_in_no_inventory(place: Place) -> None:
    made(place, an_order(place))
    place.hold_legacy_pool(LEGACY)
    assert place.backend.legacy_pools(place.cluster) == (LEGACY,)
    assert [pool.name for pool in place.backend.inventory(place.cluster)] == [name_of(an_order(place))]


def test_a_legacy_pool_is_observed_and_deleted_by_its_own_name(place: Place) -> None:
    place.hold_legacy_pool(LEGACY)
    order = an_order(place, attempt=0, legacy_pool=LEGACY.name)
    assert place.backend.look(order) == Running()
    started(place.backend.delete(order))
    assert place.backend.look(order) == Deleting()


def test_a_legacy_pool_of_another_job_is_unowned_and_never_deleted(place: Place) -> None:
    place.hold_legacy_pool(LEGACY)
    order = an_order(place, attempt=0, legacy_pool=LEGACY.name, job=a_job(job_index=1))
    assert isinstance(place.backend.look(order), Unowned)
    assert place.backend.delete(order) == Started(None)
    assert place.backend.look(an_order(place, attempt=0, legacy_pool=LEGACY.name)) == Running()


def test_legacy_pools_that_cannot_be_listed_are_a_temporary_error(place: Place) -> None:
    place.break_down()
    with pytest.raises(Temporary):
        place.backend.legacy_pools(place.cluster)

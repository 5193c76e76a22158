"""What every `Backend` does when a creation is to be cancelled, where GKE takes that and where it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.contracts.backends import Place
from tests.contracts.test_backend import an_order, made, name_of, refused, started
from tpu_slices.domain.model.observations import Absent, Broken, Creating, FailureKind, OperationSeen, Running, Started
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.ports.errors import Temporary


def creating(place: Place, order: PoolOrder) -> PoolOrder:
    """Begin to create an order's pool; return the order with its operation."""
    return replace(order, operation=started(place.backend.create(order)))


@pytest.mark.parametrize("noted", [True, False], ids=["noted", "not-noted"])
def test_gke_cancels_no_creation_and_it_goes_on(place: Place, noted: bool) -> None:
    order = an_order(place)
    after = creating(place, order)
    assert refused(place.backend.cancel(after if noted else order)) is FailureKind.BUSY
    assert place.backend.look(after) == Creating()
    place.finish(name_of(order))
    assert place.backend.look(after) == Running(order.spec.fingerprint if order.spec else None)


@pytest.mark.parametrize("noted", [True, False], ids=["noted", "not-noted"])
def test_a_cancelled_creation_goes_on_until_its_operation_ends_and_leaves_a_broken_pool(
    place: Place, noted: bool
) -> None:
    place.take_cancellations()
    after = creating(place, an_order(place))
    order = after if noted else replace(after, operation=None)
    assert place.backend.cancel(order) == Started(after.operation)
    assert place.backend.look(order) == Creating()
    assert refused(place.backend.delete(order)) is FailureKind.BUSY
    place.finish(name_of(order))
    seen = place.backend.look(order)
    assert isinstance(seen, Broken)
    assert seen.failure.kind is FailureKind.UNKNOWN
    assert "cancelled" in seen.failure.message
    started(place.backend.delete(order))
    place.finish(name_of(order))
    assert place.backend.look(replace(order, operation=None)) == Absent()


def test_a_cancellation_is_repeated_without_effect(place: Place) -> None:
    place.take_cancellations()
    order = creating(place, an_order(place))
    started(place.backend.cancel(order))
    assert place.backend.cancel(order) == Started(None)
    place.finish(name_of(order))
    assert place.backend.cancel(order) == Started(None)


def test_a_creation_that_was_cancelled_in_a_stockout_counts_as_no_stockout(place: Place) -> None:
    place.take_cancellations()
    place.run_out(name_of(an_order(place)))
    order = creating(place, an_order(place))
    started(place.backend.cancel(order))
    place.finish(name_of(order))
    seen = place.backend.look(order)
    assert isinstance(seen, Broken)
    assert seen.failure.kind is FailureKind.UNKNOWN


def test_a_cancelled_creation_is_an_ended_operation(place: Place) -> None:
    place.take_cancellations()
    order = creating(place, an_order(place))
    place.backend.cancel(order)
    creation = OperationSeen(pool=name_of(order), creates=True, ended=False)
    assert place.backend.pool_operations(place.cluster) == {creation}
    place.finish(name_of(order))
    assert place.backend.pool_operations(place.cluster) == {replace(creation, ended=True)}


def test_where_no_creation_runs_there_is_nothing_to_cancel(place: Place) -> None:
    place.take_cancellations()
    order = an_order(place)
    assert place.backend.cancel(order) == Started(None)
    assert place.backend.cancel(replace(order, operation="operation-forgotten")) == Started(None)
    running = made(place, order)
    assert place.backend.cancel(running) == Started(None)
    assert place.backend.cancel(order) == Started(None)
    deletion = started(place.backend.delete(running))
    assert place.backend.cancel(running) == Started(None)
    assert place.backend.cancel(replace(running, operation=deletion)) == Started(None)
    place.finish(name_of(order))
    assert place.backend.look(order) == Absent()


def test_a_repair_is_not_cancelled(place: Place) -> None:
    place.take_cancellations()
    order = made(place, an_order(place))
    place.repair(name_of(order))
    assert place.backend.cancel(order) == Started(None)
    place.finish(name_of(order))
    assert place.backend.look(order) == Running(order.spec.fingerprint if order.spec else None)


@pytest.mark.parametrize("noted", [True, False], ids=["noted", "not-noted"])
def test_the_creation_of_another_jobsets_pool_is_not_cancelled(place: Place, noted: bool) -> None:
    place.take_cancellations()
    order = creating(place, an_order(place))
    stranger = replace(order.job.owner, uid=WorkloadUid("uid-of-its-successor"))
    other = replace(order, job=replace(order.job, owner=stranger), operation=order.operation if noted else None)
    assert place.backend.cancel(other) == Started(None)
    place.finish(name_of(order))
    assert isinstance(place.backend.look(order), Running)


def test_a_cancellation_is_a_temporary_error_while_gke_does_not_answer(place: Place) -> None:
    order = creating(place, an_order(place))
    place.break_down()
    with pytest.raises(Temporary):
        place.backend.cancel(order)


def test_a_cancellation_whose_answer_is_lost_is_a_temporary_error_and_takes_effect(place: Place) -> None:
    place.take_cancellations()
    order = creating(place, an_order(place))
    place.lose_next_answer()
    with pytest.raises(Temporary):
        place.backend.cancel(order)
    assert place.backend.cancel(order) == Started(None)
    place.finish(name_of(order))
    assert isinstance(place.backend.look(order), Broken)

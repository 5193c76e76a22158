"""What every `Backend` makes of calls that fail for a while, and of what GKE does by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import MINUTE, a_job, a_spec
from tests.contracts.backends import Place
from tests.contracts.test_backend import an_order, made, name_of, refused, started
from tpu_slices.domain.model.observations import (
    Absent,
    Broken,
    Busy,
    Creating,
    Deleting,
    FailureKind,
    OperationSeen,
    Running,
    Started,
    Unreadable,
)
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.ports.errors import Temporary
from tpu_slices_simulator.fakes.troubles import Trouble, Verb

RUNNING = Running(a_spec().fingerprint)


def creating(place: Place, order: PoolOrder) -> PoolOrder:
    return replace(order, operation=started(place.backend.create(order)))


# calls


def test_while_a_permission_is_missing_nothing_is_known_and_every_order_is_refused_for_an_operator(
    place: Place,
) -> None:
    order = creating(place, an_order(place))
    place.trouble(Trouble.FORBIDDEN)
    seen = place.backend.look(order)
    assert isinstance(seen, Unreadable)
    assert "container.clusters.get" in seen.message
    other = an_order(place, job=a_job(job_index=1))
    assert refused(place.backend.create(other)) is FailureKind.CONFIGURATION
    assert refused(place.backend.delete(order)) is FailureKind.CONFIGURATION
    assert refused(place.backend.cancel(order)) is FailureKind.CONFIGURATION
    place.calm_down()
    assert place.backend.look(order) == Creating()
    assert place.backend.look(other) == Absent()


def test_while_a_permission_is_missing_no_list_is_taken_for_an_empty_one(place: Place) -> None:
    made(place, an_order(place))
    place.trouble(Trouble.FORBIDDEN)
    for read in (place.backend.inventory, place.backend.legacy_pools, place.backend.pool_operations):
        with pytest.raises(Temporary):
            read(place.cluster)
    place.calm_down()
    assert len(place.backend.inventory(place.cluster)) == 1


def test_a_creation_that_never_arrived_can_be_ordered_again(place: Place) -> None:
    order = an_order(place)
    place.trouble(Trouble.UNAVAILABLE, Verb.CREATE, calls=1)
    with pytest.raises(Temporary):
        place.backend.create(order)
    assert place.backend.look(order) == Absent()
    started(place.backend.create(order))


def test_a_deletion_that_never_arrived_can_be_ordered_again(place: Place) -> None:
    order = made(place, an_order(place))
    place.trouble(Trouble.UNAVAILABLE, Verb.DELETE, calls=2)
    for _ in range(2):
        with pytest.raises(Temporary):
            place.backend.delete(order)
        assert place.backend.look(order) == RUNNING
    started(place.backend.delete(order))


def test_a_deletion_whose_answer_is_lost_is_a_temporary_error_and_is_found_by_look(place: Place) -> None:
    order = made(place, an_order(place))
    place.trouble(Trouble.ANSWER_LOST, Verb.DELETE, calls=1)
    with pytest.raises(Temporary):
        place.backend.delete(order)
    assert isinstance(place.backend.look(order), Deleting)
    assert place.backend.delete(order) == Started(None)
    place.finish(name_of(order))
    assert place.backend.look(order) == Absent()


def test_a_cancellation_that_never_arrived_changes_nothing(place: Place) -> None:
    place.take_cancellations()
    order = creating(place, an_order(place))
    place.trouble(Trouble.UNAVAILABLE, Verb.CANCEL, calls=1)
    with pytest.raises(Temporary):
        place.backend.cancel(order)
    started(place.backend.cancel(order))


@pytest.mark.parametrize("trouble", [Trouble.FORBIDDEN, Trouble.UNAVAILABLE], ids=lambda trouble: trouble.name)
def test_a_window_of_failing_calls_ends_with_its_time(place: Place, trouble: Trouble) -> None:
    order = an_order(place)
    place.trouble(trouble, Verb.CREATE, lasts=10 * MINUTE)
    place.wait(9 * MINUTE)
    if trouble is Trouble.FORBIDDEN:
        assert refused(place.backend.create(order)) is FailureKind.CONFIGURATION
    else:
        with pytest.raises(Temporary):
            place.backend.create(order)
    place.wait(MINUTE)
    started(place.backend.create(order))


def test_calls_that_are_not_meant_go_through(place: Place) -> None:
    order = made(place, an_order(place))
    place.trouble(Trouble.FORBIDDEN, Verb.CREATE)
    assert place.backend.look(order) == RUNNING
    started(place.backend.delete(order))


# what GKE does by itself


def test_a_deletion_that_fails_may_leave_a_pool_that_runs(place: Place) -> None:
    order = made(place, an_order(place))
    place.let_deletion_fail(name_of(order), usable=True)
    started(place.backend.delete(order))
    assert isinstance(place.backend.look(order), Deleting)
    place.finish(name_of(order))
    assert place.backend.look(order) == RUNNING
    ended = OperationSeen(pool=name_of(order), creates=False, ended=True)
    assert ended in place.backend.pool_operations(place.cluster)
    started(place.backend.delete(order))
    place.finish(name_of(order))
    assert place.backend.look(order) == Absent()


@pytest.mark.parametrize("noted", [True, False], ids=["noted", "not-noted"])
def test_a_deletion_that_fails_may_leave_a_broken_pool_that_can_be_deleted_again(place: Place, noted: bool) -> None:
    after = made(place, an_order(place))
    order = after if noted else replace(after, operation=None)
    place.let_deletion_fail(name_of(order), usable=False)
    started(place.backend.delete(order))
    place.finish(name_of(order))
    seen = place.backend.look(order)
    assert isinstance(seen, Broken)
    assert seen.failure.kind is FailureKind.UNKNOWN
    started(place.backend.delete(order))
    place.finish(name_of(order))
    assert place.backend.look(order) == Absent()


def test_a_pool_that_breaks_while_it_runs_is_broken_and_a_repair_mends_it(place: Place) -> None:
    order = made(place, an_order(place))
    place.wreck(name_of(order))
    seen = place.backend.look(order)
    assert isinstance(seen, Broken)
    assert seen.failure.kind is FailureKind.UNKNOWN
    assert [pool.name for pool in place.backend.inventory(place.cluster)] == [name_of(order)]
    place.repair(name_of(order))
    assert isinstance(place.backend.look(order), Busy)
    place.finish(name_of(order))
    assert place.backend.look(order) == RUNNING


def test_a_pool_that_breaks_while_it_runs_is_deleted(place: Place) -> None:
    order = made(place, an_order(place))
    place.wreck(name_of(order))
    started(place.backend.delete(order))
    place.finish(name_of(order))
    assert place.backend.look(order) == Absent()


def test_hosts_that_join_before_the_creation_ends_change_no_observation(place: Place) -> None:
    place.let_creation_end_late(name_of(an_order(place)))
    order = creating(place, an_order(place))
    place.join_hosts(name_of(order))
    assert place.backend.look(order) == Creating()
    assert refused(place.backend.delete(order)) is FailureKind.BUSY
    place.finish(name_of(order))
    assert place.backend.look(order) == RUNNING


@pytest.mark.parametrize("noted", [True, False], ids=["noted", "not-noted"])
def test_a_creation_whose_operation_ends_without_effect_runs_no_more_and_can_be_deleted(
    place: Place, noted: bool
) -> None:
    after = creating(place, an_order(place))
    order = after if noted else replace(after, operation=None)
    place.forget_operation(name_of(order))
    assert place.backend.look(order) == Creating(operation_runs=False)
    assert place.backend.cancel(order) == Started(None)
    started(place.backend.delete(order))


@pytest.mark.parametrize("noted", [True, False], ids=["noted", "not-noted"])
def test_what_gke_forgets_of_its_operations_changes_nothing_about_pools(place: Place, noted: bool) -> None:
    running = made(place, an_order(place, job=a_job(job_index=0)))
    broken = an_order(place, job=a_job(job_index=1))
    place.run_out(name_of(broken))
    broken = made(place, broken)
    place.forget_ended_operations()
    assert place.backend.pool_operations(place.cluster) == frozenset()
    assert place.backend.look(running if noted else replace(running, operation=None)) == RUNNING
    seen = place.backend.look(broken if noted else replace(broken, operation=None))
    assert isinstance(seen, Broken)
    assert seen.failure.kind is FailureKind.STOCKOUT


def test_a_failed_creation_is_forgotten_with_its_operation_once_its_pool_is_gone(place: Place) -> None:
    order = an_order(place)
    place.run_out(name_of(order))
    order = made(place, order)
    place.vanish(name_of(order))
    place.forget_ended_operations()
    assert place.backend.look(order) == Absent()

"""What every `Backend` guarantees: the fake, and the adapter on the local GKE."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import a_job, a_spec, a_token
from tests.contracts.backends import LIMIT, Place
from tpu_slices.domain.model.clusters import PoolSettings
from tpu_slices.domain.model.joining import JoinToken
from tpu_slices.domain.model.observations import (
    Absent,
    Broken,
    Busy,
    Cause,
    Creating,
    Deleting,
    FailureKind,
    OperationSeen,
    Outcome,
    PoolSeen,
    Refused,
    Running,
    Started,
    Unowned,
    Unreadable,
)
from tpu_slices.domain.model.slices import Capacity, CapacityKind, PoolName, WorkloadUid, claim_id, pool_name
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.ports.errors import Temporary


def an_order(place: Place, **changes: Any) -> PoolOrder:
    job = changes.pop("job", a_job())
    fields: dict[str, Any] = {
        "cluster_path": place.cluster.path,
        "cluster_gke_id": place.gke_id,
        "slice_id": claim_id(job),
        "attempt": 1,
        "job": job,
        "spec": a_spec(),
        "settings": place.cluster.pools,
    }
    return PoolOrder(**{**fields, **changes})


def name_of(order: PoolOrder) -> PoolName:
    return pool_name(order.slice_id, order.attempt)


def started(outcome: Outcome) -> str:
    """Return the operation of an order that was accepted."""
    assert isinstance(outcome, Started), outcome
    assert outcome.operation is not None
    return outcome.operation


def refused(outcome: Outcome) -> FailureKind:
    assert isinstance(outcome, Refused), outcome
    return outcome.failure.kind


def made(place: Place, order: PoolOrder) -> PoolOrder:
    """Create an order's pool to the end; return the order with its operation."""
    operation = started(place.backend.create(order))
    place.finish(name_of(order))
    return replace(order, operation=operation)


def test_a_pool_that_was_never_created_is_absent(place: Place) -> None:
    assert place.backend.look(an_order(place)) == Absent()


@pytest.mark.parametrize("token", [None, a_token()])
def test_hosts_that_need_no_token_are_given_none(token: JoinToken | None, place: Place) -> None:
    assert place.backend.join(an_order(place), token) == Started(None)


def test_a_pool_is_being_created_and_then_runs_with_its_fingerprint(place: Place) -> None:
    order = an_order(place)
    noted = replace(order, operation=started(place.backend.create(order)))
    assert place.backend.look(noted) == Creating()
    place.finish(name_of(order))
    assert place.backend.look(noted) == Running(a_spec().fingerprint)


def test_a_pool_of_flex_start_runs_whether_it_has_hosts_or_not(place: Place) -> None:
    capacity = Capacity(CapacityKind.FLEX_START, max_run_duration=timedelta(hours=2))
    order = made(place, an_order(place, spec=a_spec(capacity=capacity)))
    for _ in range(3):
        assert place.backend.look(order) == Running(a_spec().fingerprint)
        place.wait(timedelta(hours=1))
    started(place.backend.delete(order))


def test_a_pool_whose_hosts_are_maintained_at_an_interval_is_created_like_any_other(place: Place) -> None:
    order = replace(an_order(place), settings=PoolSettings(host_maintenance_interval="PERIODIC"))
    assert place.backend.look(made(place, order)) == Running(a_spec().fingerprint)
    assert refused(place.backend.create(order)) is FailureKind.NAME_TAKEN


def test_a_running_creation_is_found_although_its_operation_is_not_on_record(place: Place) -> None:
    order = an_order(place)
    place.backend.create(order)
    assert place.backend.look(order) == Creating(operation_runs=True)


def test_a_name_that_is_taken_is_refused_during_the_creation_and_after_it(place: Place) -> None:
    order = an_order(place)
    place.backend.create(order)
    assert refused(place.backend.create(order)) is FailureKind.NAME_TAKEN
    place.finish(name_of(order))
    assert refused(place.backend.create(order)) is FailureKind.NAME_TAKEN


@pytest.mark.parametrize("noted", [True, False], ids=["noted", "not-noted"])
def test_a_stockout_leaves_a_broken_pool_behind(place: Place, noted: bool) -> None:
    order = an_order(place)
    place.run_out(name_of(order))
    after = made(place, order)
    seen = place.backend.look(after if noted else order)
    assert isinstance(seen, Broken)
    assert seen.failure.kind is FailureKind.STOCKOUT
    assert "GCE_STOCKOUT" in seen.failure.message


@pytest.mark.parametrize("conditions_only", [False, True], ids=["error", "conditions-only"])
def test_a_failed_creation_is_known_from_its_operation_after_its_pool_is_gone(
    place: Place, conditions_only: bool
) -> None:
    order = an_order(place)
    place.run_out(name_of(order), conditions_only=conditions_only)
    after = made(place, order)
    place.vanish(name_of(order))
    seen = place.backend.look(after)
    assert isinstance(seen, Broken)
    assert seen.failure.kind is FailureKind.STOCKOUT
    assert place.backend.look(order) == Absent()


def test_a_missing_pool_counts_as_creating_while_its_operation_runs(place: Place) -> None:
    order = an_order(place)
    noted = replace(order, operation=started(place.backend.create(order)))
    place.vanish(name_of(order))
    assert place.backend.look(noted) == Creating()


def test_a_pool_that_was_created_and_removed_is_absent(place: Place) -> None:
    order = made(place, an_order(place))
    place.vanish(name_of(order))
    assert place.backend.look(order) == Absent()


def test_a_forgotten_operation_changes_no_observation(place: Place) -> None:
    order = an_order(place, operation="operation-forgotten")
    assert place.backend.look(order) == Absent()
    place.backend.create(order)
    place.finish(name_of(order))
    assert place.backend.look(order) == Running(a_spec().fingerprint)


def test_a_pool_is_not_deleted_while_it_is_created(place: Place) -> None:
    order = an_order(place)
    place.backend.create(order)
    assert refused(place.backend.delete(order)) is FailureKind.BUSY
    assert place.backend.look(order) == Creating()


def test_a_deletion_can_be_repeated_until_the_pool_is_absent(place: Place) -> None:
    order = made(place, an_order(place))
    started(place.backend.delete(order))
    assert isinstance(place.backend.look(order), Deleting)
    assert place.backend.delete(order) == Started(None)
    place.finish(name_of(order))
    assert place.backend.look(order) == Absent()
    assert place.backend.delete(order) == Started(None)


def test_a_broken_pool_is_deleted(place: Place) -> None:
    order = an_order(place)
    place.run_out(name_of(order))
    made(place, order)
    started(place.backend.delete(order))
    place.finish(name_of(order))
    assert place.backend.look(order) == Absent()


def test_somebody_elses_pool_is_unowned_and_left_alone(place: Place) -> None:
    order = an_order(place)
    place.squat(name_of(order))
    assert isinstance(place.backend.look(order), Unowned)
    assert place.backend.delete(order) == Started(None)
    assert isinstance(place.backend.look(order), Unowned)
    assert refused(place.backend.create(order)) is FailureKind.NAME_TAKEN
    (listed,) = place.backend.inventory(place.cluster)
    assert (listed.name, listed.job) == (name_of(order), None)


def test_a_pool_of_another_jobset_is_unowned_even_under_the_same_slice_id(place: Place) -> None:
    order = made(place, an_order(place))
    other = replace(
        order, job=replace(order.job, owner=replace(order.job.owner, uid=WorkloadUid("uid-of-its-successor")))
    )
    assert isinstance(place.backend.look(other), Unowned)
    assert place.backend.delete(other) == Started(None)
    assert place.backend.look(order) == Running(a_spec().fingerprint)


def test_a_pool_is_recognized_although_its_names_are_too_long_for_labels(place: Place) -> None:
    job = a_job(name=f"{'very-long' * 8}.name", namespace="n" * 63, uid=WorkloadUid("u" * 80))
    order = made(place, an_order(place, job=job))
    assert place.backend.look(order) == Running(a_spec().fingerprint)
    started(place.backend.delete(order))


def test_a_pool_of_another_cluster_under_the_same_name_is_unreadable(place: Place) -> None:
    order = an_order(place, cluster_gke_id="the-cluster-that-was-here-before")
    assert isinstance(place.backend.look(order), Unreadable)


def test_a_cluster_whose_id_is_not_on_record_is_not_checked(place: Place) -> None:
    assert place.backend.look(an_order(place, cluster_gke_id=None)) == Absent()


def test_a_pool_is_unreadable_while_gke_does_not_answer(place: Place) -> None:
    place.break_down()
    assert isinstance(place.backend.look(an_order(place)), Unreadable)


def test_orders_and_lists_are_temporary_errors_while_gke_does_not_answer(place: Place) -> None:
    order = an_order(place)
    place.break_down()
    with pytest.raises(Temporary):
        place.backend.create(order)
    with pytest.raises(Temporary):
        place.backend.delete(order)
    with pytest.raises(Temporary):
        place.backend.inventory(place.cluster)
    with pytest.raises(Temporary):
        place.backend.pool_operations(place.cluster)


def test_a_creation_whose_answer_is_lost_is_a_temporary_error_and_is_found_by_look(place: Place) -> None:
    order = an_order(place)
    place.lose_next_answer()
    with pytest.raises(Temporary):
        place.backend.create(order)
    assert place.backend.look(order) == Creating()


def test_a_cluster_limits_its_concurrent_operations(place: Place) -> None:
    orders = [an_order(place, job=a_job(job_index=index)) for index in range(LIMIT + 1)]
    for order in orders[:-1]:
        started(place.backend.create(order))
    assert refused(place.backend.create(orders[-1])) is FailureKind.RATE
    assert place.backend.look(orders[-1]) == Absent()
    place.finish(name_of(orders[0]))
    started(place.backend.create(orders[-1]))


def test_a_pool_without_a_spec_is_observed_and_deleted_but_not_created(place: Place) -> None:
    order = an_order(place)
    found = replace(order, spec=None)
    assert refused(place.backend.create(found)) is FailureKind.CONFIGURATION
    made(place, order)
    assert place.backend.look(found) == Running(a_spec().fingerprint)
    started(place.backend.delete(found))


def test_a_pool_under_repair_is_busy_until_the_repair_ends(place: Place) -> None:
    order = made(place, an_order(place))
    place.repair(name_of(order))
    assert isinstance(place.backend.look(order), Busy)
    assert refused(place.backend.delete(order)) is FailureKind.BUSY
    place.finish(name_of(order))
    assert place.backend.look(order) == Running(a_spec().fingerprint)


@pytest.mark.parametrize("work", [Cause.REPAIR, Cause.UPGRADE])
def test_what_gke_does_to_a_pool_is_said_to_whom_it_is_not_on_record(place: Place, work: Cause) -> None:
    order = made(place, an_order(place))
    (place.repair if work is Cause.REPAIR else place.upgrade)(name_of(order))
    asked, unasked = place.backend.look(replace(order, asks_work=True)), place.backend.look(order)
    assert isinstance(asked, Busy)
    assert asked.work is work
    assert isinstance(unasked, Busy)
    assert (unasked.work, unasked.message) == (None, asked.message)


def test_only_a_spot_pool_that_runs_is_said_to_ask_for_hosts_that_were_taken(place: Place) -> None:
    spot = made(place, an_order(place, spec=a_spec(capacity=Capacity(CapacityKind.SPOT))))
    other = made(place, an_order(place, job=a_job(job_index=1)))
    seen = [place.backend.look(order) for order in (spot, other)]
    assert [isinstance(each, Running) and each.refills for each in seen] == [True, False]


def test_the_inventory_names_pools_in_every_state_with_attempt_and_job(place: Place) -> None:
    running = made(place, an_order(place, job=a_job(job_index=0)))
    broken = an_order(place, job=a_job(job_index=1), attempt=7)
    place.run_out(name_of(broken))
    made(place, broken)
    terminating = made(place, an_order(place, job=a_job(job_index=2, name="gemma")))
    place.backend.delete(terminating)
    creating = an_order(place, job=a_job(job_index=3))
    place.backend.create(creating)
    orders = (running, broken, terminating, creating)
    assert set(place.backend.inventory(place.cluster)) == {
        PoolSeen(name=name_of(order), slice_id=order.slice_id, attempt=order.attempt, job=order.job) for order in orders
    }


def test_creations_and_deletions_are_listed_by_their_pools_and_failed_ones_have_ended(place: Place) -> None:
    good, bad, running, departing = (an_order(place, job=a_job(job_index=index)) for index in range(4))
    place.run_out(name_of(bad))
    for order in (good, bad, departing):
        made(place, order)
    started(place.backend.create(running))
    started(place.backend.delete(departing))
    creations = {name_of(order): order is not running for order in (good, bad, running, departing)}
    assert place.backend.pool_operations(place.cluster) == {
        *(OperationSeen(pool=pool, creates=True, ended=ended) for pool, ended in creations.items()),
        OperationSeen(pool=name_of(departing), creates=False, ended=False),
    }

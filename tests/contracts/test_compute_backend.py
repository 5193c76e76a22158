"""How the adapter for Compute Engine makes and deletes a pool step by step, on the local one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.adapters.compute_stories import ORDERS, story
from tests.adapters.stories import asking
from tests.contracts.compute_steps import (
    GROUPS,
    MINUTE,
    PARTS,
    POLICIES,
    TEMPLATES,
    an_order,
    made,
    step,
    unmade,
    until,
)
from tests.contracts.local_compute import LocalCompute
from tests.contracts.test_backend import refused, started
from tpu_slices.domain.model.observations import (
    Absent,
    Begun,
    Broken,
    Creating,
    Deleting,
    FailureKind,
    Refused,
    Running,
    Started,
)
from tpu_slices.ports.errors import Temporary
from tpu_standins.compute.state import Kind

BEYOND = {"every-setting", "a-template-that-is-brought"}
"""Recorded requests with an encryption key, which the local Compute Engine does not know, and a template it has not."""


@pytest.fixture
def place() -> LocalCompute:
    return LocalCompute()


# Creation


def test_a_pool_that_was_never_created_is_absent(place: LocalCompute) -> None:
    assert place.backend.look(an_order(place)) == Absent()


@pytest.mark.parametrize("noted", [True, False], ids=["noted", "not-noted"])
def test_a_slice_is_made_step_by_step(place: LocalCompute, noted: bool) -> None:
    order, seen = an_order(place), []
    for _ in PARTS:
        operation = started(place.backend.create(order))
        order = replace(order, operation=operation if noted else None)
        seen.append(place.backend.look(order))
        place.finish(order.name)
        seen.append(place.backend.look(order))
    fingerprint = order.spec.fingerprint if order.spec else None
    begun = [Begun("its workload policy"), Begun("its instance template")]
    assert seen == [Creating(), begun[0], Creating(), begun[1], Creating(), Running(fingerprint)]
    assert place.stands(order.name) == set(PARTS)


@pytest.mark.parametrize("name", sorted(ORDERS.keys() - BEYOND))
def test_compute_engine_accepts_what_is_recorded(place: LocalCompute, name: str) -> None:
    order = made(place, ORDERS[name])
    assert GROUPS in place.stands(order.name)


def test_the_operation_of_each_step_is_named_with_its_place(place: LocalCompute) -> None:
    order, names = an_order(place), []
    for _ in PARTS:
        order = step(place, order)
        names.append(str(order.operation).rpartition("/")[0])
    assert names == ["regions/us-central1/operations", "global/operations", "zones/us-central1-c/operations"]


def test_a_single_host_needs_no_policy(place: LocalCompute) -> None:
    order = story(asking("tpu7x", "2x2x1", 4), place.cluster.pools).order
    made(place, order)
    assert place.requests() == [f"{TEMPLATES}.insert", f"{GROUPS}.insert"]


def test_the_hosts_of_a_slice_exist_after_a_while(place: LocalCompute) -> None:
    order = made(place, an_order(place))
    place.wait(10 * MINUTE)
    assert place.backend.look(order) == Running(order.spec.fingerprint if order.spec else None)


@pytest.mark.parametrize("before", range(3))
def test_a_step_that_is_requested_twice_is_made_once(place: LocalCompute, before: int) -> None:
    order = until(place, an_order(place), before)
    first, second = place.backend.create(order), place.backend.create(order)
    assert started(first) == started(second)
    place.finish(order.name)
    assert isinstance(place.backend.look(order), Begun | Running)


@pytest.mark.parametrize("before", range(3))
def test_a_step_whose_answer_is_lost_is_found_again(place: LocalCompute, before: int) -> None:
    order = until(place, an_order(place), before)
    place.lose_next_answer()
    with pytest.raises(Temporary):
        place.backend.create(order)
    place.calm_down()
    assert place.backend.look(order) == Creating()
    place.finish(order.name)
    made(place, order)
    assert place.stands(order.name) == set(PARTS)


@pytest.mark.parametrize("before", range(3))
@pytest.mark.parametrize(
    ("fault", "kind"), [(Kind.PERMISSION, FailureKind.CONFIGURATION), (Kind.RATE, FailureKind.RATE)]
)
def test_a_step_that_is_refused_says_whether_earlier_ones_stand(
    place: LocalCompute, before: int, fault: Kind, kind: FailureKind
) -> None:
    order = until(place, an_order(place), before)
    place.refuse(fault, PARTS[before])
    outcome = place.backend.create(order)
    assert refused(outcome) is kind
    assert isinstance(outcome, Refused)
    assert outcome.begun is (before > 0)
    made(place, order)


@pytest.mark.parametrize("before", range(3))
def test_a_step_that_fails_breaks_the_attempt_and_leaves_nothing_behind(place: LocalCompute, before: int) -> None:
    order = until(place, an_order(place), before)
    place.let_creation_fail(order.name, PARTS[before])
    order = step(place, order)
    seen = place.backend.look(order)
    assert isinstance(seen, Broken)
    assert (seen.failure.kind, seen.failure.message) == (FailureKind.QUOTA, "QUOTA_EXCEEDED: None.")
    unmade(place, replace(order, operation=None))
    assert place.stands(order.name) == set()


@pytest.mark.parametrize("before", range(3))
def test_a_step_that_failed_unseen_is_found_when_it_is_requested_again(place: LocalCompute, before: int) -> None:
    order = until(place, an_order(place), before)
    place.let_creation_fail(order.name, PARTS[before])
    step(place, order)
    assert isinstance(place.backend.look(replace(order, operation=None)), Absent | Begun)
    again = replace(order, operation=started(place.backend.create(order)))
    assert isinstance(place.backend.look(again), Broken)


@pytest.mark.parametrize("before", range(4))
def test_a_pool_that_is_known_by_its_name_alone_is_seen_and_deleted(place: LocalCompute, before: int) -> None:
    order = until(place, an_order(place), before)
    unknown = replace(order, spec=None, operation=None)
    assert type(place.backend.look(unknown)) is (Absent, Begun, Begun, Running)[before]
    unmade(place, unknown)
    assert place.stands(order.name) == set()
    assert refused(place.backend.create(unknown)) is FailureKind.CONFIGURATION


def test_a_pool_is_found_where_it_was_made_although_its_slice_is_now_wanted_elsewhere(place: LocalCompute) -> None:
    order = made(place, an_order(place))
    assert order.spec is not None
    moved = replace(order, spec=replace(order.spec, zone="us-central1-a"))
    assert isinstance(place.backend.look(moved), Running)
    unmade(place, moved)
    assert place.stands(order.name) == set()


def test_a_zone_that_does_not_exist_is_told_and_what_was_made_for_it_is_deleted(place: LocalCompute) -> None:
    order = an_order(place)
    assert order.spec is not None
    order = until(place, replace(order, spec=replace(order.spec, zone="us-central1-x")), 2)
    outcome = place.backend.create(order)
    assert isinstance(outcome, Refused)
    assert (outcome.failure.kind, outcome.begun) == (FailureKind.CONFIGURATION, True)
    assert "'us-central1-x'" in outcome.failure.message
    unmade(place, order)
    assert place.stands(order.name) == set()


# Hosts


def test_hosts_that_are_out_of_stock_are_awaited_and_come(place: LocalCompute) -> None:
    order = an_order(place)
    place.run_out(order.name)
    order = made(place, order)
    place.wait(MINUTE)
    seen = place.backend.look(order)
    assert isinstance(seen, Running)
    assert seen.awaiting.startswith("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS: The zone")
    place.calm_down()
    place.wait(10 * MINUTE)
    assert place.backend.look(order) == replace(seen, awaiting="")


def test_a_single_host_that_is_out_of_stock_is_awaited_too(place: LocalCompute) -> None:
    order = story(asking("tpu7x", "2x2x1", 4), place.cluster.pools).order
    place.run_out(order.name)
    order = made(place, order)
    place.wait(MINUTE)
    seen = place.backend.look(order)
    assert isinstance(seen, Running)
    assert "EXHAUSTED" in seen.awaiting


def test_hosts_that_a_quota_prevents_break_the_attempt(place: LocalCompute) -> None:
    order = an_order(place)
    place.exhaust_quota(order.name)
    order = made(place, order)
    place.wait(MINUTE)
    seen = place.backend.look(order)
    assert isinstance(seen, Broken)
    assert seen.failure.kind is FailureKind.QUOTA


def test_hosts_of_a_reservation_that_does_not_exist_break_the_attempt(place: LocalCompute) -> None:
    order = made(place, ORDERS["v5p-reserved-by-another-project"])
    seen = place.backend.look(order)
    assert isinstance(seen, Broken)
    assert seen.failure.kind is FailureKind.RESERVATION_AWAITED


# Deletion


def test_a_slice_is_deleted_backwards(place: LocalCompute) -> None:
    order = made(place, an_order(place))
    place.wait(10 * MINUTE)
    seen = unmade(place, order)
    assert seen[1:] == [Begun("its instance template"), Begun("its workload policy"), Absent()]
    assert place.requests()[3:] == [f"{GROUPS}.delete", f"{TEMPLATES}.delete", f"{POLICIES}.delete"]


def test_hosts_go_only_by_delete_and_the_rest_only_by_delete_remains(place: LocalCompute) -> None:
    order = made(place, an_order(place))
    assert place.backend.delete_remains(order) == Started(None)
    assert isinstance(place.backend.look(order), Running)
    started(place.backend.delete(order))
    place.finish(order.name)
    assert place.backend.delete(order) == Started(None)
    assert place.backend.look(order) == Begun("its instance template")


@pytest.mark.parametrize("after", [timedelta(), timedelta(seconds=61)], ids=["at once", "a minute later"])
def test_a_deletion_that_runs_is_not_refused_when_it_is_requested_again(place: LocalCompute, after: timedelta) -> None:
    order = made(place, an_order(place))
    place.wait(10 * MINUTE)
    place.slow_down(order.name)
    started(place.backend.delete(order))
    place.wait(after)
    assert isinstance(place.backend.look(order), Deleting)
    assert isinstance(place.backend.delete(order), Started)


def test_what_is_not_there_is_deleted_without_a_request(place: LocalCompute) -> None:
    assert place.backend.delete(an_order(place)) == Started(None)
    assert place.backend.delete_remains(an_order(place)) == Started(None)
    assert place.requests() == []


def test_a_group_that_somebody_deleted_leaves_the_rest_to_us(place: LocalCompute) -> None:
    order = made(place, an_order(place))
    place.vanish(order.name)
    assert place.backend.look(order) == Begun("its instance template")
    unmade(place, order)
    assert place.stands(order.name) == set()


def test_a_group_that_somebody_deleted_is_made_again_under_its_name(place: LocalCompute) -> None:
    order = made(place, an_order(place))
    place.wait(MINUTE)
    place.vanish(order.name)
    made(place, order)
    assert place.stands(order.name) == set(PARTS)

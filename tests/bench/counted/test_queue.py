"""What a queue of slices takes: time, order, and what it uses. `make bench` has longer queues."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta

import pytest

from tests.bench.counted import counters
from tests.bench.counted.hogging import LEAST, SPREAD, Hogged
from tests.bench.counted.queue import Arriving, Case, Served, release_behind, serve

SHORT = timedelta(seconds=5)
BURST = Case(jobsets=64, operations=9, lasts=SHORT)
CASES = [
    pytest.param(Case(jobsets=64), marks=pytest.mark.proof),
    Case(jobsets=64, operations=9),
    Case(jobsets=1, each=64, operations=9),
    Case(jobsets=64, operations=9, silent=True),
]


@pytest.fixture(scope="module")
def burst() -> Served:
    return serve(BURST)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=repr)
def test_the_slots_are_never_without_an_operation_while_slices_wait(case: Case) -> None:
    served = serve(case)
    assert served.makespan <= 1.02 * case.floor
    assert served.emptied_in <= 1.02 * case.floor
    assert served.idle <= 0.02 * case.operations * case.floor
    assert served.filling[counters.GKE_CHANGES] == served.emptying[counters.GKE_CHANGES] == case.slices


@pytest.mark.slow
def test_what_a_slice_takes_does_not_grow_with_the_length_of_the_queue() -> None:
    few, many = serve(Case(jobsets=15)), serve(Case(jobsets=60))
    for short, long in ((few.filling, many.filling), (few.emptying, many.emptying)):
        for counted, most in ((counters.RECEIVE, 6.5), (counters.RECONCILE, 5.5)):
            assert long[counted] / 60 <= most
            assert long[counted] / 60 <= 1.2 * short[counted] / 15


@pytest.mark.slow
@pytest.mark.parametrize("late", [0, 25])
def test_a_big_jobset_whose_leaders_come_one_after_the_other_is_linear_however_late_reconcile_is(
    late: int,
) -> None:
    few, many = Arriving(64, late).serve(), Arriving(256, late).serve()
    assert many[counters.RECONCILE] / 256 <= 2.7
    assert many[counters.RECEIVE] / 256 <= 1.5
    assert many[counters.GKE_READS] / 256 <= 0.1
    assert many[counters.WRITES] / 256 <= 1.1 * few[counters.WRITES] / 64


def test_slices_are_created_in_the_order_in_which_they_wait_round_the_namespaces() -> None:
    created = serve(Case(jobsets=40, namespaces=4)).created
    of_each: dict[str, list[str]] = defaultdict(list)
    for namespace, name in created:
        of_each[namespace].append(name)
    for names in of_each.values():
        assert names == sorted(names)
    after_the_first = [namespace for namespace, _ in created[5:]]  # those had the slots before anybody waited
    assert [{*after_the_first[at : at + 5]} for at in (0, 5, 10)] == [{*of_each}] * 3


def test_a_burst_ends_with_its_last_operation(burst: Served) -> None:
    gathering, closing = timedelta(seconds=1), timedelta(seconds=7)
    assert burst.makespan <= BURST.floor + 1.1 * gathering
    assert burst.emptied_in <= BURST.floor + 1.1 * closing


def test_a_slice_of_a_burst_takes_five_calls_of_gke_twelve_of_functions_and_seventeen_writes(burst: Served) -> None:
    used = burst.filling + burst.emptying
    assert (used[counters.GKE_READS] + used[counters.GKE_CHANGES]) / BURST.slices <= 4.1
    assert (used[counters.RECEIVE] + used[counters.RECONCILE]) / BURST.slices <= 12
    assert used[counters.WRITES] / BURST.slices <= 17


@pytest.mark.parametrize("queued", [10, 500])
def test_a_slice_is_released_as_soon_however_many_wait_to_be_created(queued: int) -> None:
    assert release_behind(queued) <= timedelta(seconds=1)


def test_the_floor_has_as_many_operations_at_a_time_as_may_run() -> None:
    assert [Case(jobsets=slices).floor / Case(jobsets=1).lasts for slices in (5, 6, 64)] == [1, 2, 13]
    assert Case(jobsets=1, each=256, operations=9).floor / Case(jobsets=1).lasts == 29


@pytest.mark.parametrize("operations", [5, 9])
def test_a_jobset_waits_as_long_for_a_namespace_whose_200_name_reservations_of_their_own_as_if_they_did_not(
    operations: int,
) -> None:
    served = {own: Hogged(operations, own=own).served_after() for own in (False, True)}
    assert served[True] == served[False] <= LEAST + timedelta(seconds=SPREAD)

"""What a queue of slices takes: time, and what it uses."""

from __future__ import annotations

import pytest

from tests.bench import meter
from tests.bench.queue import LASTS, Case, serve


@pytest.mark.slow
@pytest.mark.parametrize("case", [Case(jobsets=40), Case(jobsets=64, operations=9, silent=True)], ids=repr)
def test_the_slots_are_never_without_an_operation_while_slices_wait(case: Case) -> None:
    served = serve(case)
    assert served.makespan <= 1.02 * case.floor
    assert served.emptied_in <= 1.02 * case.floor
    assert served.filling[meter.GKE_CHANGES] == served.emptying[meter.GKE_CHANGES] == case.slices


@pytest.mark.slow
def test_what_a_slice_takes_does_not_grow_with_the_length_of_the_queue() -> None:
    few, many = serve(Case(jobsets=15)), serve(Case(jobsets=60))
    for short, long in ((few.filling, many.filling), (few.emptying, many.emptying)):
        for counted, most in ((meter.RECEIVE, 6.5), (meter.RECONCILE, 5.5)):
            assert long[counted] / 60 <= most
            assert long[counted] / 60 <= 1.2 * short[counted] / 15


def test_the_floor_has_as_many_operations_at_a_time_as_may_run() -> None:
    assert [Case(jobsets=slices).floor / LASTS for slices in (5, 6, 64)] == [1, 2, 13]
    assert Case(jobsets=1, each=256, operations=9).floor / LASTS == 29

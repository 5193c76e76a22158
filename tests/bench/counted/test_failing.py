"""What it takes when slices of one JobSet fail: linear in their number, and next to nothing on the JobSet's record."""

from __future__ import annotations

import pytest

from tests.bench.counted import counters
from tests.bench.counted.failing import OutOfStock, hosts_lost
from tpu_slices.domain.model.slices import SLICES_PER_WORKLOAD

MEBIBYTE = 1 << 20
"""Firestore's limit of a document: https://firebase.google.com/docs/firestore/quotas."""


@pytest.mark.slow
def test_slices_of_a_jobset_that_lose_their_hosts_at_once_cost_reads_and_writes_that_grow_with_their_number() -> None:
    few, many = hosts_lost(18), hosts_lost(72)
    for counted in (counters.READS, counters.WRITES, counters.RECEIVE, counters.RECONCILE, counters.GKE_READS):
        assert many[counted] / 72 <= 1.1 * few[counted] / 18, counted


@pytest.mark.slow
def test_the_record_of_a_jobset_is_small_and_seldom_written_however_many_claims_of_it_are_out_of_stock() -> None:
    out_of_stock, minutes = OutOfStock(SLICES_PER_WORKLOAD), 2
    assert out_of_stock.pass_minutes(minutes) <= 2 * minutes
    assert out_of_stock.size < MEBIBYTE / 8

"""What the count of usage rests on."""

from __future__ import annotations

import pytest

from infra.local import messaging
from tests.bench import meter, usage
from tests.bench.meter import MeteredWorld
from tests.builders import CLUSTER, a_record
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices_simulator.fakes.store import FakeStore


@pytest.mark.slow
def test_an_idle_hour_has_the_ticks_of_the_schedules_and_the_relays_heartbeats() -> None:
    idle = usage.idle_hour()
    assert idle[meter.SWEEP] == 60 * len(messaging.read().schedules)
    assert idle[meter.RECEIVE] == 60
    assert idle[meter.RECONCILE] == idle[meter.UPDATES] == idle[meter.GKE_CHANGES] == 0
    assert idle[meter.BILLED_BYTES] == 2 * 1_000 * (idle[meter.SWEEP] + idle[meter.RECEIVE])
    completed, counted, checked = idle[meter.SWEEP], idle[meter.SWEEP], 4  # of sweeps, of the cluster, of its inventory
    assert idle[meter.LINES] == completed + counted + checked + idle[meter.RECEIVE]


@pytest.mark.slow
def test_a_slices_life_is_twelve_calls_of_functions_and_creates_and_deletes_one_pool() -> None:
    idle, life = usage.idle_hour(), usage.life()
    assert life[meter.GKE_CHANGES] == 2
    assert life[meter.RECEIVE] - idle[meter.RECEIVE] + life[meter.RECONCILE] <= 12
    assert life[meter.WRITES] - idle[meter.WRITES] <= 20
    assert life[meter.READS] - idle[meter.READS] <= 210


@pytest.mark.slow
def test_slices_that_are_ready_call_nobody_write_nothing_and_are_read_four_times_an_hour() -> None:
    idle, one, four = usage.idle_hour(), usage.ready_hour(1), usage.ready_hour(4)
    for counted in (meter.RECEIVE, meter.RECONCILE, meter.WRITES, meter.GKE_READS):
        assert idle[counted] == one[counted] == four[counted]
    record_jobset_and_standing, inventory_checks = 3, 4
    assert four[meter.READS] - one[meter.READS] == 3 * record_jobset_and_standing * inventory_checks


def test_nothing_is_used_while_no_time_passes() -> None:
    world = MeteredWorld()
    with world.used() as counts:
        world.minutes(0)
    assert +counts == {}


def test_what_is_not_there_is_billed_as_a_read_and_so_is_an_empty_answer() -> None:
    store = FakeStore()
    counts = meter.Counts()
    metered = meter.MeteredStore(store, counts)
    metered.workloads(CLUSTER, [WorkloadUid("a"), WorkloadUid("b")])
    assert counts[meter.READS] == 2
    assert list(metered.kept_slices(CLUSTER)) == []
    assert counts[meter.READS] == 3
    store.put(a_record())
    assert len(list(metered.kept_slices(CLUSTER))) == 1
    assert counts[meter.READS] == 4

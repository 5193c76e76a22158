"""What a slice uses of Google Cloud from its request until it is gone, and what stands still: counted, and bounded.

What makes a count worse fails here, by the count's name. `docs/cost.md` has the prices.
"""

from __future__ import annotations

import pytest

from infra.local import messaging
from tests.bench.counted import cost, counters, metered, usage
from tests.bench.counted.counters import Counts
from tests.bench.counted.meter import MeteredWorld
from tests.builders import CLUSTER, a_record, self_managed, settings
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import PoolName, WorkloadUid
from tpu_slices.domain.reconciling.inventory import INVENTORY_CHECK_EVERY
from tpu_slices_simulator.fakes.store import FakeStore

A_LIFE = {
    counters.RECEIVE: 5,
    counters.RECONCILE: 5,
    counters.READS: 65,
    counters.WRITES: 15,
    counters.DELETES: 2,
    counters.UPDATES: 14,
    counters.GKE_CHANGES: 2,
}
"""Of a slice that is created in 5 minutes, used for 45 and deleted in 4, beyond what an idle hour uses."""


@pytest.fixture(scope="module")
def idle() -> Counts:
    return usage.idle_hour()


@pytest.mark.slow
def test_an_idle_hour_has_the_ticks_of_the_schedules_and_the_relays_heartbeats(idle: Counts) -> None:
    assert idle[counters.SWEEP] == sum(60 // schedule.minutes for schedule in messaging.read().schedules)
    assert idle[counters.RECEIVE] == 60
    assert idle[counters.RECONCILE] == idle[counters.UPDATES] == idle[counters.GKE_CHANGES] == 0
    assert idle[counters.BILLED_BYTES] == 2 * 1_000 * (idle[counters.SWEEP] + idle[counters.RECEIVE])
    completed, counted, checked, searched = 60, 60, 4, 4
    assert idle[counters.LINES] == completed + counted + checked + searched + idle[counters.RECEIVE]


@pytest.mark.slow
@pytest.mark.parametrize("name", A_LIFE)
def test_a_slices_life_uses(name: str, idle: Counts, life: Counts) -> None:
    assert life[name] - idle[name] == A_LIFE[name]


@pytest.fixture(scope="module")
def life() -> Counts:
    return usage.life()


@pytest.mark.slow
def test_of_a_slices_life_gke_answers_five_calls_beside_the_sweeps_lists(idle: Counts, life: Counts) -> None:
    minutes_with_an_operation = 9
    reads = life[counters.GKE_READS] - idle[counters.GKE_READS] - minutes_with_an_operation
    assert reads + life[counters.GKE_CHANGES] == 5


@pytest.mark.slow
def test_slices_that_are_ready_call_nobody_write_nothing_and_are_read_four_times_an_hour(idle: Counts) -> None:
    one, four = usage.ready_hour(1), usage.ready_hour(4)
    for counted in (counters.RECEIVE, counters.RECONCILE, counters.WRITES, counters.GKE_READS):
        assert idle[counted] == one[counted] == four[counted]
    record_and_standing, inventory_checks = 2, usage.HOUR / (INVENTORY_CHECK_EVERY.total_seconds() / 60)
    assert four[counters.READS] - one[counters.READS] == 3 * record_and_standing * inventory_checks


@pytest.mark.slow
def test_a_month_of_a_thousand_slices_that_stand_costs_less_than_ten_dollars(idle: Counts, life: Counts) -> None:
    months = cost.months(idle, life, (1, usage.ready_hour(1)), (5, usage.ready_hour(5)))
    assert cost.bill(months["1,000 READY slices"])["sum"][1] < 10


def test_a_pod_that_cannot_be_scheduled_waits_for_six_calls_of_firestore_and_a_message() -> None:
    world = MeteredWorld()
    world.minutes(2)
    world.jobset_appears()
    world.calls.clear()
    world.minutes(1)
    before, created, _ = " ".join(world.calls).partition(" create ")
    assert created
    received, reconciled = before.partition(counters.RECEIVE)[2].split(counters.RECONCILE)
    received = received.rpartition(counters.RECEIVE)[2]
    assert received.split() == ["together", "having", "commit", "request_reconcile"]
    assert reconciled.split() == ["together", "offered", "commit"]


def test_from_a_creations_end_to_the_next_one_are_fifteen_calls_of_firestore_and_no_message_to_wait_for() -> None:
    world = MeteredWorld(settings(limits=Limits(operations=1)))
    world.minutes(2)
    for name in ("llama", "gemma"):
        world.jobset_appears(name)
    world.minutes(1)
    (created,) = world.pools
    world.calls.clear()
    world.operation_ends(PoolName(created))
    before, created_next, _ = " ".join(world.calls).partition(" create ")
    assert created_next
    assert before.removeprefix(counters.RECONCILE).split() == [
        *("settings_at", "together", "together", "commit", "limiter"),
        *("awaits_slot", "deletions_awaiting_slot", "budget", *["creations_awaiting_slot"] * 3, "commit"),
        *("announce", "together", "offered", "announce", "commit"),
    ]


def test_nothing_is_used_while_no_time_passes() -> None:
    world = MeteredWorld()
    with world.used() as counts:
        world.minutes(0)
    assert +counts == {}


def test_what_is_not_there_is_billed_as_a_read_and_so_is_an_empty_answer() -> None:
    store = FakeStore()
    counts = Counts()
    counting = metered.MeteredStore(store, counts, [])
    counting.workloads(CLUSTER, [WorkloadUid("a"), WorkloadUid("b")])
    assert counts[counters.READS] == 2
    assert list(counting.kept_slices(CLUSTER)) == []
    assert counts[counters.READS] == 3
    store.put(a_record())
    assert len(list(counting.kept_slices(CLUSTER))) == 1
    assert counts[counters.READS] == 4


@pytest.mark.slow
def test_on_compute_engine_a_step_that_ended_unheard_goes_on_with_the_next_sweep_at_a_list_a_minute() -> None:
    world = MeteredWorld(self_managed())
    jobset = world.jobset_appears()
    world.look(tick=False)
    pool = world.record(jobset).pool
    with world.used() as counts:
        for _ in ("policy", "template", "group"):
            world.operation_ends(pool, silent=True)
            world.minutes(1)
            world.look(tick=False)
    assert world.record(jobset).phase is Phase.READY
    lists, looks = 3, 3
    assert counts[counters.GKE_READS] == lists + looks
    assert counts[counters.RECONCILE] == 3

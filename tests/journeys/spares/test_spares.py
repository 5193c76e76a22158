"""Slices that are made before anybody needs them: who gets them, what comes before them, and when they go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import CLUSTER, MINUTE, a_request, settings
from tests.journeys.hosts.test_keys_of_hosts import keys
from tests.journeys.reservations.waiting import HALL
from tests.journeys.serving import STOCKOUT, reason
from tests.world import World
from tpu_slices.domain.capacity.spares import seats_of
from tpu_slices.domain.model.capacity import Place, Spare
from tpu_slices.domain.model.clusters import Allowed, CatalogueSettings, ClusterSettings, Limits, Policy
from tpu_slices.domain.model.facts import Pinning, Toleration
from tpu_slices.domain.model.observations import Creating
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import CapacityKind
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.usage import Use
from tpu_slices.flows.budget import counted
from tpu_slices.flows.edits import edit
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.fakes.reservations import FakeReservation
from tpu_slices_simulator.fakes.settings import FakeSettings

LIST = Place(capacity=CapacityKind.ON_DEMAND, zones=("us-central2-b",))
TWO = Spare(accelerator="tpu-v6e-slice", topology="4x4", place="list", count=2, namespaces=("research",))
ONE = replace(TWO, count=1)
SPOT = (
    ("cloud.google.com/gke-spot", "true"),
    ("cloud.google.com/gke-tpu-accelerator", "tpu-v6e-slice"),
    ("cloud.google.com/gke-tpu-topology", "4x4"),
)
TOLERATED = Toleration(key="cloud.google.com/gke-spot", operator="Exists")
PRICED = CatalogueSettings(
    prices=(
        (
            ("accelerator", "tpu-v6e-slice"),
            ("region", "us-central2"),
            ("kind", "on_demand"),
            ("usd_per_chip_hour", "2.70"),
            ("read", "2026-11-30"),
            ("source", "a contract"),
        ),
    )
)
SMALLER = a_request(topology="2x4")


def with_spares(*spares: Spare, **changes: Any) -> ClusterSettings:
    return settings(places={"list": LIST}, spares=spares, **changes)


def spares(world: World) -> list[SliceRecord]:
    """Return the seats that are asked for, as they are on record."""
    found = world.store.having(CLUSTER, seats_of(world.settings).keys())
    return [found[claim].value for claim in sorted(found)]


def reasons(world: World) -> list[Reason]:
    return [each.reason for each in spares(world)]


def stocked(*asked: Spare, **changes: Any) -> World:
    """Return a world in which the spares stand."""
    world = World(of_cluster=with_spares(*asked, **changes))
    world.settle(minutes=10)
    assert set(reasons(world)) == {Reason.SPARE}
    return world


def orders(world: World) -> list[Verb]:
    return [call.verb for call in world.backend.calls if call.verb in {Verb.CREATE, Verb.DELETE}]


def test_they_are_made_and_stand_with_keys_that_no_pod_has() -> None:
    world = stocked(TWO)
    assert orders(world) == [Verb.CREATE] * 2
    assert keys(world) == {each.id for each in spares(world)}
    assert [each.phase for each in spares(world)] == [Phase.READY] * 2
    world.settle(minutes=120)
    assert (reasons(world), orders(world)) == ([Reason.SPARE] * 2, [Verb.CREATE] * 2)


def test_a_claim_that_fits_has_one_at_once_and_another_is_made() -> None:
    world = stocked(ONE)
    first = spares(world)[0].id
    llama = world.jobset_appears("llama")
    began = world.clock.now()
    for _ in range(3):
        world.steps()
    record = world.record(llama)
    assert world.clock.now() - began < MINUTE
    assert (llama.bound, record.id, record.reason) == ({0}, first, Reason.READY)
    assert "Got a spare of namespace research: nothing was created." in {each.message for each in record.transitions}
    world.settle(minutes=10)
    assert (reasons(world), orders(world)) == ([Reason.SPARE], [Verb.CREATE] * 2)
    assert world.record(llama).id == first


def changed(world: World, *asked: Spare, **changes: Any) -> None:
    """Let an operator change the settings."""
    world.settings = replace(world.settings, spares=asked, version=f"{world.settings.version}+", **changes)
    world.store.put_settings(world.settings)


def without_stock(world: World, minutes: int) -> None:
    """Let minutes pass in which each creation fails."""
    for _ in range(minutes):
        world.steps()
        for pool in [pool for pool in world.backend.pools.values() if isinstance(pool.seen, Creating)]:
            world.backend.fail(pool.name, STOCKOUT)
        world.operations_end()
        world.clock.advance(MINUTE)
        world.sweeps()


def test_no_claim_of_another_namespace_or_shape_has_one() -> None:
    world = stocked(ONE)
    first = spares(world)[0].id
    others = [
        world.jobset_appears("other", namespace="vision"),
        world.jobset_appears("small", request=SMALLER),
        world.jobset_appears("spot", request=a_request(node_selector=SPOT, tolerations=(TOLERATED,))),
    ]
    world.settle(minutes=10)
    assert spares(world)[0].id == first
    assert [each.bound for each in others] == [{0}] * 3


def test_pods_that_select_more_have_one_that_is_made_for_such() -> None:
    spot = Place(capacity=CapacityKind.SPOT, zones=("us-central2-b",))
    asked = replace(ONE, place="spot", node_selector=(("cloud.google.com/gke-spot", "true"),))
    world = World(of_cluster=settings(places={"spot": spot}, spares=(asked,)))
    world.settle(minutes=10)
    first = spares(world)[0].id
    llama = world.jobset_appears("llama", request=a_request(node_selector=SPOT, tolerations=(TOLERATED,)))
    world.settle(minutes=3, until=lambda: llama.bound == {0})
    assert world.record(llama).id == first


def test_one_that_waits_for_its_next_try_has_a_spare_as_soon_as_that_stands() -> None:
    world = World()
    llama = world.jobset_appears()
    world.steps()
    world.backend.fail(world.record(llama).pool, STOCKOUT)
    world.steps()
    assert reason(world, llama) is Reason.STOCKOUT
    changed(world, ONE, places={"list": LIST})
    world.settle(minutes=40, until=lambda: llama.bound == {0})
    assert llama.bound == {0}


def test_a_lower_count_lets_one_go_and_none_lets_all_go() -> None:
    world = stocked(TWO)
    changed(world, ONE)
    world.settle(minutes=4)
    assert (reasons(world), len(world.pools)) == ([Reason.SPARE], 1)
    changed(world)
    world.settle(minutes=4)
    assert (world.pools, orders(world)) == ([], [*[Verb.CREATE] * 2, *[Verb.DELETE] * 2])
    assert {each.phase for each in world.records.values()} == {Phase.GONE}


def test_another_place_under_the_same_name_is_another_spare() -> None:
    world = stocked(ONE)
    spot = Place(capacity=CapacityKind.SPOT, zones=("us-central2-b",))
    changed(world, ONE, places={"list": spot})
    world.settle(minutes=10)
    (seat,) = spares(world)
    assert (seat.reason, seat.made_as and seat.made_as.capacity.kind) == (Reason.SPARE, CapacityKind.SPOT)
    assert (sorted(orders(world)), len(world.pools)) == ([Verb.CREATE, Verb.CREATE, Verb.DELETE], 1)


@pytest.mark.parametrize(
    ("policy", "namespace"),
    [
        (Policy(everyone=Allowed(chips_per_namespace=32)), "research"),
        (Policy(chips_per_cluster=32), "research"),
        (Policy(chips_per_cluster=32), "vision"),
    ],
)
def test_they_go_when_somebody_waits_for_their_chips_and_are_not_made_again_meanwhile(
    policy: Policy, namespace: str
) -> None:
    world = stocked(TWO, policy=policy)
    smaller = [world.jobset_appears(f"small-{each}", request=SMALLER, namespace=namespace) for each in range(4)]
    world.settle(minutes=20, until=lambda: all(each.bound == {0} for each in smaller))
    assert [each.bound for each in smaller] == [{0}] * 4
    world.settle(minutes=20)
    assert reasons(world) == [Reason.SPARE_WAITS] * 2
    assert "32 of 32" in spares(world)[0].message
    for each in smaller:
        world.ends(each)
    world.settle(minutes=20)
    assert reasons(world) == [Reason.SPARE] * 2


def test_all_together_cost_no_more_than_the_settings_say() -> None:
    world = World(of_cluster=with_spares(replace(TWO, count=3), spares_most_usd_an_hour=100.0, catalogue=PRICED))
    world.settle(minutes=30)
    assert sorted(reasons(world)) == [Reason.SPARE, Reason.SPARE, Reason.SPARE_WAITS]
    waits = next(each for each in spares(world) if each.reason is Reason.SPARE_WAITS)
    assert waits.message == (
        "spares_most_usd_an_hour: with it all spares cost 129.60 dollars an hour, and at most 100.00 are allowed."
    )


def test_without_a_known_price_none_is_made_within_a_limit_of_dollars() -> None:
    world = World(of_cluster=with_spares(ONE, spares_most_usd_an_hour=100.0))
    world.settle(minutes=5)
    assert (reasons(world), orders(world)) == ([Reason.SPARE_WAITS], [])


def test_where_there_is_no_stock_they_ask_as_seldom_as_the_memory_of_shortages_says() -> None:
    world = World(of_cluster=with_spares(TWO))
    without_stock(world, minutes=240)
    assert 6 <= orders(world).count(Verb.CREATE) <= 14


def test_they_are_made_after_all_demand_in_line() -> None:
    world = World(of_cluster=with_spares(ONE, limits=Limits(operations=1)))
    jobsets = [world.jobset_appears(f"job-{each}", namespace=f"ns-{each}") for each in range(4)]
    world.settle(minutes=30)
    created = [call.pool for call in world.backend.calls if call.verb is Verb.CREATE]
    assert [each.bound for each in jobsets] == [{0}] * 4
    assert created.index(spares(world)[0].pool) == len(created) - 1 == 4


def test_where_a_claim_waits_for_capacity_none_is_tried() -> None:
    world = World(of_cluster=with_spares())
    world.jobset_appears("llama", request=SMALLER)
    world.steps()
    changed(world, ONE)
    without_stock(world, minutes=60)
    made = {call.pool for call in world.backend.calls if call.verb is Verb.CREATE}
    assert all("spare" not in each for each in made)
    assert reasons(world)[0] in {Reason.SPARE_WAITS, Reason.AWAITING_TURN}


def test_one_that_an_operator_releases_goes_and_another_is_made() -> None:
    world = stocked(ONE)
    (seat,) = spares(world)
    edit(world.settings.cluster, seat.name, lambda record: replace(record, release_requested=True), world.deps)
    world.settle(minutes=10)
    assert (reasons(world), orders(world)) == ([Reason.SPARE], [Verb.CREATE, Verb.DELETE, Verb.CREATE])


def test_one_that_loses_a_host_is_given_to_nobody_and_replaced() -> None:
    world = stocked(ONE)
    first = spares(world)[0].id
    world.a_host_breaks()
    world.relay_publishes()
    llama = world.jobset_appears("llama")
    world.settle(minutes=10)
    assert llama.bound == {0}
    assert world.record(llama).id != first
    world.settle(minutes=45)
    (seat,) = spares(world)
    assert (seat.reason, seat.id != first) == (Reason.SPARE, True)


def test_a_cluster_that_is_paused_makes_none_and_gives_none() -> None:
    world = stocked(ONE)
    first = spares(world)[0].id
    changed(world, TWO)
    FakeSettings(world.store).pause(CLUSTER, "we look")
    llama = world.jobset_appears("llama")
    world.settle(minutes=10)
    assert (reasons(world), orders(world), llama.bound) == ([Reason.SPARE], [Verb.CREATE], set())
    FakeSettings(world.store).resume(CLUSTER)
    world.settle(minutes=10)
    assert (world.record(llama).id, len(world.pools)) == (first, 3)


def test_a_cluster_that_is_retired_lets_them_go() -> None:
    world = stocked(TWO)
    FakeSettings(world.store).retire(CLUSTER, "it moves")
    world.settle(minutes=20)
    assert world.pools == []


def test_lost_records_lead_to_no_double_and_no_leak() -> None:
    world = stocked(TWO)
    world.loses_its_records()
    world.settle(minutes=60)
    assert (reasons(world), len(world.pools)) == ([Reason.SPARE] * 2, 2)


def test_one_whose_record_is_lost_goes_if_the_settings_ask_for_none() -> None:
    world = stocked(ONE)
    world.loses_its_records()
    changed(world)
    world.settle(minutes=70)
    assert (world.pools, orders(world)) == ([], [Verb.CREATE, Verb.DELETE])


def test_one_whose_record_is_lost_stays_while_a_job_is_on_it() -> None:
    world = stocked(ONE)
    llama = world.jobset_appears("llama")
    world.settle(minutes=5)
    changed(world)
    world.settle(minutes=20)
    world.loses_its_records()
    world.settle(minutes=60)
    assert (llama.bound, len(world.pools)) == ({0}, 1)
    world.ends(llama)
    world.settle(minutes=60)
    assert world.pools == []


def test_one_in_another_zone_than_its_place_by_now_goes_though_its_record_is_lost() -> None:
    world = stocked(ONE)
    world.loses_its_records()
    changed(world, ONE, places={"list": replace(LIST, zones=("us-central2-c",))})
    world.settle(minutes=70)
    zones = {pool.order.spec.zone for pool in world.backend.pools.values() if pool.order and pool.order.spec}
    assert (zones, reasons(world)) == ({"us-central2-c"}, [Reason.SPARE])


def test_none_is_made_again_in_the_step_that_loses_it_where_nothing_pins_pods() -> None:
    world = stocked(ONE)
    world.cluster.pinning = Pinning.NOTHING
    world.settle(minutes=3)
    world.backend.pools.pop(spares(world)[0].pool)
    world.settle(minutes=40)
    assert (world.pools, orders(world).count(Verb.CREATE)) == ([], 1)


def test_none_is_made_while_the_relay_is_silent() -> None:
    world = World(of_cluster=with_spares())
    world.settle(minutes=3)
    world.relay_is_dead = True
    world.settle(minutes=10)
    changed(world, ONE)
    world.settle(minutes=30)
    assert (orders(world), reasons(world)) == ([], [Reason.SPARE_WAITS])


def test_the_chips_of_spares_are_warm_in_the_books() -> None:
    world = stocked(ONE)
    world.settle(minutes=60)
    (seat,) = spares(world)
    assert (seat.usages[-1].use, seat.usages[-1].chips) == (Use.WARM, 16)
    assert counted(world.settings, world.deps).chips_idle == 0


def test_in_a_reservation_without_room_none_is_asked_for_and_one_is_made_once_it_has_some() -> None:
    hall = Place(capacity=CapacityKind.RESERVATION, reservation=HALL, zones=("us-central2-b",))
    world = World(of_cluster=settings(places={"hall": hall}, spares=(replace(ONE, place="hall"),)))
    world.reservations.has(FakeReservation(name=HALL, hosts=8, others=8))
    world.settle(minutes=240)
    assert (orders(world), reasons(world)) == ([], [Reason.RESERVATION_NOT_OPEN])
    assert len(world.reservations.reads) <= 20
    world.reservations.has(FakeReservation(name=HALL, hosts=8))
    world.settle(minutes=65, until=lambda: reasons(world) == [Reason.SPARE])
    assert reasons(world) == [Reason.SPARE]


def test_none_is_made_where_nothing_keeps_pods_of_others_off_its_hosts() -> None:
    world = World(of_cluster=with_spares(ONE))
    world.cluster.pinning = Pinning.NOTHING
    world.settle(minutes=5)
    assert (orders(world), reasons(world)) == ([], [Reason.SPARE_WAITS])


def test_they_take_no_more_than_half_of_the_operations_at_a_time() -> None:
    world = World(of_cluster=with_spares(replace(ONE, count=6)))
    for _ in range(5):
        world.steps()
        world.clock.advance(MINUTE)
        world.sweeps()
    assert len(world.store.slots(CLUSTER)) == 2
    world.settle(minutes=15)
    assert reasons(world) == [Reason.SPARE] * 6

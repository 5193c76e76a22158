"""What is kept warm stays within its limits, and keeps nobody from the chips that they may have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import CLUSTER, a_request, settings
from tests.journeys.serving import STOCKOUT, reason, serving
from tests.journeys.warm.test_kept_warm import QUARTER, orders, warm_world
from tests.world import World
from tpu_slices.domain.model.capacity import NamespaceSettings, Warm
from tpu_slices.domain.model.clusters import Allowed, CatalogueSettings, Policy
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.ports.backend import PoolOrder
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.fakes.settings import FakeSettings
from tpu_slices_simulator.live import LiveWorkload

SMALLER = a_request(topology="2x4")


def several(world: World, *names: str) -> list[LiveWorkload]:
    """Return JobSets that run, each on its slice, which end one after the other."""
    jobsets = [world.jobset_appears(name) for name in names]
    world.settle(minutes=15, until=lambda: all(each.bound == {0} for each in jobsets))
    for each in jobsets:
        world.ends(each)
        world.settle(minutes=2)
    return jobsets


def test_over_the_most_chips_the_one_goes_first_that_has_been_warm_longest() -> None:
    world = warm_world(Warm(lasts=timedelta(hours=1), most_chips=32))
    first, second, third = several(world, "first", "second", "third")
    world.settle(minutes=10)
    assert [reason(world, each) for each in (second, third)] == [Reason.WARM] * 2
    assert world.record(first).phase is Phase.GONE
    assert orders(world) == [*[Verb.CREATE] * 3, Verb.DELETE]


def test_one_that_exceeds_a_limit_is_looked_at_before_it_is_deleted() -> None:
    """Another than ours may have come under its name since: what is kept warm is seldom looked at."""
    world = warm_world(Warm(lasts=timedelta(hours=1), most_chips=16))
    asked: list[tuple[str, str]] = []
    for verb in ("look", "delete"):
        setattr(world.backend, verb, noting(asked, verb, getattr(world.backend, verb)))
    first, second = several(world, "first", "second")
    world.settle(minutes=3)
    assert (world.record(first).phase, reason(world, second)) == (Phase.GONE, Reason.WARM)
    pool = world.record(first).pool
    assert asked[asked.index(("delete", pool)) - 1] == ("look", pool)


def noting(asked: list[tuple[str, str]], verb: str, call: Callable[[PoolOrder], Any]) -> Callable[[PoolOrder], Any]:
    """Return a call of the backend that is noted, with the pool that it is about."""

    def noted(order: PoolOrder) -> Any:
        asked.append((verb, order.name))
        return call(order)

    return noted


def test_one_that_is_larger_than_the_most_chips_is_not_kept() -> None:
    world, llama = serving("llama", warm_world(Warm(lasts=timedelta(hours=1), most_chips=8)))
    world.ends(llama)
    world.settle(minutes=10)
    assert world.record(llama).phase is Phase.GONE
    assert Reason.WARM not in {each.reason for each in world.record(llama).transitions}


@pytest.mark.parametrize(("most", "kept"), [(100.0, 2), (60.0, 1), (30.0, 0)])
def test_a_limit_in_dollars_counts_prices_by_list(most: float, kept: int) -> None:
    price = (
        ("accelerator", "tpu-v6e-slice"),
        ("region", "us-central2"),
        ("kind", "on_demand"),
        ("usd_per_chip_hour", "2.70"),
        ("read", "2026-11-30"),
        ("source", "a contract"),
    )
    of_cluster = settings(
        warm=Warm(lasts=timedelta(hours=1), most_usd_an_hour=most), catalogue=CatalogueSettings(prices=(price,))
    )
    world = World(of_cluster=of_cluster)
    jobsets = several(world, "first", "second", "third")
    world.settle(minutes=10)
    warm = [each for each in jobsets if reason(world, each) is Reason.WARM]
    assert warm == jobsets[3 - kept :]
    assert all("(43.20 dollars an hour)" in world.record(each).message for each in warm)


def test_what_has_no_known_price_fits_no_limit_of_dollars() -> None:
    world, llama = serving("llama", warm_world(Warm(lasts=timedelta(hours=1), most_usd_an_hour=10_000.0)))
    world.ends(llama)
    world.settle(minutes=10)
    assert world.record(llama).phase is Phase.GONE


def test_a_namespace_has_its_own_setting_in_place_of_the_clusters() -> None:
    none, own = NamespaceSettings(warm=Warm(lasts=timedelta(0))), NamespaceSettings(warm=Warm(lasts=timedelta(hours=1)))
    world = World(of_cluster=settings(warm=QUARTER, namespaces={"vision": none, "speech": own}))
    jobsets = [world.jobset_appears(each, namespace=each) for each in ("research", "vision", "speech")]
    world.settle(minutes=15, until=lambda: all(each.bound == {0} for each in jobsets))
    for each in jobsets:
        world.ends(each)
    world.settle(minutes=10)
    assert [reason(world, each) for each in jobsets] == [Reason.WARM, Reason.RELEASED, Reason.WARM]
    world.settle(minutes=15)
    assert [reason(world, each) for each in jobsets] == [Reason.RELEASED, Reason.RELEASED, Reason.WARM]


@pytest.mark.parametrize(
    "policy",
    [Policy(everyone=Allowed(chips_per_namespace=48)), Policy(chips_per_cluster=48)],
    ids=["of its namespace", "of its cluster"],
)
def test_warm_slices_go_first_when_somebody_waits_for_their_chips(policy: Policy) -> None:
    """The hoarder's go that have been warm longest, and only as many as are needed."""
    world = World(of_cluster=settings(warm=Warm(lasts=timedelta(hours=2)), policy=policy))
    first, second, third = several(world, "first", "second", "third")
    assert {reason(world, each) for each in (first, second, third)} == {Reason.WARM}
    other = world.jobset_appears("other", request=SMALLER)
    world.settle(minutes=10, until=lambda: other.bound == {0})
    assert other.bound == {0}
    assert [reason(world, each) for each in (first, second, third)] == [Reason.RELEASED, Reason.WARM, Reason.WARM]


def test_a_hoarder_in_another_namespace_keeps_nobody_from_the_limit_of_the_cluster() -> None:
    world = World(of_cluster=settings(warm=Warm(lasts=timedelta(hours=2)), policy=Policy(chips_per_cluster=48)))
    several(world, "first", "second", "third")
    others = [world.jobset_appears(f"other-{each}", namespace="vision") for each in range(3)]
    world.settle(minutes=15, until=lambda: all(each.bound == {0} for each in others))
    assert [each.bound for each in others] == [{0}] * 3
    assert len(world.pools) == 3


def test_none_is_marked_to_go_while_the_cluster_is_paused() -> None:
    world = World(of_cluster=settings(warm=Warm(lasts=timedelta(hours=2)), policy=Policy(chips_per_cluster=48)))
    jobsets = several(world, "first", "second", "third")
    FakeSettings(world.store).pause(CLUSTER, "maintenance")
    gang = world.jobset_appears("gang", slices=2, request=a_request(replicas=2, gang="all"))
    world.settle(minutes=10)
    kept = [record.current.warm for record in map(world.record, jobsets)]
    assert [warm is not None and warm.ended for warm in kept] == [""] * 3
    FakeSettings(world.store).resume(CLUSTER)
    world.settle(minutes=30, until=lambda: gang.served)
    assert gang.served


def test_none_goes_for_one_that_can_never_have_its_chips() -> None:
    world, llama = serving("llama", World(of_cluster=settings(warm=QUARTER, policy=Policy(chips_per_cluster=16))))
    world.ends(llama)
    world.settle(minutes=2)
    huge = world.jobset_appears("huge", request=a_request(topology="4x8"))
    world.settle(minutes=8)
    assert (reason(world, huge), reason(world, llama)) == (Reason.NOT_ALLOWED, Reason.WARM)


def test_one_that_waits_for_its_next_try_gets_a_slice_that_becomes_warm_at_once() -> None:
    world, llama = serving("llama", warm_world())
    gemma = world.jobset_appears("gemma")
    world.steps()
    world.backend.fail(world.record(gemma).pool, STOCKOUT)
    world.steps()
    assert reason(world, gemma) is Reason.STOCKOUT
    world.ends(llama)
    world.steps()
    world.steps()
    world.steps()
    assert (gemma.bound, reason(world, gemma)) == ({0}, Reason.READY)
    assert orders(world).count(Verb.CREATE) == 2


def test_one_that_fails_gets_a_slice_that_has_been_warm_for_long() -> None:
    """It began to want one while none of such was there."""
    world, llama = serving("llama", warm_world(replace(QUARTER, lasts=timedelta(hours=1))))
    gemma = world.jobset_appears("gemma")
    world.steps()
    world.ends(llama)
    world.steps()
    world.steps()
    assert reason(world, llama) is Reason.WARM
    world.backend.fail(world.record(gemma).pool, STOCKOUT)
    world.steps()
    world.steps()
    assert gemma.bound == {0}

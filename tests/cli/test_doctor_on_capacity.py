"""What `slices doctor` says of places that ran out and of slices that are kept warm."""

from __future__ import annotations

from datetime import timedelta

from tests.builders import settings
from tests.journeys.ladders.stories import LIST, SPOT, B, appears, laddered, rung
from tests.world import World
from tpu_slices.domain.model.capacity import Warm
from tpu_slices.domain.model.clusters import CatalogueSettings
from tpu_slices.domain.records.limiters import ConcurrencyLimiter
from tpu_slices_cli.examined.capacity import capacity


def told(world: World) -> list[str]:
    """Return what is said, all of which is well."""
    found = capacity(world.settings.cluster, world.settings, world.store, world.clock.now())
    assert all(each.is_well for each in found)
    return [each.message for each in found]


def limiter(world: World) -> ConcurrencyLimiter:
    stored = world.store.limiter(world.settings.cluster)
    assert stored is not None
    return stored.value


def test_a_place_of_a_ladder_that_ran_out_is_told_until_it_is_asked_again() -> None:
    world = World(of_cluster=laddered(rung("spot"), rung("list")))
    world.backend.runs_out(B, SPOT)
    appears(world, "llama")
    world.settle(minutes=10, until=lambda: told(world) != [])
    (line,) = told(world)
    assert line.startswith("Ladders pass by spot until 12:")
    assert line.endswith(f" UTC, for slices of 4 hosts and more: tpu-v6e-slice 4x4 is out of stock as spot in {B}.")


def test_of_a_place_that_no_ladder_has_nothing_is_said() -> None:
    world = World(of_cluster=laddered(rung("spot"), ladder=None))
    world.backend.runs_out(B, LIST)
    appears(world, "llama")
    world.settle(minutes=10)
    assert limiter(world).shortages
    assert told(world) == []


def test_slices_that_are_kept_warm_are_told_with_what_they_cost() -> None:
    price = (
        ("accelerator", "tpu-v6e-slice"),
        ("region", "us-central2"),
        ("kind", "on_demand"),
        ("usd_per_chip_hour", "2.70"),
        ("read", "2026-11-30"),
        ("source", "a contract"),
    )
    kept = Warm(lasts=timedelta(hours=1))
    world = World(of_cluster=settings(warm=kept, catalogue=CatalogueSettings(prices=(price,))))
    jobsets = [world.jobset_appears(name, slices=1) for name in ("first", "second")]
    world.settle(minutes=10)
    for each in jobsets:
        world.ends(each)
    world.settle(minutes=5)
    assert told(world) == ["2 slices are kept warm: 32 chips, 86.40 dollars an hour."]

"""Stories in clusters with places and ladders, where zones run out of one kind of capacity and have it again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta

from tests.simulation.drawn import is_flex_start, is_spot, remade
from tpu_slices.domain.catalogue.rows import Cells
from tpu_slices.domain.model.capacity import NO_LADDER, Ladder, NamespaceSettings, Place, Rung, ZonesOf
from tpu_slices.domain.model.clusters import CatalogueSettings, ClusterSettings
from tpu_slices.domain.model.slices import CapacityKind
from tpu_slices_simulator.chance import Chance
from tpu_slices_simulator.story import Fault, Kind, Plot, Story

B, C = "us-central2-b", "us-central2-c"
SPOT, FLEX, LIST = CapacityKind.SPOT, CapacityKind.FLEX_START, CapacityKind.ON_DEMAND
PLACES: Mapping[str, Place] = {
    "spot-b": Place(capacity=SPOT, zones=(B,)),
    "spot-c": Place(capacity=SPOT, zones=(C,)),
    "spot-any": Place(capacity=SPOT, zones=(C, B)),
    "flex": Place(capacity=FLEX, zones=(B,)),
    "list-b": Place(capacity=LIST, zones=(B,)),
    "list-c": Place(capacity=LIST, zones=(C,)),
}
LAST = ("list-b", "list-c")
"""Of each ladder one: every workload may ask there, whatever it costs."""
TIMES = (None, timedelta(minutes=5), timedelta(minutes=20), timedelta(hours=1))
PRICES = {SPOT: 1.0, FLEX: 1.5, LIST: 2.0}
"""US dollars of a chip in an hour."""
MOST = (20.0, 40.0, 80.0)
"""US dollars an hour: less than what one slice costs, or three."""
DEFAULTS = ("first", "second")
"""The ladders: of the cluster, and of the namespace `vision`."""


def on_ladders(story: Story) -> Story:
    """Return a story whose workloads have ladders, unless their pods select what few rungs are."""
    chance = Chance(f"ladders {story.seed}")
    settings = with_ladders(story.settings, story.seed)
    spot = SPOT in settings.policy.everyone.capacity
    jobsets = tuple(_on_a_ladder(chance, plot if spot else remade(plot, spot=False)) for plot in story.jobsets)
    shortages = tuple(_shortage(chance, number, story.minutes) for number in range(chance.between(1, 4, "shortages")))
    return replace(story, settings=settings, jobsets=jobsets, faults=(*story.faults, *shortages))


def with_ladders(settings: ClusterSettings, seed: int) -> ClusterSettings:
    """Return the settings of a cluster with the ladders of a seed, one of them that of a namespace."""
    chance = Chance(f"ladders {seed}")
    first, second = DEFAULTS
    kinds = (LIST, FLEX, SPOT) if chance.happens(0.8, "policy") else (LIST, FLEX)
    everyone = replace(settings.policy.everyone, capacity=kinds)
    places = {name: place for name, place in PLACES.items() if place.capacity is not FLEX or not settings.self_managed}
    return replace(
        settings,
        places=places,
        ladders={name: _ladder(chance, name, places) for name in DEFAULTS},
        ladder=first,
        namespaces={"vision": NamespaceSettings(ladder=second)},
        catalogue=CatalogueSettings(prices=tuple(_price(kind) for kind in PRICES)),
        policy=replace(settings.policy, everyone=everyone),
    )


def _price(kind: CapacityKind) -> Cells:
    row = {"accelerator": "tpu-v6e-slice", "region": "us-central2", "kind": kind.lower()}
    cells = {**row, "usd_per_chip_hour": str(PRICES[kind]), "read": "2026-11-01", "source": "a contract"}
    return tuple(cells.items())


def _ladder(chance: Chance, name: str, places: Iterable[str]) -> Ladder:
    """Return a ladder of two to four places, the last of which is for whoever asks."""
    names = [place for place in places if chance.happens(0.4, name, place)][:3]
    last = chance.pick(LAST, name, "last")
    first = [place for place in names if place != last] or [place for place in LAST if place != last]
    rungs = [
        Rung(
            place=place,
            lasts=chance.pick(TIMES, name, place, "for"),
            most_usd_an_hour=chance.pick(MOST, name, place, "most")
            if chance.happens(0.2, name, place, "most?")
            else None,
        )
        for place in sorted(first, key=lambda place: chance.of(name, place, "order"))
    ]
    return Ladder(
        rungs=(*rungs, Rung(place=last, lasts=chance.pick(TIMES, name, "last for"))),
        zones=chance.pick((ZonesOf.ONE, ZonesOf.ONE, ZonesOf.ANY), name, "zones"),
    )


def _on_a_ladder(chance: Chance, plot: Plot) -> Plot:
    """Return a workload on a ladder: its own, or that which the settings say; whose pods select more has none."""
    if is_flex_start(plot) or is_spot(plot) or chance.happens(0.1, plot.name, "none"):
        return remade(plot, ladder=NO_LADDER)
    named = chance.pick(DEFAULTS, plot.name, "ladder") if chance.happens(0.3, plot.name, "named") else ""
    return remade(plot, ladder=named, tolerates=chance.happens(0.8, plot.name, "tolerates"))


def _shortage(chance: Chance, number: int, minutes: int) -> Fault:
    return Fault(
        kind=chance.pick((Kind.STOCKOUT, Kind.STOCKOUT, Kind.QUOTA), "what", number),
        at=chance.between(0, minutes - 10, "from", number),
        lasts=chance.pick((20, 60, 120, 200), "lasts", number),
        zones=chance.pick(((B,), (C,), (B, C)), "zones", number),
        capacity=chance.pick((SPOT, SPOT, LIST), "capacity", number),
        hosts=chance.pick((1, 1, 4, 8), "hosts", number),
    )

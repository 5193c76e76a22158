"""The spares of a cluster as operators write them, and what is wrong with them.

spares:
- {accelerator: tpu-v6e-slice, topology: 4x4, place: booked, count: 2, for: [research]}
spares_most_usd_an_hour: 300
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from tpu_slices.domain.capacity.seats import planned
from tpu_slices.domain.capacity.spares import MOST_SPARES, seats_of
from tpu_slices.domain.model.capacity import Spare
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import CapacityKind
from tpu_slices.domain.planning.ladders import meant
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.wire.documents import Fields, native
from tpu_slices.wire.forms.written import WrittenForm, setting

_Namespace = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]


class SpareForm(WrittenForm):
    accelerator: str = Field(description="an accelerator such as tpu-v6e-slice", min_length=1)
    topology: str = Field(description="a topology such as 4x4", min_length=1)
    place: str = Field(description="the name of one of the places")
    count: int = Field(description=f"a whole number from 1 to {MOST_SPARES}", ge=1, le=MOST_SPARES)
    for_: list[_Namespace] = Field(alias="for", description="a list of namespaces", min_length=1)
    node_selector: dict[str, str] | None = setting("a map of node labels that the pods select")


def spares_of(written: Sequence[SpareForm] | None) -> tuple[Spare, ...]:
    return tuple(
        Spare(
            accelerator=each.accelerator,
            topology=each.topology,
            place=each.place,
            count=each.count,
            namespaces=tuple(dict.fromkeys(each.for_)),
            node_selector=tuple(sorted((each.node_selector or {}).items())),
        )
        for each in written or ()
    )


def written_spares(spares: Sequence[Spare]) -> list[Fields]:
    """Return spares as the form reads them."""

    def spare(each: Spare) -> Fields:
        document: Fields = native(each)
        return {"for": document.pop("namespaces"), **document, "node_selector": dict(each.node_selector)}

    return [spare(each) for each in spares]


def impossible_spares(settings: ClusterSettings) -> Iterator[str]:
    """Yield what is wrong with the spares of settings: the field, and the remedy."""
    wrong = [f"spares.{number}{why}" for number, each in enumerate(settings.spares) for why in _wrong(each, settings)]
    yield from wrong
    asked = sum(each.count * len(each.namespaces) for each in settings.spares)
    if asked > MOST_SPARES:
        yield f"spares: {asked} in all, count times namespaces: at most {MOST_SPARES} are kept, lower a count"
    if not wrong and len(seats_of(settings)) < asked and settings.retired is None:
        yield "spares: two ask for the same in one namespace: add their counts up"
    if settings.spares_most_usd_an_hour is not None and not settings.spares:
        yield "spares_most_usd_an_hour: there are no spares: name some, or remove it"


def _wrong(spare: Spare, settings: ClusterSettings) -> Iterator[str]:
    place = settings.places.get(spare.place)
    if place is None:
        yield f'.place: "{spare.place}" is no place: {meant(spare.place, settings.places)}'
        return
    if place.capacity is CapacityKind.FLEX_START:
        yield f".place: flex-start hosts of {spare.place} leave by themselves: name another place"
    if len(place.zones) > 1:
        yield f".place: {spare.place} has {len(place.zones)} zones: name a place of one zone"
    if place.capacity is CapacityKind.FLEX_START or len(place.zones) != 1:
        return
    seats = seats_of(replace(settings, spares=(replace(spare, count=1),), retired=None)).values()
    for why in dict.fromkeys(spec.message for seat in seats if isinstance(spec := planned(seat, settings), Refusal)):
        yield f": {why.rstrip('.')}"

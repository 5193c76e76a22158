"""The places and ladders of a cluster as operators write them, and what is wrong with them.

places:
booked: {capacity: reservation, reservation: hall-7, zone: us-east5-b}
spot: {capacity: spot, zones: [us-east5-a, us-east5-b]}
flex: {capacity: flex-start, zone: us-east5-a, max_run: 3d}
list: {capacity: on-demand, zone: us-east5-b}
ladders:
patient:
rungs: [{place: booked, for: 2h}, {place: spot, for: 40m}, {place: flex, for: 6h}, {place: list}]
ladder: patient
namespaces:
research: {ladder: patient}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from tpu_slices.domain.model.capacity import NO_LADDER, Ladder, Place, Rung, ZonesOf
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import CapacityKind
from tpu_slices.domain.model.texts import as_duration
from tpu_slices.domain.planning.flex_start import LONGEST, SHORTEST
from tpu_slices.domain.planning.ladders import MOST_RUNGS, meant
from tpu_slices.domain.planning.obstacles import DoesNotFit
from tpu_slices.domain.planning.zones import checked
from tpu_slices.wire.documents import Fields, native
from tpu_slices.wire.forms.written import Duration, WrittenForm, setting

Name = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
_Zone = Annotated[str, Field(pattern=r"^[a-z]+-[a-z]+\d+-[a-z0-9]+$")]
_RunDuration = Annotated[timedelta, BeforeValidator(as_duration), Field(ge=SHORTEST, le=LONGEST)]
_Capacity = Annotated[CapacityKind, BeforeValidator(lambda value: CapacityKind(str(value).upper().replace("-", "_")))]
_ZonesOf = Annotated[ZonesOf, BeforeValidator(lambda value: ZonesOf(str(value)))]


class PlaceForm(WrittenForm):
    capacity: _Capacity = Field(
        description=f"one of {', '.join(kind.lower().replace('_', '-') for kind in CapacityKind)}"
    )
    reservation: str | None = setting("a name or projects/P/reservations/R", min_length=1)
    zone: _Zone | None = setting("the name of a zone, such as us-central2-b; or zones")
    zones: list[_Zone] | None = setting("a list of names of zones, such as us-central2-b; or zone", min_length=1)
    max_run: _RunDuration | None = setting("how long flex-start hosts run, such as 12h or 7d, from 10m to 7d")


class RungForm(WrittenForm):
    place: str = Field(description="the name of one of the places")
    lasts: Duration | None = Field(default=None, alias="for", description="seconds, or text such as 40m or 2h")
    most_usd_an_hour: float | None = setting("a number of US dollars, above 0", gt=0, strict=False)


class LadderForm(WrittenForm):
    rungs: list[RungForm] = Field(description=f"a list of 1 to {MOST_RUNGS} maps of place, for and most_usd_an_hour")
    zones: _ZonesOf | None = setting("one or any")


def places_of(written: Mapping[str, PlaceForm] | None) -> Mapping[str, Place]:
    return {
        name: Place(
            capacity=each.capacity,
            zones=(*([each.zone] if each.zone else []), *(each.zones or ())),
            reservation=each.reservation,
            max_run=each.max_run,
        )
        for name, each in (written or {}).items()
    }


def ladders_of(written: Mapping[str, LadderForm] | None) -> Mapping[str, Ladder]:
    return {
        name: Ladder(rungs=tuple(Rung(**rung.given()) for rung in each.rungs), zones=each.zones or ZonesOf.ONE)
        for name, each in (written or {}).items()
    }


def written_ladders(ladders: Mapping[str, Ladder]) -> Fields:
    """Return ladders as the form reads them."""

    def rung(each: Rung) -> Fields:
        given: dict[str, Any] = native(each)
        return {"for": given.pop("lasts"), **given}

    return {
        name: {"rungs": [rung(each) for each in ladder.rungs], "zones": ladder.zones.value}
        for name, ladder in ladders.items()
    }


def impossible_ladders(settings: ClusterSettings) -> Iterator[str]:
    """Yield what is wrong with the places and the ladders of settings: the field, and the remedy."""
    for name, place in settings.places.items():
        yield from (f"places.{name}.{why}" for why in _wrong(place, settings))
    for name, ladder in settings.ladders.items():
        unknown = [each.place for each in ladder.rungs if each.place not in settings.places]
        for each in unknown:
            yield f'ladders.{name}.rungs: "{each}" is no place: {meant(each, settings.places)}'
        count = sum(len(settings.places[each.place].zones) for each in ladder.rungs if each.place in settings.places)
        if not len(ladder.rungs) >= 1 or count > MOST_RUNGS:
            yield f"ladders.{name}.rungs: has {count} rungs, each zone counted: name 1 to {MOST_RUNGS}"
        if name == NO_LADDER:
            yield f'ladders.{name}: "{NO_LADDER}" means none: give it another name'
    named = [("ladder", settings.ladder)]
    named += [(f"namespaces.{name}.ladder", each.ladder) for name, each in settings.namespaces.items()]
    for field, ladder_name in named:
        if ladder_name is not None and ladder_name not in {*settings.ladders, NO_LADDER}:
            yield f'{field}: "{ladder_name}" is no ladder: {meant(ladder_name, settings.ladders)}'


def _wrong(place: Place, settings: ClusterSettings) -> Iterator[str]:
    reserved, flex = place.capacity is CapacityKind.RESERVATION, place.capacity is CapacityKind.FLEX_START
    if reserved and place.reservation is None:
        yield "reservation: Required value: name the reservation, or choose another capacity"
    if not reserved and place.reservation is not None:
        yield "reservation: only capacity: reservation has one: remove it, or change the capacity"
    if not flex and place.max_run is not None:
        yield "max_run: only capacity: flex-start has one: remove it, or change the capacity"
    if flex and settings.self_managed:
        yield "capacity: in a self-managed cluster there is no flex-start: choose another"
    if not place.zones:
        yield "zone: Required value: name a zone, or several with zones"
    if reserved and len(place.zones) > 1:
        yield "zones: a reservation is in one zone: name that with zone"
    for zone, times in Counter(place.zones).items():
        if times > 1:
            yield f"zones: {zone} is named {times} times: name it once"
        try:
            checked(zone, f'zone: "{zone}"', settings)
        except DoesNotFit as no:
            yield str(no)

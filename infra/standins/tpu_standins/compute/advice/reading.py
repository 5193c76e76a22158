"""`advice.calendarMode`: state and call in, one of Google's messages or a refusal out. Pure.

| a zone of the region that the request allows          | its status          |
|-------------------------------------------------------|---------------------|
| offers no machines of the family                      | NOT_SUPPORTED       |
| any, if the times are none that can be booked         | CONDITIONS_NOT_MET  |
| has fewer chips, or has them later than is asked      | NO_CAPACITY         |
| has them, and another zone has them earlier           | RECOMMENDED         |
| has them first                                        | it is the location  |

The meanings are those of the client library [py-gce FutureResourcesRecommendationOtherLocation]; that the first time is
recommended, for the shortest duration, is ours.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from google.cloud.compute_v1 import types as gce

from tpu_standins.compute.errors import Refusal, invalid, not_implemented
from tpu_standins.compute.paths import region_of, timestamp
from tpu_standins.compute.reserved import Offer
from tpu_standins.compute.routes import Call
from tpu_standins.compute.state import State

_DAY = 86_400.0
_SHORTEST, _LONGEST, _AHEAD = _DAY, 90 * _DAY, 120 * _DAY
"""A booking lasts 1 to 90 days, and begins within 120 days [doc:calendar-mode-reservation]."""
_RESOURCE = "futureResourcesSpecs"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    zones: tuple[str, ...]
    vm_family: str
    chips: int
    earliest: float
    latest: float
    shortest: float
    longest: float


class _RefusedError(Exception):
    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def calendar_mode(state: State, call: Call, now: float) -> Any:
    """Return where and when what is asked for could be booked."""
    specs: Mapping[str, Any] = call.body.future_resources_specs
    if len(specs) != 1:
        return invalid(_RESOURCE, f"{len(specs)} entries", "Exactly one is allowed.", "one-spec")
    ((name, spec),) = specs.items()
    try:
        asked = _read(spec, state, call.target.scope.removeprefix("regions/"))
    except _RefusedError as refused:
        return refused.refusal
    advice = _advised(state, asked, now)
    return gce.CalendarModeAdviceResponse(
        recommendations=[gce.CalendarModeRecommendation(recommendations_per_spec={name: advice})]
    )


def _read(spec: Any, state: State, region: str) -> _Asked:
    """Return what a specification asks for. Raise _RefusedError if it lacks something, or contradicts itself."""
    resources, times = spec.target_resources, spec.time_range_spec
    if "specific_sku_resources" in resources:
        raise _RefusedError(not_implemented("advice.calendarMode for specificSkuResources"))
    total = resources.aggregate_resources
    if not total.vm_family or total.accelerator_count <= 0:
        where = f"{_RESOURCE}.targetResources.aggregateResources"
        raise _RefusedError(invalid(where, "", "vmFamily and acceleratorCount are required.", "no-resources"))
    asked = _Asked(
        zones=tuple(_zones(spec.location_policy.locations, state, region)),
        vm_family=total.vm_family,
        chips=total.accelerator_count,
        earliest=_time(times, "start_time_not_earlier_than", "startTimeNotEarlierThan"),
        latest=_time(times, "start_time_not_later_than", "startTimeNotLaterThan"),
        shortest=_seconds(times, "min_duration", "minDuration"),
        longest=_seconds(times, "max_duration", "maxDuration"),
    )
    if asked.earliest > asked.latest or asked.shortest > asked.longest:
        raise _RefusedError(invalid(f"{_RESOURCE}.timeRangeSpec", "", "No interval matches it.", "contradictory-times"))
    return asked


def _zones(locations: Mapping[str, Any], state: State, region: str) -> Iterator[str]:
    """Yield the zones of the region that are not denied. Raise _RefusedError for one that is not of it."""
    zones = sorted(zone for zone in state.zones if region_of(zone) == region)
    for key in locations:
        if key.removeprefix("zones/") not in zones or not key.startswith("zones/"):
            raise _RefusedError(invalid(f"{_RESOURCE}.locationPolicy.locations", key, "Unknown zone.", "unknown-zone"))
    denied = {key for key, each in locations.items() if each.preference == "DENY"}
    yield from (zone for zone in zones if f"zones/{zone}" not in denied)


def _time(times: Any, field: str, name: str) -> float:
    text = getattr(times, field)
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError as error:
        why = "A timestamp of RFC 3339 is required."
        raise _RefusedError(invalid(f"{_RESOURCE}.timeRangeSpec.{name}", text, why, "times")) from error


def _seconds(times: Any, field: str, name: str) -> float:
    text = getattr(times, field)
    found = re.fullmatch(r"(\d+(?:\.\d{1,9})?)s", text)
    if found is None:
        why = "A duration such as 86400s is required."
        raise _RefusedError(invalid(f"{_RESOURCE}.timeRangeSpec.{name}", text, why, "durations"))
    return float(found[1])


def _advised(state: State, asked: _Asked, now: float) -> gce.FutureResourcesRecommendation:
    offers = {each.zone: each for each in state.offers if each.vm_family == asked.vm_family}
    status = {zone: _status(offers.get(zone), asked, now) for zone in asked.zones}
    having = [offers[zone] for zone, each in status.items() if each == "RECOMMENDED"]
    best = min(having, key=lambda each: (max(each.starts, asked.earliest), each.zone)) if having else None
    advice = gce.FutureResourcesRecommendation(
        recommendation_id=str(uuid5(NAMESPACE_URL, repr(asked))),
        recommendation_type="FUTURE_RESERVATION",
        other_locations={
            f"zones/{zone}": gce.FutureResourcesRecommendationOtherLocation(status=each)
            for zone, each in status.items()
            if best is None or zone != best.zone
        },
    )
    if best is not None:
        starts = max(best.starts, asked.earliest)
        advice.location = f"zones/{best.zone}"
        advice.start_time, advice.end_time = timestamp(starts), timestamp(starts + asked.shortest)
    return advice


def _status(offer: Offer | None, asked: _Asked, now: float) -> str:
    if offer is None:
        return "NOT_SUPPORTED"
    if asked.shortest < _SHORTEST or asked.longest > _LONGEST or asked.latest > now + _AHEAD:
        return "CONDITIONS_NOT_MET"
    return "NO_CAPACITY" if offer.chips < asked.chips or offer.starts > asked.latest else "RECOMMENDED"

"""The advice on bookings as Compute Engine's REST API has it: what is asked for, and what is answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from tpu_slices.domain.model.bookings import BookingAdvice, BookingAsked

_SPEC = "slices"
"""Our name of the one specification that a request may have."""

Json = Mapping[str, Any]


def body_of(asked: BookingAsked) -> Json:
    """Return the body of the request."""
    seconds = f"{int(asked.lasts.total_seconds())}s"
    resources = {"vmFamily": asked.vm_family, "acceleratorCount": str(asked.chips)}
    if asked.workload_type:
        resources["workloadType"] = asked.workload_type
    spec = {
        "locationPolicy": {"locations": {**_prefer(asked.zones, "ALLOW"), **_prefer(asked.denied, "DENY")}},
        "targetResources": {"aggregateResources": resources},
        "timeRangeSpec": {
            "startTimeNotEarlierThan": asked.not_before.isoformat(timespec="seconds"),
            "startTimeNotLaterThan": asked.not_after.isoformat(timespec="seconds"),
            "minDuration": seconds,
            "maxDuration": seconds,
        },
    }
    return {"futureResourcesSpecs": {_SPEC: spec}}


def advice_of(answer: Json) -> BookingAdvice:
    """Return what an answer advises: the earliest of what it recommends. Raise ValueError: it is of another form."""
    try:
        found = [_advice(each["recommendationsPerSpec"][_SPEC]) for each in answer.get("recommendations", ())]
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"an answer of an unknown form: {error!r}") from error
    if not found:
        return BookingAdvice(unknown="Compute Engine has no advice on it")
    return min(found, key=lambda each: (each.starts_at is None, each.starts_at or datetime.max.replace(tzinfo=UTC)))


def _advice(spec: Json) -> BookingAdvice:
    others = spec.get("otherLocations", {})
    why = {zone.removeprefix("zones/"): str(each.get("status", "")) for zone, each in others.items()}
    if not spec.get("location"):
        return BookingAdvice(others=why)
    return BookingAdvice(
        zone=str(spec["location"]).removeprefix("zones/"),
        starts_at=datetime.fromisoformat(spec["startTime"]),
        ends_at=datetime.fromisoformat(spec["endTime"]),
        others=why,
    )


def _prefer(zones: Iterable[str], preference: str) -> Json:
    return {f"zones/{zone}": {"preference": preference} for zone in zones}

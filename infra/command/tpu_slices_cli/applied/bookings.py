"""When the slices of a plan could be booked in calendar mode, as Compute Engine advises: nothing is booked by it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tpu_slices.domain.capacity.bookings import LATEST, Grouped, bookings_for
from tpu_slices.domain.model.bookings import BookingAdvice, BookingAsked
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import Owner, SliceSpec, WorkloadJob
from tpu_slices.domain.model.texts import duration
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.ports.bookings import BookingAdviser
from tpu_slices.ports.errors import Permanent, Temporary

PlannedSlice = tuple[WorkloadJob, SliceSpec | Refusal, ClusterSettings]
Connect = Callable[[str], BookingAdviser | None]
"""Returns what advises on a project; None: nothing does here. Raises Temporary without credentials."""

MOST_FAILURES = 2
"""After so many questions that were not answered nothing more is asked."""
_WHY: Mapping[str, str] = {
    "NOT_SUPPORTED": "does not offer them",
    "NO_CAPACITY": "has no room then",
    "CONDITIONS_NOT_MET": "does not take such times",
    "RECOMMENDED": "has them later, or less likely",
}
"""What Compute Engine's words for a zone mean."""


class Asking:
    """Asks about each booking once, and no more after what failed: a plan never waits for long, and never fails."""

    def __init__(self, connect: Connect, lasts: timedelta, now: datetime) -> None:
        self._connect, self.lasts, self.now = connect, lasts, now
        self._answers: dict[BookingAsked, BookingAdvice] = {}
        self._failures: list[str] = []

    def advise(self, asked: BookingAsked) -> BookingAdvice:
        if asked not in self._answers:
            self._answers[asked] = self._asked(asked)
        return self._answers[asked]

    def _asked(self, asked: BookingAsked) -> BookingAdvice:
        if len(self._failures) >= MOST_FAILURES:
            return BookingAdvice(unknown=f"not asked after {MOST_FAILURES} failures: {self._failures[-1]}")
        try:
            adviser = self._connect(asked.project)
            if adviser is None:
                return BookingAdvice(unknown="there is no Compute Engine here")
            return adviser.advise(asked)
        except (Permanent, Temporary) as error:
            self._failures.append(str(error).rstrip("."))
            return BookingAdvice(unknown=str(error).rstrip("."))


def bookings_in(slices: Iterable[PlannedSlice], asking: Asking) -> tuple[Mapping[str, Any], ...]:
    """Return when the slices of each workload could be booked, in JSON: one for each accelerator and region."""
    found: dict[tuple[Owner, str], list[tuple[SliceSpec, ClusterSettings]]] = {}
    for job, spec, settings in slices:
        if isinstance(spec, SliceSpec):
            found.setdefault((job.owner, spec.accelerator), []).append((spec, settings))
    return tuple(
        each
        for (owner, _), made in found.items()
        for each in _of_workload(owner, Grouped(tuple(spec for spec, _ in made)), made[0][1], asking)
    )


def lines_of(bookings: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what people read of bookings."""
    for each in bookings:
        yield f"{each['kind']} {each['name']}: {_told(each)}"


@dataclass(frozen=True, slots=True)
class _Advised:
    asked: BookingAsked
    advice: BookingAdvice

    def as_json(self) -> Mapping[str, Any]:
        advice = self.advice
        return {
            "region": self.asked.region,
            "bookable_chips": self.asked.chips,
            "zones": [*self.asked.zones],
            "zone": advice.zone or None,
            "starts_at": advice.starts_at.isoformat() if advice.starts_at else None,
            "ends_at": advice.ends_at.isoformat() if advice.ends_at else None,
            "others": dict(advice.others),
            "unknown": advice.unknown or None,
        }


def _of_workload(
    owner: Owner, grouped: Grouped, settings: ClusterSettings, asking: Asking
) -> Iterator[Mapping[str, Any]]:
    shapes: dict[str, int] = {}
    for spec in grouped.specs:
        shapes[str(spec.topology)] = shapes.get(str(spec.topology), 0) + 1
    whose = {
        "kind": owner.kind.value,
        "name": owner.name,
        "namespace": owner.namespace,
        "accelerator": grouped.accelerator,
        "slices": [{"topology": topology, "count": count} for topology, count in shapes.items()],
        "chips": grouped.chips,
        "lasts": duration(asking.lasts),
        "not_bookable": grouped.not_bookable or None,
    }
    asked = bookings_for(grouped, settings, asking.lasts, asking.now)
    yield from ({**whose, **_Advised(each, asking.advise(each)).as_json()} for each in asked)
    if not asked:
        yield whose


def _told(booking: Mapping[str, Any]) -> str:
    if booking["not_bookable"]:
        return f"no booking: {booking['not_bookable']}."
    shapes = ", ".join(f"{each['count']} x {each['topology']}" for each in booking["slices"])
    chips, bookable = booking["chips"], booking["bookable_chips"]
    what = f"{bookable:,} chips" if bookable == chips else f"{bookable:,} chips, the least that holds {chips:,},"
    whole = f"{what} of {booking['accelerator']} ({shapes}) for {booking['lasts']}"
    others = [f"{zone} {_WHY.get(word, word)}" for zone, word in booking["others"].items() if zone in booking["zones"]]
    why = f": {', '.join(others)}" if others else ""
    if booking["unknown"]:
        return f"when {whole} could be booked in {booking['region']} is not known: {booking['unknown']}."
    if booking["zone"] is None:
        return f"no booking of {whole} is advised in {booking['region']} within {LATEST.days} days{why}."
    starts = datetime.fromisoformat(booking["starts_at"])
    return f"{whole} could be booked from {starts:%H:%M} UTC on {starts:%Y-%m-%d} in {booking['zone']}{why}."

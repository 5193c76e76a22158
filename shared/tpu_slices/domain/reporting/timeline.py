"""What slices did over time, and how their chips were used: spans, levels and chip-hours, derived from transitions."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby

from tpu_slices.domain.model.reasons import UNUSED, Phase, Reason
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.transitions import Transition


class Use(StrEnum):
    """How the chips of a slice are used in a span. None for GONE: no chips are requested then.

    | use      | phase                                | chips                                                       |
    |----------|--------------------------------------|-------------------------------------------------------------|
    | WAITING  | QUEUED, WAITING                      | requested; retried without action by anybody                |
    | STOPPED  | REFUSED, BLOCKED                     | requested; somebody must change something or release chips  |
    | STARTING | PROVISIONING                         | held, and the attempt became READY, or still may; also      |
    |          |                                      | while a slice that was READY gets its hosts back            |
    | IDLE     | PROVISIONING                         | held, and the attempt never became READY (again)            |
    | IDLE     | READY, LeaderStillWaiting            | held, and the leader pod could not be scheduled on them     |
    | IDLE     | RELEASING                            | held until they are released                                |
    | USEFUL   | READY, all other reasons             | held and usable                                             |
    | USEFUL   | RELEASING, Occupied                  | held; another live Job runs on them                         |

    An attempt begins with CreationStarted. A slice that its claim has no more stays on record, without a claim.
    """

    WAITING = "WAITING"
    STOPPED = "STOPPED"
    STARTING = "STARTING"
    IDLE = "IDLE"
    USEFUL = "USEFUL"


HELD = frozenset({Use.STARTING, Use.IDLE, Use.USEFUL})

Totals = Mapping[Use, timedelta]
"""Chips x time: a timedelta of one hour is one chip-hour."""

_Change = tuple[datetime, Use | None, int]  # from this time on, the chips of this use change by this number


@dataclass(frozen=True, slots=True)
class Window:
    """The time from `since` (inclusive) to `until` (exclusive)."""

    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The part within the window of a time in which neither phase nor reason changed."""

    start: datetime
    end: datetime
    transition: Transition
    """The transition that it began with, which may lie before the window."""
    use: Use | None
    chips: int
    """The chips that the slice requests now; earlier requests are not on record."""

    @property
    def chip_time(self) -> timedelta:
        return self.chips * (self.end - self.start)

    @property
    def begins_inside(self) -> bool:
        return self.transition.at >= self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What one slice did in the window: consecutive spans, including those of GONE."""

    record: SliceRecord
    spans: tuple[Span, ...]
    forgotten: int
    """The number of earlier transitions that are no longer on record; 0 if the record covers the window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The number of chips of each use from a time on, until the next level."""

    at: datetime
    waiting: int
    held: int
    useful: int


def course(record: SliceRecord, window: Window) -> Course | None:
    """Return what a slice did in the window, or None if it did not exist or was GONE all the time."""
    spans = tuple(_spans(record, window))
    if all(span.use is None and not span.begins_inside for span in spans):
        return None
    forgotten = max(0, record.transition_count - len(record.transitions))
    cut_within = forgotten and record.transitions[0].at >= window.since
    return Course(record=record, spans=spans, forgotten=forgotten if cut_within else 0)


def _spans(record: SliceRecord, window: Window) -> Iterator[Span]:
    history = _history(record)
    ends = [*(transition.at for transition in history[1:]), window.until]
    latest = window.since
    for transition, use, end in zip(history, _uses(history), ends, strict=True):
        start, latest = max(latest, transition.at), max(latest, min(end, window.until))
        if start < latest:
            chips = record.made_as.chips if record.made_as else 0
            yield Span(start=start, end=latest, transition=transition, use=use, chips=chips)


def _history(record: SliceRecord) -> tuple[Transition, ...]:
    """Return the transitions on record, preceded by the creation of the record if its first transition is kept."""
    kept = record.transitions
    if not kept:
        return (_transition(record.created_at, record.phase, record.reason, record.message),)
    if record.transition_count > len(kept) or kept[0].at <= record.created_at:
        return kept
    return (_transition(record.created_at, Phase.QUEUED, Reason.REQUESTED, "Slice requested."), *kept)


def _transition(at: datetime, phase: Phase, reason: Reason, message: str) -> Transition:
    return Transition(at=at, phase=phase, reason=reason, message=message)


def _uses(history: tuple[Transition, ...]) -> list[Use | None]:
    """Return the use of each transition; PROVISIONING is IDLE unless its attempt became READY later, or still may."""
    uses: list[Use | None] = []
    provisioning = Use.STARTING
    for transition in reversed(history):
        uses.append(provisioning if transition.phase is Phase.PROVISIONING else _use(transition))
        if transition.phase is not Phase.PROVISIONING:
            provisioning = Use.STARTING if transition.phase is Phase.READY else Use.IDLE
        elif transition.reason is Reason.CREATION_STARTED:
            provisioning = Use.IDLE
    return uses[::-1]


def _use(transition: Transition) -> Use | None:
    match transition.phase:
        case Phase.QUEUED | Phase.WAITING:
            return Use.WAITING
        case Phase.REFUSED | Phase.BLOCKED:
            return Use.STOPPED
        case Phase.READY:
            return Use.IDLE if transition.reason in UNUSED else Use.USEFUL
        case Phase.RELEASING:
            return Use.USEFUL if transition.reason is Reason.OCCUPIED else Use.IDLE
        case _:
            return None


def totals(courses: Iterable[Course]) -> Totals:
    """Return the sums of chips x time by use."""
    sums = dict.fromkeys(Use, timedelta())
    for each in courses:
        for span in each.spans:
            if span.use is not None:
                sums[span.use] += span.chip_time
    return sums


def held(sums: Totals) -> timedelta:
    return sum((sums[use] for use in HELD), timedelta())


def levels(courses: Iterable[Course]) -> tuple[Level, ...]:
    """Return the chips over time: one level for each time at which a count changes, the last one all zero."""
    changes = heapq.merge(*(_changes(each) for each in courses), key=lambda change: change[0])
    counts = (0, 0, 0)
    found: list[Level] = []
    for at, together in groupby(changes, key=lambda change: change[0]):
        before, counts = counts, _counted(counts, together)
        if counts != before:
            waiting, held_, useful = counts
            found.append(Level(at=at, waiting=waiting, held=held_, useful=useful))
    return tuple(found)


def _counted(counts: tuple[int, int, int], changes: Iterable[_Change]) -> tuple[int, int, int]:
    waiting, held_, useful = counts
    for _, use, chips in changes:
        waiting += chips if use is Use.WAITING else 0
        held_ += chips if use in HELD else 0
        useful += chips if use is Use.USEFUL else 0
    return waiting, held_, useful


def _changes(each: Course) -> Iterator[_Change]:
    for span in each.spans:
        yield span.start, span.use, span.chips
        yield span.end, span.use, -span.chips

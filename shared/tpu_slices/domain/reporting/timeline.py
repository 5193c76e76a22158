"""What slices did over time, and what their chips were good for: spans, levels and chip-hours from transitions."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby

from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.records import Phase, SliceRecord, Transition


class Use(StrEnum):
    """What the chips of a slice are good for at a time. Every span has one, except GONE: nothing is asked for then.

    | use      | phase                                | chips                                                       |
    |----------|--------------------------------------|-------------------------------------------------------------|
    | WAITING  | QUEUED, WAITING                      | asked for; something is going to happen by itself           |
    | STOPPED  | REFUSED, BLOCKED                     | asked for; somebody must change something, or give way      |
    | STARTING | PROVISIONING                         | held, and the attempt became READY, or still may; so too    |
    |          |                                      | where a slice that was READY got its hosts back             |
    | VAIN     | PROVISIONING                         | held, and the attempt never became READY (again)            |
    | VAIN     | READY, LeaderStillWaiting            | held, and the leader could not be scheduled on them         |
    | VAIN     | RELEASING                            | held until they are given back                              |
    | USEFUL   | READY, all other reasons             | held; serve                                                 |
    | USEFUL   | RELEASING, Occupied                  | held; another live Job runs on them                         |

    An attempt begins with CreationStarted. Transitions know of the current attempt only: the pool of an earlier one
    that is being deleted while the slice already waits for the next is in none of these.
    """

    WAITING = "WAITING"
    STOPPED = "STOPPED"
    STARTING = "STARTING"
    VAIN = "VAIN"
    USEFUL = "USEFUL"


HELD = frozenset({Use.STARTING, Use.VAIN, Use.USEFUL})

Totals = Mapping[Use, timedelta]
"""Chips x time: a timedelta of one hour is one chip-hour."""

_Change = tuple[datetime, Use | None, int]  # from then on, so many chips more or less are of this use


@dataclass(frozen=True, slots=True)
class Window:
    """From `since` on, and before `until`."""

    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of time in which neither phase nor reason changed, as far as it lies in the window."""

    start: datetime
    end: datetime
    transition: Transition
    """What it began with, which may have been before the window."""
    use: Use | None
    chips: int
    """Chips that the slice asks for now; what it asked for earlier is not on record."""

    @property
    def chip_time(self) -> timedelta:
        return self.chips * (self.end - self.start)

    @property
    def begins_inside(self) -> bool:
        return self.transition.at >= self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What one slice did in the window: spans that follow each other, those of GONE too."""

    record: SliceRecord
    spans: tuple[Span, ...]
    forgotten: int
    """How many changes before the first span are on record no more; 0 where the window begins later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """How many chips there were from a moment on, until the next level."""

    at: datetime
    waiting: int
    held: int
    useful: int


def course(record: SliceRecord, window: Window) -> Course | None:
    """Give what a slice did in the window; None where it was not there, or gone all the time."""
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
            chips = record.spec.chips if record.spec else 0
            yield Span(start=start, end=latest, transition=transition, use=use, chips=chips)


def _history(record: SliceRecord) -> tuple[Transition, ...]:
    """Give the transitions on record, and before the first there ever was, the time since the slice was heard of."""
    kept = record.transitions
    if not kept:
        return (_transition(record.created_at, record.phase, record.reason, record.message),)
    if record.transition_count > len(kept) or kept[0].at <= record.created_at:
        return kept
    return (_transition(record.created_at, Phase.QUEUED, Reason.WANTED, "Heard of."), *kept)


def _transition(at: datetime, phase: Phase, reason: Reason, message: str) -> Transition:
    return Transition(at=at, phase=phase, reason=reason, message=message)


def _uses(history: tuple[Transition, ...]) -> list[Use | None]:
    """Judge each by what came after it: PROVISIONING is in vain unless its attempt became READY, or still may."""
    uses: list[Use | None] = []
    provisioning = Use.STARTING
    for transition in reversed(history):
        uses.append(provisioning if transition.phase is Phase.PROVISIONING else _use(transition))
        if transition.phase is not Phase.PROVISIONING:
            provisioning = Use.STARTING if transition.phase is Phase.READY else Use.VAIN
        elif transition.reason is Reason.CREATION_STARTED:
            provisioning = Use.VAIN
    return uses[::-1]


def _use(transition: Transition) -> Use | None:
    match transition.phase:
        case Phase.QUEUED | Phase.WAITING:
            return Use.WAITING
        case Phase.REFUSED | Phase.BLOCKED:
            return Use.STOPPED
        case Phase.READY:
            return Use.VAIN if transition.reason is Reason.LEADER_STILL_WAITING else Use.USEFUL
        case Phase.RELEASING:
            return Use.USEFUL if transition.reason is Reason.OCCUPIED else Use.VAIN
        case _:
            return None


def totals(courses: Iterable[Course]) -> Totals:
    """Sum up chips x time by use."""
    sums = dict.fromkeys(Use, timedelta())
    for each in courses:
        for span in each.spans:
            if span.use is not None:
                sums[span.use] += span.chip_time
    return sums


def held(sums: Totals) -> timedelta:
    return sum((sums[use] for use in HELD), timedelta())


def levels(courses: Iterable[Course]) -> tuple[Level, ...]:
    """Give the chips over time: one level for each moment at which a count changes, the last one all zero."""
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

"""What slices did over time, and how their chips were used, as records have it: spans, levels and chip-hours."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby

from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import Capacity, SliceSpec
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.transitions import Transition
from tpu_slices.domain.records.usage import HELD, MOST_USAGES, BilledAs, Use

Totals = Mapping[Use, timedelta]
"""Chips x time: a timedelta of one hour is one chip-hour."""

_Change = tuple[datetime, Use, int]  # from this time on, the chips of this use change by this number


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

    @property
    def begins_inside(self) -> bool:
        return self.transition.at >= self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The part within the window of a time in which the chips were used alike."""

    start: datetime
    end: datetime
    use: Use
    chips: int
    billed_as: BilledAs | None = None

    def within(self, span: Span) -> timedelta:
        """Return the chips x time of the part that lies in a span."""
        return self.chips * max(timedelta(), min(self.end, span.end) - max(self.start, span.start))


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What one slice did in the window: consecutive spans, including those of GONE."""

    record: SliceRecord
    spans: tuple[Span, ...]
    spent: tuple[Spent, ...]
    """Those of slices that its claim had before may overlap."""
    forgotten: int
    """The number of earlier transitions that are no longer on record; 0 if the record covers the window."""
    uncounted: bool
    """Whether earlier usages in the window are no longer on record."""

    @property
    def held_as(self) -> Mapping[SliceSpec, timedelta]:
        """Return the chips x time that were held, by what the hosts were made as."""
        spec, sums = self.record.made_as, dict[SliceSpec, timedelta]()
        for each in self.spent if spec is not None else ():
            if each.use in HELD and spec is not None:
                made_as = _as_billed(spec, each.billed_as)
                sums[made_as] = sums.get(made_as, timedelta()) + each.chips * (each.end - each.start)
        return sums

    def totals(self, span: Span) -> Totals:
        """Return the sums of chips x time by use in a span."""
        return _summed((each.use, each.within(span)) for each in self.spent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The number of chips of each use from a time on, until the next level."""

    at: datetime
    waiting: int
    held: int
    useful: int


def course(record: SliceRecord, window: Window) -> Course | None:
    """Return what a slice did in the window, or None if nothing of it is on record, or it was GONE all the time."""
    spans, spent = tuple(_spans(record, window)), tuple(_spent(record, window))
    stood = any(span.transition.phase is not Phase.GONE or span.begins_inside for span in spans)
    if not spans or not (spent or stood):
        return None
    forgotten = max(0, record.transition_count - len(record.transitions))
    cut_within = forgotten and record.transitions[0].at >= window.since
    full = len(record.usages) == MOST_USAGES
    return Course(
        record=record,
        spans=spans,
        spent=spent,
        forgotten=forgotten if cut_within else 0,
        uncounted=full and record.usages[0].since > max(record.created_at, window.since),
    )


def _spans(record: SliceRecord, window: Window) -> Iterator[Span]:
    history = _history(record)
    ends = [*(transition.at for transition in history[1:]), window.until]
    latest = window.since
    for transition, end in zip(history, ends, strict=True):
        start, latest = max(latest, transition.at), max(latest, min(end, window.until))
        if start < latest:
            yield Span(start=start, end=latest, transition=transition)


def _spent(record: SliceRecord, window: Window) -> Iterator[Spent]:
    for each in record.usages:
        start, end = max(each.since, window.since), min(each.until or window.until, window.until)
        if start < end:
            yield Spent(start=start, end=end, use=each.use, chips=each.chips, billed_as=each.billed_as)


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


def _as_billed(spec: SliceSpec, billed_as: BilledAs | None) -> SliceSpec:
    """Return a spec as it was made at the place where it was billed."""
    if billed_as is None or (spec.capacity.kind, spec.zone) == (billed_as.capacity, billed_as.zone):
        return spec
    return replace(spec, capacity=Capacity(billed_as.capacity), zone=billed_as.zone)


def totals(courses: Iterable[Course]) -> Totals:
    """Return the sums of chips x time by use."""
    return _summed((each.use, each.chips * (each.end - each.start)) for it in courses for each in it.spent)


def _summed(spent: Iterable[tuple[Use, timedelta]]) -> Totals:
    sums = dict.fromkeys(Use, timedelta())
    for use, chip_time in spent:
        sums[use] += chip_time
    return sums


def held(sums: Totals) -> timedelta:
    return sum((sums[use] for use in HELD), timedelta())


def levels(courses: Iterable[Course]) -> tuple[Level, ...]:
    """Return the chips over time: one level for each time at which a count changes, the last one all zero."""
    changes = heapq.merge(*(sorted(_changes(each)) for each in courses), key=lambda change: change[0])
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
    for spent in each.spent:
        yield spent.start, spent.use, spent.chips
        yield spent.end, spent.use, -spent.chips

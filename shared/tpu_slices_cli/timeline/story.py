"""What a timeline tells: the slices of a window by JobSet, and each fact in words, for chart and lists alike."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from itertools import groupby

from tpu_slices.domain.model.slices import ClusterId, SliceId, WorkloadJob, WorkloadUid
from tpu_slices.domain.reporting.timeline import Course, Level, Span, Totals, Use, Window, held, levels, totals
from tpu_slices_cli.words import clock

MOST_SHOWN = 200
"""Slices that are drawn and listed one by one; a page with more would neither load nor be read."""
MOST_LEVELS = 300
"""Rows of the table of chips over time."""

USES = {
    Use.WAITING: ("waiting", "asked for and not there yet: QUEUED or WAITING"),
    Use.STOPPED: ("stopped", "asked for, and nothing comes by itself: REFUSED or BLOCKED"),
    Use.STARTING: ("getting ready", "held: PROVISIONING that became READY, or still may"),
    Use.VAIN: (
        "in vain",
        "held for nothing: PROVISIONING that never became READY, READY that no leader could use, RELEASING",
    ),
    Use.USEFUL: ("useful", "held and serving: READY, and RELEASING while another live Job runs on the hosts"),
}
_HOUR = timedelta(hours=1)
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The slices of one JobSet."""

    title: str
    uid: WorkloadUid
    courses: tuple[Course, ...]
    totals: Totals


@dataclass(frozen=True, kw_only=True)
class Story:
    """All that a page tells. `whose` says in words what was asked for."""

    whose: str
    window: Window
    families: tuple[Family, ...]

    @cached_property
    def courses(self) -> tuple[Course, ...]:
        return tuple(each for family in self.families for each in family.courses)

    @cached_property
    def totals(self) -> Totals:
        return totals(self.courses)

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        return levels(self.courses)

    @cached_property
    def shown(self) -> tuple[Family, ...]:
        """Those told one by one: where there are too many, the slices that changed last."""
        newest = sorted(self.courses, key=lambda each: each.spans[-1].transition.at, reverse=True)[:MOST_SHOWN]
        kept = {each.record.id for each in newest}
        families = (_only(family, kept) for family in self.families)
        return tuple(family for family in families if family.courses)

    @cached_property
    def largest(self) -> tuple[Family, ...]:
        """The JobSets that a table of them shows: where there are too many, those that asked for most."""
        most = sorted(self.families, key=lambda each: sum(each.totals.values(), timedelta()), reverse=True)[:MOST_SHOWN]
        return tuple(family for family in self.families if family in most)

    @property
    def omitted(self) -> int:
        return max(0, len(self.courses) - MOST_SHOWN)

    @property
    def cut_off(self) -> int:
        """How many slices have a beginning within the window that is on record no more."""
        return sum(1 for each in self.courses if each.forgotten)

    @property
    def unknown_chips(self) -> int:
        """How many slices nothing is known of but that they are there."""
        return sum(1 for each in self.courses if each.record.spec is None)

    @property
    def begins(self) -> datetime:
        """When the first of the slices came into sight."""
        return min((each.spans[0].start for each in self.courses), default=self.window.since)

    def time(self, at: datetime) -> str:
        return clock(at, self.window.until)


def _only(family: Family, kept: set[SliceId]) -> Family:
    courses = tuple(each for each in family.courses if each.record.id in kept)
    return Family(title=family.title, uid=family.uid, courses=courses, totals=family.totals)


def families(courses: Iterable[Course], clusters: Sequence[ClusterId]) -> tuple[Family, ...]:
    """Gather by JobSet what is ordered by JobSet; two of the same name are told apart by UID, clusters by theirs."""
    found = [(job, tuple(group)) for job, group in _by_jobset(courses)]
    names = [(job.cluster, job.owner.namespace, job.owner.name) for job, _ in found]
    return tuple(
        Family(
            title=_title(job, cluster=len(clusters) > 1, uid=names.count(name) > 1),
            uid=job.owner.uid,
            courses=group,
            totals=totals(group),
        )
        for (job, group), name in zip(found, names, strict=True)
    )


def _by_jobset(courses: Iterable[Course]) -> Iterator[tuple[WorkloadJob, Iterable[Course]]]:
    def jobset(each: Course) -> tuple[str, str, str, str]:
        job = each.record.job
        return job.cluster, job.owner.namespace, job.owner.name, job.owner.uid

    for _, group in groupby(sorted(courses, key=jobset), key=jobset):
        first, *rest = group
        yield first.record.job, (first, *rest)


def _title(job: WorkloadJob, *, cluster: bool, uid: bool) -> str:
    where = f"{job.cluster}: " if cluster else ""
    which = f" (UID {job.owner.uid})" if uid else ""
    return plain(f"{where}{job.owner.namespace}/{job.owner.name}{which}")


# facts in words


def plain(text: str) -> str:
    """Give text that shows what it is: control characters and those that turn the direction become U+FFFD."""
    return "".join("\ufffd" if unicodedata.category(each)[0] == "C" and each != "\n" else each for each in text)


def place(each: Course) -> str:
    """Name a slice within its JobSet."""
    job = each.record.job
    return plain(f"{job.replicated_job}-{job.job_index}")


def asked(each: Course) -> str:
    return chips(each.record.spec.chips) if each.record.spec else "an unknown number of chips"


def state(span: Span) -> str:
    return f"{span.transition.phase}, {span.transition.reason}"


def times(span: Span, story: Story) -> str:
    """Say when a span was, and how long, as in `from 12:00:00 UTC to 12:30:00 UTC (30 min)`."""
    at = span.transition.at
    begun = f"from {story.time(at)}" if span.begins_inside else f"from {story.time(at)}, before this page begins,"
    if span.end == story.window.until:
        return f"{begun} until now ({lasting(span.end - at)})"
    return f"{begun} to {story.time(span.end)} ({lasting(span.end - at)})"


def good_for(span: Span) -> str:
    """Say what its chips were good for."""
    if span.use is None:
        return "no chips"
    return f"{chips(span.chips)}, {USES[span.use][0]}: {chip_hours(span.chip_time)} chip-hours"


def beginning(each: Course, story: Story) -> str:
    """Say what is not on record any more."""
    changes = "one earlier change is" if each.forgotten == 1 else f"{each.forgotten} earlier changes are"
    since = story.time(each.spans[0].start)
    return f"The beginning is cut off: {changes} on record no more; what was before {since} is not known."


def message_of(span: Span) -> str:
    return plain(span.transition.message)


def chips(count: int) -> str:
    return "1 chip" if count == 1 else f"{count:,} chips"


def slices(count: int) -> str:
    return "1 slice" if count == 1 else f"{count:,} slices"


def chip_hours(sum_: timedelta) -> str:
    """Give chip-hours with one place, as in `1,234.5`; less than that, but not nothing, is `< 0.1`."""
    hours = sum_ / _HOUR
    return "< 0.1" if 0 < hours < 0.05 else f"{hours:,.1f}"


def share(part: timedelta, whole: timedelta) -> str:
    return f"{part / whole:.0%}" if whole else "none"


def useful_share(sums: Totals) -> str:
    """Give what part of the chip-hours held was useful."""
    return share(sums[Use.USEFUL], held(sums))


def lasting(duration: timedelta) -> str:
    """Say how long in its two largest units, as in `1 h 5 min`."""
    left = max(0, int(duration.total_seconds()))
    parts = []
    for size, unit in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"

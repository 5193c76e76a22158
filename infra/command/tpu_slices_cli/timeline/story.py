"""The content of a timeline: the slices of a window by JobSet, and the texts that chart and lists share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from itertools import groupby
from typing import Any

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import ClusterId, WorkloadJob, WorkloadUid
from tpu_slices.domain.records.usage import Use
from tpu_slices.domain.reporting.timeline import Course, Level, Span, Totals, Window, held, levels, totals
from tpu_slices_cli.text import natural, plain
from tpu_slices_cli.timeline.chart import Axis
from tpu_slices_cli.timeline.marks import Mark
from tpu_slices_cli.timeline.money import Money, SettingsOf, spent
from tpu_slices_cli.words import clock

MOST_LISTED = 300
"""The limit of slices of which all transitions are listed; a page with more would be slow to load and hard to read."""
MOST_RUNS = 500
"""The limit of workloads that are drawn, and of rows in the table of chip-hours."""
MOST_LEVELS = 300
"""The limit of rows in the table of chips over time."""

USES = {
    Use.WAITING: ("waiting", "requested, and no host stands: in line, out of stock, or being created"),
    Use.STOPPED: ("stopped", "requested, and no host stands: somebody must change something or release chips first"),
    Use.STARTING: ("starting", "hosts stand, and not all of them are usable yet, or again"),
    Use.IDLE: ("idle", "hosts stand, and nobody is on them, or the pods of the Job on them do not run"),
    Use.WARM: ("warm", "hosts stand, and are kept for the next claim, as a setting says"),
    Use.USEFUL: ("useful", "hosts stand, and a Job runs on them"),
}
_HOUR = timedelta(hours=1)
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The slices of one workload."""

    title: str
    uid: WorkloadUid
    courses: tuple[Course, ...]
    totals: Totals

    @property
    def changed_at(self) -> datetime:
        return max(map(_changed, self.courses))


def _no_settings(_: ClusterId) -> ClusterSettings | None:
    return None


@dataclass(frozen=True, slots=True)
class Run:
    """A workload as it is drawn: all of its slices in one chart, and those that are listed below it."""

    family: Family
    listed: tuple[Course, ...]

    @property
    def omitted(self) -> int:
        return len(self.family.courses) - len(self.listed)


@dataclass(frozen=True, kw_only=True)
class Story:
    """The content of a page; `whose` is the filter as text."""

    whose: str
    window: Window
    families: tuple[Family, ...]
    settings_of: SettingsOf = _no_settings
    """The settings of a cluster, which may have prices of its own."""
    silent_relays: tuple[str, ...] = ()
    """A line for each cluster whose relay was not heard lately."""

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
    def axis(self) -> Axis:
        """From the earliest span to the end of the window: what is shown, not what was asked for."""
        begins = min((each.spans[0].start for each in self.courses), default=self.window.since)
        return Axis(begins, self.window.until)

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """The workloads that are drawn, the MOST_RUNS that changed last; listed are their slices that changed last."""
        newest = sorted(self.courses, key=_changed, reverse=True)[:MOST_LISTED]
        listed = {each.record.id for each in newest}
        drawn = sorted(self.families, key=lambda family: family.changed_at, reverse=True)[:MOST_RUNS]
        return tuple(
            Run(family, tuple(each for each in family.courses if each.record.id in listed))
            for family in self.families
            if family in drawn
        )

    def newest(self, most: int) -> tuple[list[Run], list[Run]]:
        """Return the workloads that changed last, at most so many, and the others; both in the order of their names."""
        latest = sorted(self.runs, key=lambda run: run.family.changed_at, reverse=True)[:most]
        return [run for run in self.runs if run in latest], [run for run in self.runs if run not in latest]

    @cached_property
    def largest(self) -> tuple[Family, ...]:
        """The workloads in the table of chip-hours: the MOST_RUNS with the largest sum of all uses."""
        most = sorted(self.families, key=lambda each: sum(each.totals.values(), timedelta()), reverse=True)[:MOST_RUNS]
        return tuple(family for family in self.families if family in most)

    @property
    def cut_off(self) -> int:
        """The number of slices whose first transitions in the window are no longer on record."""
        return sum(1 for each in self.courses if each.forgotten)

    @property
    def uncounted(self) -> int:
        """The number of slices whose first chip-hours in the window are no longer on record."""
        return sum(1 for each in self.courses if each.uncounted)

    @property
    def unknown_chips(self) -> int:
        """The number of slices without a spec, whose chips are unknown."""
        return sum(1 for each in self.courses if each.record.spec is None)

    def cost(self, courses: Iterable[Course]) -> Money:
        return spent(courses, self.settings_of)

    def time(self, at: datetime) -> str:
        return clock(at, self.window.until)


def _changed(each: Course) -> datetime:
    return each.spans[-1].transition.at


def families(courses: Iterable[Course], clusters: Sequence[ClusterId]) -> tuple[Family, ...]:
    """Return the courses by workload, in the natural order of their names.

    A title has the UID if several workloads have its name, and the cluster if there are several clusters.
    """
    found = [(job, tuple(group)) for job, group in _by_workload(courses)]
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


def _by_workload(courses: Iterable[Course]) -> Iterator[tuple[WorkloadJob, Iterable[Course]]]:
    def workload(each: Course) -> tuple[Any, ...]:
        job = each.record.job
        return *map(natural, (job.cluster, job.owner.namespace, job.owner.name)), job.owner.uid

    def within(each: Course) -> tuple[Any, ...]:
        job = each.record.job
        return natural(job.replicated_job), job.job_index, each.spans[0].start

    for _, group in groupby(sorted(courses, key=workload), key=workload):
        first, *rest = sorted(group, key=within)
        yield first.record.job, (first, *rest)


def _title(job: WorkloadJob, *, cluster: bool, uid: bool) -> str:
    where = f"{job.cluster}: " if cluster else ""
    which = f" (UID {job.owner.uid})" if uid else ""
    return plain(f"{where}{job.owner.namespace}/{job.owner.name}{which}")


# texts


def place(each: Course) -> str:
    """Return the name of a slice within its JobSet."""
    job = each.record.job
    return plain(f"{job.replicated_job}-{job.job_index}")


def asked(each: Course) -> str:
    return chips(each.record.spec.chips) if each.record.spec else "an unknown number of chips"


def state(span: Span) -> str:
    return f"{span.transition.phase}, {span.transition.reason}"


def times(span: Span, story: Story) -> str:
    """Return the times and the duration of a span, as in `from 12:00:00 UTC to 12:30:00 UTC (30 min)`."""
    at = span.transition.at
    start = f"from {story.time(at)}" if span.begins_inside else f"from {story.time(at)} (before the start of this page)"
    if span.end == story.window.until:
        return f"{start} until now ({lasting(span.end - at)})"
    return f"{start} to {story.time(span.end)} ({lasting(span.end - at)})"


def good_for(each: Course, span: Span) -> str:
    """Return how many chip-hours there are in a span, by use."""
    spent = [f"{chip_hours(sum_)} {USES[use][0]}" for use, sum_ in each.totals(span).items() if sum_]
    return f"chip-hours: {', '.join(spent)}" if spent else "no chips"


def beginning(each: Course, story: Story) -> str:
    """Return a text about the transitions that are no longer on record."""
    earlier = "1 earlier transition is" if each.forgotten == 1 else f"{each.forgotten} earlier transitions are"
    since = story.time(each.spans[0].start)
    return f"The history is truncated: {earlier} no longer on record; the state before {since} is unknown."


def message_of(span: Span) -> str:
    return plain(span.transition.message)


def chips(count: int) -> str:
    return "1 chip" if count == 1 else f"{count:,} chips"


def slices(count: int) -> str:
    return "1 slice" if count == 1 else f"{count:,} slices"


def marks_counted(mark: Mark, count: int) -> str:
    """Return a number of failures or restarts, as in `1 failure`."""
    return f"{count:,} {mark}" if count == 1 else f"{count:,} {mark}s"


def chip_hours(sum_: timedelta) -> str:
    """Return chip-hours with one decimal, as in `1,234.5`; `< 0.1` if they would be rounded to zero."""
    hours = sum_ / _HOUR
    return "< 0.1" if 0 < hours < 0.05 else f"{hours:,.1f}"


def share(part: timedelta, whole: timedelta) -> str:
    return f"{part / whole:.0%}" if whole else "none"


def useful_share(sums: Totals) -> str:
    """Return the share of the held chip-hours that was useful."""
    return share(sums[Use.USEFUL], held(sums))


def lasting(duration: timedelta) -> str:
    """Return a duration in its two largest units, as in `1 h 5 min`."""
    left = max(0, int(duration.total_seconds()))
    parts = []
    for size, unit in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"

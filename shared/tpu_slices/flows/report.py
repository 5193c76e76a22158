"""How JobSets stand with their slices: made anew when it is due, told to the cluster when it is news."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache

from tpu_slices.domain.model.decisions import Reason
from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.model.workloads import JobSetRecord, Report
from tpu_slices.domain.reporting.reports import RENEW, Around, called_for, is_news, next_report, report
from tpu_slices.ports.bus import JobSetUpdate
from tpu_slices.ports.deps import Ports
from tpu_slices.ports.errors import Permanent, StaleRecord, Temporary
from tpu_slices.ports.store import Change, SliceStore, Stored

PAGE = 200
"""How many JobSets one sweep reports on; the longest due come first, the rest next minute."""
LINE = 100
"""How many places of a cluster's line are known; who is behind them is told how many are before."""
MOST_TROUBLES = 3
"""So many in one sweep, and what is left waits for the next: something is wrong with more than one JobSet."""


@dataclass(frozen=True, slots=True)
class Reported:
    """A JobSet and what the cluster was told about it, for the log."""

    jobset: JobSetRecord
    report: Report


def report_due(ports: Ports) -> tuple[list[Reported], list[str]]:
    """Report on every JobSet that is due; give what was news, and what went wrong.

    One JobSet's trouble stops no other: one that cannot be reported on goes to the end of the line.
    """
    told: list[Reported] = []
    failures: list[str] = []
    around = cache(lambda cluster: look_around(cluster, ports.store))
    for due in ports.store.due_reports(ports.clock.now(), PAGE):
        stored = ports.store.jobsets(due.cluster, [due.uid]).get(due.uid)
        if stored is None:
            continue
        try:
            reported = _on_jobset(stored, around, ports)
        except Exception as trouble:  # noqa: BLE001 - whatever it is, the others wait to be told
            failures.append(f"{due.cluster}: {due.namespace}/{due.name} is not reported on: {trouble!r}")
            if not isinstance(trouble, Temporary):
                _put_off(stored, ports)
            elif len(failures) >= MOST_TROUBLES:
                break
            continue
        if reported is not None:
            told.append(reported)
    return told, failures


def report_of(jobset: JobSetRecord, around: Around, ports: Ports) -> Report:
    """Say how a JobSet stands now."""
    slices = ports.store.slices(jobset.cluster, jobset.wants)
    return report(jobset, (stored.value for stored in slices.values()), around, ports.clock.now())


def look_around(cluster: ClusterId, store: SliceStore) -> Around:
    """Read what a report goes by beside the JobSet and its slices."""
    settings = store.settings(cluster)
    inline = [record.id for record in store.queued_slices(cluster, LINE) if record.reason is Reason.OPERATION_LIMIT]
    places = {id_: number for number, id_ in enumerate(inline, start=1)}
    return Around(places, len(store.slots(cluster)) if places else 0, settings.paused if settings else None)


def calling_for_report(before: SliceRecord, after: SliceRecord, ports: Ports) -> tuple[Change, ...]:
    """Give what to save beside a slice that turned, so that its JobSet is reported on; mostly nothing."""
    if after.turns == before.turns:
        return ()
    stored = ports.store.jobsets(after.job.cluster, [after.job.uid]).get(after.job.uid)
    called = called_for(stored.value, ports.clock.now()) if stored else None
    return (Change(stored, called),) if called else ()


def _on_jobset(stored: Stored[JobSetRecord], around: Callable[[ClusterId], Around], ports: Ports) -> Reported | None:
    """Tell, then note it: an Event that is told twice is one Event. Whoever wrote meanwhile has made it due again."""
    jobset, now = stored.value, ports.clock.now()
    made = report_of(jobset, around(jobset.cluster), ports)
    after = replace(jobset, report=made, report_due_at=next_report(made, now))
    news = is_news(made, jobset, now)
    if news:
        after = replace(after, reported_at=now, times_told=jobset.times_told + 1)
        ports.bus.report(jobset.cluster, [_update(after, made)])
    with suppress(StaleRecord):
        ports.store.commit(Change(stored, after))
    return Reported(jobset, made) if news else None


def _put_off(stored: Stored[JobSetRecord], ports: Ports) -> None:
    with suppress(Temporary, Permanent):
        ports.store.commit(Change(stored, replace(stored.value, report_due_at=ports.clock.now() + RENEW)))


def _update(jobset: JobSetRecord, made: Report) -> JobSetUpdate:
    assert jobset.reported_at is not None
    return JobSetUpdate(
        namespace=jobset.namespace,
        name=jobset.name,
        uid=jobset.uid,
        report=made,
        at=jobset.reported_at,
        times=jobset.times_told,
    )

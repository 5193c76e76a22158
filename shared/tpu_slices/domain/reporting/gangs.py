"""What a report says of the gangs of a workload. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from tpu_slices.domain.gangs.members import Members, members_of
from tpu_slices.domain.model.clusters import ClusterSettings, Limits
from tpu_slices.domain.model.reasons import ReportReason
from tpu_slices.domain.model.texts import clock
from tpu_slices.domain.planning.costs import billed
from tpu_slices.domain.records.gangs import Gang
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord

GATHERS = frozenset({ReportReason.GANG_FORMING, ReportReason.GANG_HELD, ReportReason.GANG_REPAIRING})


def reason_of_gangs(workload: WorkloadRecord, reason: ReportReason) -> ReportReason:
    """Return the reason of a report, by what its slices say, as it is while a gang of the workload forms.

    | a gang of it forms, and the slices say       | reason         |
    |----------------------------------------------|----------------|
    | anything but PROVISIONING or WAITING         | as it is       |
    | that of these; it stood before               | GANG_REPAIRING |
    | PROVISIONING                                 | GANG_FORMING   |
    | WAITING, and others of it stand              | GANG_HELD      |
    | WAITING                                      | WAITING        |
    """
    forming = [gang for gang in workload.gangs.values() if gang.forms]
    if not forming or reason not in {ReportReason.PROVISIONING, ReportReason.WAITING}:
        return reason
    if any(gang.ran for gang in forming):
        return ReportReason.GANG_REPAIRING
    if reason is ReportReason.PROVISIONING:
        return ReportReason.GANG_FORMING
    return ReportReason.GANG_HELD if any(gang.held_since is not None for gang in forming) else reason


def gangs_told(
    workload: WorkloadRecord, records: Iterable[SliceRecord], settings: ClusterSettings | None, now: datetime
) -> str:
    """Return, as sentences, what the gangs that form wait for, until when, and what that costs; empty: none forms."""
    read = [*records]
    limits = settings.limits if settings is not None else Limits()
    return " ".join(
        text
        for name, gang in sorted(workload.gangs.items())
        if gang.forms
        for text in _told(gang, members_of(workload, name, read), settings, limits, now)
    )


def _told(
    gang: Gang, members: Members, settings: ClusterSettings | None, limits: Limits, now: datetime
) -> Iterator[str]:
    all_stand = "its slice stands" if gang.claims == 1 else f"all {gang.claims} slices stand"
    yield f"Its pods start together, once {all_stand}."
    held_until = gang.held_until(limits)
    if gang.held_since is None or held_until is None:
        return
    costs = billed(members.standing, settings)
    until = f"at {clock(held_until, now)} all are let go if the others have not come"
    if gang.stuck_since is None and members.costs_nothing:
        until = "they are of a reservation, and stay so while nobody else in line lacks such"
    since = f"{clock(gang.held_since, now)}{f' ({costs})' if costs else ''}"
    yield f"Those that stand have been held since {since}; {until}."

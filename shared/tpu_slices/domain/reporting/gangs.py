"""What a report says of the gangs of a workload. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from tpu_slices.domain.gangs.members import Members, members_of
from tpu_slices.domain.model.clusters import ClusterSettings, Limits
from tpu_slices.domain.model.reasons import Reason, ReportReason
from tpu_slices.domain.model.texts import clock, lasting
from tpu_slices.domain.planning.costs import billed
from tpu_slices.domain.records.gangs import Gang, GangState
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord

GATHERS = frozenset(
    {
        ReportReason.GANG_CANNOT_FIT,
        ReportReason.GANG_WAITS,
        ReportReason.GANG_LET_GO,
        ReportReason.GANG_YIELDED,
        ReportReason.GANG_FORMING,
        ReportReason.GANG_HELD,
        ReportReason.GANG_REPAIRING,
    }
)
"""The reasons of workloads some of whose gangs do not stand."""
_UNDER_WAY = frozenset({ReportReason.PROVISIONING, ReportReason.WAITING})


def reason_of_gangs(workload: WorkloadRecord, reason: ReportReason) -> ReportReason:
    """Return the reason of a report, by what its slices say, as it is of a workload with gangs.

    The first row that holds counts.

    | its slices say          | a gang of it                                      | reason          |
    |-------------------------|---------------------------------------------------|-----------------|
    | READY                   | all stand                                         | GANG_STARTED    |
    | BLOCKED                 | has more chips than a limit allows                | GANG_CANNOT_FIT |
    | PROVISIONING, WAITING   | forms, stood before, and some of it stands still  | GANG_REPAIRING  |
    | PROVISIONING            | forms                                             | GANG_FORMING    |
    | WAITING                 | forms, and some of its slices stand               | GANG_HELD       |
    | PROVISIONING, WAITING   | waits, as its slices were held for too long       | GANG_LET_GO     |
    | PROVISIONING, WAITING   | waits, as its slices went to one that came before | GANG_YIELDED    |
    | PROVISIONING, WAITING   | waits                                             | GANG_WAITS      |
    | any other               |                                                   | as it is        |
    """
    gangs = workload.gangs.values()
    waiting = [gang for gang in gangs if gang.waits]
    if gangs and reason is ReportReason.READY and all(gang.state is GangState.STANDS for gang in gangs):
        return ReportReason.GANG_STARTED
    if reason is ReportReason.BLOCKED and any(gang.reason is Reason.GANG_TOO_LARGE for gang in waiting):
        return ReportReason.GANG_CANNOT_FIT
    if reason in _UNDER_WAY:
        return _under_way([gang for gang in gangs if gang.forms], waiting, reason)
    return reason


def _under_way(forming: Sequence[Gang], waiting: Sequence[Gang], reason: ReportReason) -> ReportReason:
    if any(gang.ran and (gang.runs or gang.held_since is not None) for gang in forming):
        return ReportReason.GANG_REPAIRING
    if forming and reason is ReportReason.PROVISIONING:
        return ReportReason.GANG_FORMING
    if any(gang.held_since is not None for gang in forming):
        return ReportReason.GANG_HELD
    if any(gang.reason is Reason.LET_GO_WITH_GANG for gang in waiting):
        return ReportReason.GANG_LET_GO
    if any(gang.yielded for gang in waiting):
        return ReportReason.GANG_YIELDED
    return ReportReason.GANG_WAITS if waiting else reason


def let_go_after(workload: WorkloadRecord) -> str:
    """Return how long after they were asked for the slices of its gangs stood, as a part of a sentence; or empty."""
    if not workload.gangs or any(gang.state is not GangState.STANDS for gang in workload.gangs.values()):
        return ""
    longest = max(gang.state_since - gang.lacks_since for gang in workload.gangs.values())
    return f"its pods were released together after {lasting(longest)}"


def gangs_told(
    workload: WorkloadRecord, records: Iterable[SliceRecord], settings: ClusterSettings | None, now: datetime
) -> str:
    """Return, as sentences, what the gangs that form wait for, until when, and what that costs, and why slices went.

    Empty: none forms, and what let its slices go is said by these already.
    """
    read = [*records]
    limits = settings.limits if settings is not None else Limits()
    texts: list[str] = []
    for name, gang in sorted(workload.gangs.items()):
        if gang.forms:
            texts += _told(gang, members_of(workload, name, read), settings, limits, now)
        elif gang.waits and gang.let_go and not any(gang.message in each.message for each in read):
            texts.append(f"{gang.message}.")
    return " ".join(texts)


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

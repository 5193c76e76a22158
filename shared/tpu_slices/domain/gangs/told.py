"""Which gangs a workload has, as demand tells. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from tpu_slices.domain.catalogue.accelerators import Accelerators
from tpu_slices.domain.model.facts import SlicesWanted, WorkloadState
from tpu_slices.domain.planning.specs import gangs_of
from tpu_slices.domain.records.gangs import Gang
from tpu_slices.domain.records.workloads import WorkloadRecord


def with_gangs_told(
    workload: WorkloadRecord,
    known: WorkloadRecord | None,
    fact: SlicesWanted,
    accelerators: Accelerators,
    now: datetime,
) -> WorkloadRecord:
    """Return the record of a workload with the gangs that a fact tells of.

    | a gang                                                      | is                            |
    |-------------------------------------------------------------|-------------------------------|
    | that is new, or of which the workload was suspended since   | new: it waits                 |
    | that is known                                               | as it was, of its new size,   |
    |                                                             | and held as long as is said   |
    | that nothing tells of any more                              | forgotten                     |
    """
    before = known.gangs if known is not None and known.state is WorkloadState.ACTIVE else {}
    gangs = {}
    for name, size in gangs_of(fact.requests, accelerators).items():
        some = [each for each in fact.requests if each.gang == name]
        jobs, seconds = tuple(each.replicated_job for each in some), max(each.gang_hold_for for each in some)
        hold_for = timedelta(seconds=seconds) if seconds else None
        last = before.get(name)
        made = last or Gang(
            replicated_jobs=jobs, claims=size.slices, chips=size.chips, since=now, state_since=now, lacks_since=now
        )
        after = replace(made, replicated_jobs=jobs, claims=size.slices, chips=size.chips, hold_for=hold_for)
        gangs[name] = last if last is not None and after == last else after
    return replace(workload, gangs=gangs)


def scaled(gang: Gang, groups: int | None) -> Gang:
    """Return a gang without the groups of a LeaderWorkerSet that were scaled away since its size was told."""
    if groups is None or groups >= gang.claims:
        return gang
    return replace(gang, claims=groups, chips=gang.chips * groups // gang.claims)

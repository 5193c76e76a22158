"""The subjects of facts that come due, and the intervals between facts. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from relay.objects import Pool
from tpu_slices.domain.model.slices import WorkloadUid


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The relay's delays and intervals; `relay.fact_queue` has the table of what they apply to."""

    gather: timedelta = timedelta(seconds=1)
    count_every: timedelta = timedelta(seconds=15)
    repeat: timedelta = timedelta(minutes=5)
    beat: timedelta = timedelta(minutes=1)
    blind_after: timedelta = timedelta(minutes=4)
    settle: timedelta = timedelta(seconds=5)
    answer_within: timedelta = timedelta(minutes=1)
    forget_after: timedelta = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Demand:
    """The leaders of a workload that wait for slices."""

    uid: WorkloadUid


@dataclass(frozen=True, slots=True)
class State:
    """The state of a workload."""

    uid: WorkloadUid


@dataclass(frozen=True, slots=True)
class Hosts:
    """The count of a pool's hosts, and who occupies them."""

    pool: Pool


@dataclass(frozen=True, slots=True)
class Recount:
    """A pool whose count, or the answer to a question about it, changes by the passing of time."""

    pool: Pool


@dataclass(frozen=True, slots=True)
class HostsList:
    """All pools with hosts: somebody asked for them."""


@dataclass(frozen=True, slots=True)
class Beat:
    """The heartbeat: the relay is alive, and which workloads exist."""


Subject = Demand | State | Hosts | Recount | HostsList | Beat

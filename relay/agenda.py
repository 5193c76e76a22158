"""The subjects of facts that come due, and the intervals between facts. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from relay.objects import PoolKey
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.slices import WorkloadUid


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The relay's delays and intervals; `relay.fact_queue` has the table of what they apply to."""

    gather: timedelta = timedelta(seconds=1)
    count_every: timedelta = timedelta(seconds=15)
    repeat: timedelta = timedelta(minutes=5)
    beat: timedelta = timedelta(minutes=1)
    blind_after: timedelta = timedelta(minutes=4)


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
    """The count of a pool's hosts."""

    pool: PoolKey | LegacyPool


@dataclass(frozen=True, slots=True)
class Bound:
    """The binding of a leader to the hosts of a pool."""

    pod_uid: str


@dataclass(frozen=True, slots=True)
class Beat:
    """The heartbeat: the relay is alive, and which workloads exist."""


Subject = Demand | State | Hosts | Bound | Beat

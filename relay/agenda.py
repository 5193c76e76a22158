"""What may come due to be published, and how long the relay waits for what. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from relay.objects import PoolKey
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.slices import WorkloadUid


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long the relay waits for what."""

    gather: timedelta = timedelta(seconds=1)
    count_every: timedelta = timedelta(seconds=15)
    repeat: timedelta = timedelta(minutes=5)
    beat: timedelta = timedelta(minutes=1)
    blind_after: timedelta = timedelta(minutes=4)


@dataclass(frozen=True, slots=True)
class Demand:
    """That leaders of a workload wait."""

    uid: WorkloadUid


@dataclass(frozen=True, slots=True)
class State:
    """The state that a workload is in."""

    uid: WorkloadUid


@dataclass(frozen=True, slots=True)
class Hosts:
    """The count of a pool's hosts."""

    pool: PoolKey | LegacyPool


@dataclass(frozen=True, slots=True)
class Bound:
    """The hosts that a leader is bound to."""

    pod_uid: str


@dataclass(frozen=True, slots=True)
class Beat:
    """That the relay is alive, and which workloads there are."""


Subject = Demand | State | Hosts | Bound | Beat

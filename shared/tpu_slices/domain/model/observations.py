"""What the world says about a slice's pool, and how a failure is classed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tpu_slices.domain.model.slices import SliceId, WorkloadJob


class FailureKind(StrEnum):
    """Why a pool could not be made; each kind has its own patience."""

    STOCKOUT = "STOCKOUT"  # the zone has no such hosts now
    QUOTA = "QUOTA"  # the project may not have more
    RESERVATION = "RESERVATION"  # the reservation is used up, missing or not yet ready
    IP_SPACE = "IP_SPACE"  # the pod range is full
    RATE = "RATE"  # too many operations or calls at once: the governor narrows
    BUSY = "BUSY"  # an operation on the pool or the cluster is in the way
    NAME_TAKEN = "NAME_TAKEN"  # a pool of that name exists: look whose it is
    CONFIGURATION = "CONFIGURATION"  # settings or permissions: a person is needed
    IMPOSSIBLE = "IMPOSSIBLE"  # GKE will never make this shape
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class Failure:
    kind: FailureKind
    message: str
    """The vendor's own words, shortened."""


@dataclass(frozen=True, slots=True)
class Absent:
    """No pool of that name, in a cluster that was read and is the one on record."""


@dataclass(frozen=True, slots=True)
class Creating:
    """Being created; `operation_runs` is False when no operation stands behind it any more."""

    operation_runs: bool = True


@dataclass(frozen=True, slots=True)
class Running:
    """Created; says nothing about its hosts, which the relay counts."""

    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class Busy:
    """GKE is at work on it: repair, upgrade."""

    message: str


@dataclass(frozen=True, slots=True)
class Broken:
    """It will not become, or is no longer, what was asked for."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class Deleting:
    """On its way out, whoever asked for it."""


@dataclass(frozen=True, slots=True)
class Unowned:
    """It has our name and not our proof of ownership."""

    message: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """We could not see: this says nothing about the pool."""

    message: str


Visible = Absent | Creating | Running | Busy | Broken | Deleting | Unowned
Observation = Visible | Unreadable


@dataclass(frozen=True, slots=True)
class Started:
    """GKE took the order; `operation` is None where there was nothing left to do."""

    operation: str | None


@dataclass(frozen=True, slots=True)
class Refused:
    """GKE did not take the order."""

    failure: Failure


Outcome = Started | Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSeen:
    """A pool of the inventory: everything with our owner label in one cluster."""

    name: str
    slice_id: SliceId
    attempt: int
    job: WorkloadJob


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyPool:
    """A pool that TPU Provisioner made, and whom for, as its labels say."""

    name: str
    namespace: str
    jobset: str
    job: str


@dataclass(frozen=True, slots=True)
class PoolObservations:
    """One look at a slice: its current attempt, and the earlier ones that are not known to be gone."""

    current: Observation
    terminating: Mapping[int, Observation]

"""What is observed of a slice's pool, and the kinds of failures."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Self

from tpu_slices.domain.model.slices import ClaimId, SliceId, WorkloadJob, attempt_named, slice_id


class FailureKind(StrEnum):
    """Why a pool could not be created; each kind has its own backoff."""

    STOCKOUT = "STOCKOUT"  # the zone has no such hosts now
    QUOTA = "QUOTA"  # the project may not have more
    EXHAUSTED = "EXHAUSTED"  # stock or quota: the vendor does not say which
    RESERVATION = "RESERVATION"  # the reservation is used up, or a part of it is not healthy
    RESERVATION_AWAITED = "RESERVATION_AWAITED"  # there is no such reservation, or it cannot be used yet
    IP_SPACE = "IP_SPACE"  # the pod range is full
    RATE = "RATE"  # too many operations or calls at once: the concurrency limit is lowered
    BUSY = "BUSY"  # another operation on the pool or the cluster is in progress
    NAME_TAKEN = "NAME_TAKEN"  # a pool of that name exists: check whether it is ours
    CONFIGURATION = "CONFIGURATION"  # settings or permissions: an operator must act
    IMPOSSIBLE = "IMPOSSIBLE"  # GKE never creates this shape
    HOSTS = "HOSTS"  # the pool was created, but not all of its hosts became usable
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class Failure:
    kind: FailureKind
    message: str
    """The vendor's error message, shortened."""
    zones: tuple[str, ...] = ()
    """Where it says that there is stock instead."""


class Cause(StrEnum):
    """Why hosts are away that the vendor is known to bring back; each has a patience of its own."""

    UPGRADE = "UPGRADE"  # an operation upgrades the pool, whose hosts are made anew as a whole
    REPAIR = "REPAIR"  # an operation repairs it, likewise
    WORK = "WORK"  # the vendor works on it, and does not say what it does
    MAINTENANCE = "MAINTENANCE"  # Google maintains the machine of a host
    PREEMPTED = "PREEMPTED"  # spot hosts were taken, and are still asked for


@dataclass(frozen=True, slots=True)
class Absent:
    """There is no pool of that name; the cluster was read and is the one on record."""


@dataclass(frozen=True, slots=True)
class Creating:
    """The pool is being created; `operation_runs` is False if no operation runs for it any more."""

    operation_runs: bool = True


@dataclass(frozen=True, slots=True)
class Begun:
    """Some of what a pool consists of stands, but not its hosts, and no operation runs: creation or deletion goes on.

    Only where a pool is made in several steps, on Compute Engine.
    """

    message: str
    """What stands."""


@dataclass(frozen=True, slots=True)
class Running:
    """The pool was created; this says nothing about its hosts, which the relay counts."""

    fingerprint: str | None = None
    awaiting: str = ""
    """Why not all of its hosts exist yet, if the vendor says so and goes on trying by itself."""
    lacking: str = ""
    """What is missing of the labels, or of the description, that name its slice: somebody replaced them."""
    refills: bool = False
    """Whether spot hosts that were taken are still asked for."""


@dataclass(frozen=True, slots=True)
class Busy:
    """The vendor works on the pool: repairs it, upgrades it, or something else."""

    message: str
    work: Cause | None = None
    """What it does; None: it was not asked, or does not say."""
    began: datetime | None = None
    """When that began, if the vendor says so."""


@dataclass(frozen=True, slots=True)
class Broken:
    """The pool will not become, or is no longer, what was requested."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class Deleting:
    """The pool is being deleted, by us or by somebody else."""

    what: str = ""
    """The part of it that is, where a pool consists of several."""


@dataclass(frozen=True, slots=True)
class Unowned:
    """The pool has our name, but neither its labels nor what is known of its making prove it ours."""

    message: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The pool could not be read: nothing is known about it."""

    message: str


Visible = Absent | Begun | Creating | Running | Busy | Broken | Deleting | Unowned
Observation = Visible | Unreadable


@dataclass(frozen=True, slots=True)
class Started:
    """The vendor accepted the request; `operation` is None if there was nothing to do."""

    operation: str | None


@dataclass(frozen=True, slots=True)
class Refused:
    """The vendor did not accept the request."""

    failure: Failure
    begun: bool = False
    """Whether earlier steps of the creation stand, and have to be deleted if it is given up."""


Outcome = Started | Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSeen:
    """A pool of the inventory: one of those in a cluster that have our names."""

    name: str
    slice_id: ClaimId
    attempt: int
    job: WorkloadJob | None
    """What its labels say that it was made for; None: they do not say it, so that nothing but its name is known."""

    @property
    def id(self) -> SliceId:
        """The slice that it is of."""
        return slice_id(self.slice_id, self.attempt)

    @classmethod
    def named(cls, name: str) -> Self | None:
        """Return a pool of which nothing but its name is known; None if that is none of ours."""
        named = attempt_named(name)
        return None if named is None else cls(name=name, slice_id=named[0], attempt=named[1], job=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyPool:
    """A pool that TPU Provisioner made, and the Job in its labels; or TPU operator, and the TPUNodeGroup."""

    name: str
    namespace: str
    jobset: str
    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationSeen:
    """An operation that creates or deletes a pool, or a part of one."""

    pool: str
    creates: bool
    ended: bool


class Witness(StrEnum):
    """By what something is known of pools."""

    LOOK = "LOOK"  # the vendor was asked
    EVENT = "EVENT"  # the vendor's log says that an operation ended
    REQUEST = "REQUEST"  # the vendor accepted a request of ours, or may have
    RECORD = "RECORD"  # it is on record, and was not looked up again


@dataclass(frozen=True, slots=True)
class Observed:
    """The pool of a slice at one time."""

    pool: Observation
    by: Witness = Witness.LOOK

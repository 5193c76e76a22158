"""The closed list of reasons: of a slice's phase, of a workload's report, and of problems with a cluster.

Each is a word in CamelCase, as in Kubernetes' conditions and Events, and is shown with a message.
`docs/reasons.md` describes each reason and what to do about it.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a slice is in its phase. Used in log lines, metric labels, Events (see `event_of`) and test ids."""

    # QUEUED
    REQUESTED = "Requested"  # new, not reconciled yet
    OPERATION_LIMIT = "OperationLimit"  # the cluster accepts no more operations now
    DEMAND_STALE = "DemandStale"  # the relay did not confirm the demand lately
    # PROVISIONING
    CREATION_STARTED = "CreationStarted"
    CREATING = "Creating"
    HOSTS_JOINING = "HostsJoining"
    HOSTS_LOST = "HostsLost"  # it was READY before
    POOL_BUSY = "PoolBusy"  # GKE repairs or upgrades it
    POOL_BROKEN = "PoolBroken"  # kept because it is occupied, so that GKE can repair it
    # READY
    READY = "Ready"
    SPEC_DRIFTED = "SpecDrifted"  # in use, but created for an earlier version of the request
    LEADER_STILL_WAITING = "LeaderStillWaiting"  # every host is ready, but the leader pod is not scheduled
    ADOPTED = "Adopted"  # found without a record, kept because its JobSet is live
    # WAITING
    STOCKOUT = "Stockout"
    QUOTA_EXCEEDED = "QuotaExceeded"
    RESERVATION_UNAVAILABLE = "ReservationUnavailable"
    IP_SPACE_EXHAUSTED = "IpSpaceExhausted"
    TOO_MANY_OPERATIONS = "TooManyOperations"
    CLUSTER_BUSY = "ClusterBusy"
    CREATION_FAILED = "CreationFailed"
    # REFUSED
    IMPOSSIBLE_SHAPE = "ImpossibleShape"
    DOES_NOT_FIT = "DoesNotFit"
    PROVISIONED_BY_GKE = "ProvisionedByGke"  # it selects hosts that GKE itself provisions
    NOT_ALLOWED = "NotAllowed"  # the settings do not allow its tenant such a slice
    CHIP_LIMIT_REACHED = "ChipLimitReached"  # allowed, but other slices hold the chips: reconciled again
    # BLOCKED
    INVALID_CONFIGURATION = "InvalidConfiguration"
    UNOWNED_POOL = "UnownedPool"
    ATTEMPTS_EXHAUSTED = "AttemptsExhausted"
    HELD = "Held"
    PAUSED = "Paused"
    # RELEASING
    DELETION_STARTED = "DeletionStarted"
    OCCUPIED = "Occupied"  # another live Job runs on it
    CREATION_IN_DOUBT = "CreationInDoubt"  # a create request may still arrive: checked before it is GONE
    DELETION_REFUSED = "DeletionRefused"  # requested again until GKE accepts it
    # GONE
    RELEASED = "Released"
    NEVER_CREATED = "NeverCreated"  # nothing was bought for it
    # no phase: the phase is unchanged
    POOL_UNREADABLE = "PoolUnreadable"


class ReportReason(StrEnum):
    """The reason of a JobSet's report, and of the Event that shows it."""

    READY = "SlicesReady"
    PROVISIONING = "SlicesProvisioning"  # the missing ones are being created
    WAITING = "SlicesWaiting"  # some cannot be created now, and are retried
    BLOCKED = "SlicesBlocked"  # an operator or a user must act
    NOT_REQUESTED = "NoSlicesRequested"  # there is no demand for slices
    RELEASING = "SlicesReleasing"  # the JobSet ended or is suspended, and its slices are being deleted
    RELEASED = "SlicesReleased"


class ClusterReason(StrEnum):
    """A problem of the cluster that the relay found; the reason of an Event on the relay's Deployment."""

    BOTH_PROVISIONERS_ACTIVE = "BothProvisionersActive"  # TPU Provisioner runs in the cluster as well

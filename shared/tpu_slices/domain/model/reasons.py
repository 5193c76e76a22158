"""The closed list of reasons: why a slice is in its phase, how a workload stands, what is wrong with a cluster.

Each is a word in CamelCase, as in Kubernetes' conditions and Events, and stands beside a message for people.
`docs/reasons.md` says of each what it means and what can be done.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a slice is in its phase. Log event, metric label, Event reason (see `event_of`) and test id at once."""

    # QUEUED
    WANTED = "Wanted"  # just heard of
    OPERATION_LIMIT = "OperationLimit"  # the cluster takes no more operations now
    DEMAND_STALE = "DemandStale"  # nobody confirmed lately that it is still wanted
    # PROVISIONING
    CREATION_STARTED = "CreationStarted"
    CREATING = "Creating"
    HOSTS_JOINING = "HostsJoining"
    HOSTS_LOST = "HostsLost"  # it was ready before
    POOL_BUSY = "PoolBusy"  # repair or upgrade by GKE
    POOL_BROKEN = "PoolBroken"  # occupied, so repair has its time
    # READY
    READY = "Ready"
    SPEC_DRIFTED = "SpecDrifted"  # serves, though made for an earlier version of the request
    LEADER_STILL_WAITING = "LeaderStillWaiting"  # ready, and yet the leader is not scheduled
    ADOPTED = "Adopted"  # found without a record, kept because its JobSet lives
    # WAITING
    STOCKOUT = "Stockout"
    QUOTA_EXCEEDED = "QuotaExceeded"
    RESERVATION_UNAVAILABLE = "ReservationUnavailable"
    NO_IP_SPACE = "NoIpSpace"
    TOO_MANY_OPERATIONS = "TooManyOperations"
    CLUSTER_BUSY = "ClusterBusy"
    CREATION_FAILED = "CreationFailed"
    # REFUSED
    IMPOSSIBLE_SHAPE = "ImpossibleShape"
    DOES_NOT_FIT = "DoesNotFit"
    MADE_BY_GKE = "MadeByGke"  # it asks for hosts that GKE itself makes
    NOT_ALLOWED = "NotAllowed"  # the settings allow its tenant no such slice
    NO_CHIPS_LEFT = "NoChipsLeft"  # they do, and others hold what is allowed: looked at again
    # BLOCKED
    CONFIGURATION = "Configuration"
    UNOWNED_POOL = "UnownedPool"
    ATTEMPTS_EXHAUSTED = "AttemptsExhausted"
    HELD = "Held"
    PAUSED = "Paused"
    # RELEASING
    DELETION_STARTED = "DeletionStarted"
    OCCUPIED = "Occupied"  # another live Job is on it
    CREATE_MAY_BE_UNDER_WAY = "CreateMayBeUnderWay"  # an order may still arrive: look again before letting go
    DELETION_REFUSED = "DeletionRefused"  # asked again until GKE takes it
    # GONE
    RELEASED = "Released"
    NEVER_MADE = "NeverMade"  # nothing was bought for it
    # no phase: nothing could be decided
    POOL_UNREADABLE = "PoolUnreadable"


class ReportReason(StrEnum):
    """How a JobSet stands with its slices; the reason of the Event that says so."""

    READY = "SlicesReady"
    COMING = "SlicesComing"  # all is on its way
    WAITING = "SlicesWaiting"  # something is in the way, and tried again by itself
    STUCK = "SlicesStuck"  # somebody has to do something
    NOT_WANTED = "SlicesNotWanted"  # nothing of ours keeps it waiting
    RETURNING = "SlicesReturning"  # it is over, and its slices are being given back
    RETURNED = "SlicesReturned"


class ClusterReason(StrEnum):
    """What the relay finds wrong with its cluster; the reason of an Event on its own Deployment."""

    BOTH_PROVISIONERS_ACTIVE = "BothProvisionersActive"  # TPU Provisioner runs beside us

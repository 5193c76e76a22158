"""The closed list of reasons: of a slice's phase, of a workload's report, and of problems with a cluster.

Each is a word in CamelCase, as in Kubernetes' conditions and Events, and is shown with a message.
`docs/reasons.md` describes each reason and what to do about it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Phase(StrEnum):
    QUEUED = "QUEUED"
    PROVISIONING = "PROVISIONING"
    READY = "READY"
    RELEASING = "RELEASING"
    GONE = "GONE"
    WAITING = "WAITING"  # retried at `retry_at`
    REFUSED = "REFUSED"  # impossible or against the policy; nothing is bought
    BLOCKED = "BLOCKED"  # an operator must act


class Reason(StrEnum):
    """Why a slice is in its phase, which the reason implies.

    Used in log lines, metric labels, Events (see `event_of`) and test ids.
    """

    phase: Phase | None
    """None: the phase of the slice does not change."""

    def __new__(cls, value: str, phase: Phase | None = None) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.phase = phase
        return member

    REQUESTED = "Requested", Phase.QUEUED  # new, not reconciled yet
    OPERATION_LIMIT = "OperationLimit", Phase.QUEUED  # the cluster accepts no more operations now
    AWAITING_TURN = "AwaitingTurn", Phase.QUEUED  # its capacity ran out lately: one slice at a time tries
    RESERVATION_NOT_OPEN = "ReservationNotOpen", Phase.QUEUED  # begins later, is full, missing or over: it was read
    DEMAND_STALE = "DemandStale", Phase.QUEUED  # the relay did not confirm the demand lately
    AWAITING_GANG = "AwaitingGang", Phase.QUEUED  # nothing is bought before all slices of its gang may be
    SPARE_WAITS = "SpareWaits", Phase.QUEUED  # demand comes first, or a limit is in the way

    CREATION_STARTED = "CreationStarted", Phase.PROVISIONING
    CREATING = "Creating", Phase.PROVISIONING
    AWAITING_FLEX_START = "AwaitingFlexStart", Phase.PROVISIONING  # GKE has not the capacity yet, or not any more
    AWAITING_CAPACITY = "AwaitingCapacity", Phase.PROVISIONING  # Compute Engine has too few such hosts, and tries on
    HOSTS_JOINING = "HostsJoining", Phase.PROVISIONING
    HOSTS_LOST = "HostsLost", Phase.PROVISIONING  # it was READY before
    GKE_UPGRADES = "GkeUpgrades", Phase.PROVISIONING  # GKE makes its hosts anew, to upgrade them
    GKE_REPAIRS = "GkeRepairs", Phase.PROVISIONING  # the same, to repair them
    POOL_BUSY = "PoolBusy", Phase.PROVISIONING  # the vendor works on it otherwise
    UNDER_MAINTENANCE = "UnderMaintenance", Phase.PROVISIONING  # Google maintains machines of its hosts
    PREEMPTED = "Preempted", Phase.PROVISIONING  # spot hosts were taken, and are asked for again
    POOL_BROKEN = "PoolBroken", Phase.PROVISIONING  # kept while it is in use, so that GKE can repair it

    READY = "Ready", Phase.READY
    SPEC_DRIFTED = "SpecDrifted", Phase.READY  # in use, but created for an earlier version of the request
    LEADER_STILL_WAITING = "LeaderStillWaiting", Phase.READY  # every host is ready, but the leader is not scheduled
    ADOPTED = "Adopted", Phase.READY  # found without a record, kept because its JobSet is live
    PODS_NOT_RUNNING = "PodsNotRunning", Phase.READY  # its Job is on it, and some of its pods do not run
    PODS_APART = "PodsApart", Phase.READY  # some pods of its Job run on other hosts
    IDLE = "Idle", Phase.READY  # every host is ready, and nobody uses it
    SPARE = "Spare", Phase.READY  # nobody has it: it waits for the next claim that fits, as a setting says
    USED_BY_OTHERS = "UsedByOthers", Phase.READY  # Jobs of others are on it, and its claim is not theirs
    LABELS_REPLACED = "LabelsReplaced", Phase.READY  # somebody replaced those of its pool: they are put back

    STOCKOUT = "Stockout", Phase.WAITING
    QUOTA_EXCEEDED = "QuotaExceeded", Phase.WAITING
    RESOURCES_EXHAUSTED = "ResourcesExhausted", Phase.WAITING  # out of stock or of quota: GKE does not say which
    RESERVATION_UNAVAILABLE = "ReservationUnavailable", Phase.WAITING  # used up, or not healthy
    RESERVATION_AWAITED = "ReservationAwaited", Phase.WAITING  # not there, or not usable yet
    IP_SPACE_EXHAUSTED = "IpSpaceExhausted", Phase.WAITING
    TOO_MANY_OPERATIONS = "TooManyOperations", Phase.WAITING
    CLUSTER_BUSY = "ClusterBusy", Phase.WAITING
    CREATION_FAILED = "CreationFailed", Phase.WAITING
    UNOWNED_POOL = "UnownedPool", Phase.WAITING  # somebody else has a pool of its name: the next attempt has another
    HOSTS_NOT_USABLE = "HostsNotUsable", Phase.WAITING  # created, but some of its hosts never became usable
    LET_GO_WITH_GANG = (
        "LetGoWithGang",
        Phase.WAITING,
    )  # the slices of its gang were held for too long

    IMPOSSIBLE_SHAPE = "ImpossibleShape", Phase.REFUSED
    DOES_NOT_FIT = "DoesNotFit", Phase.REFUSED
    PROVISIONED_BY_GKE = "ProvisionedByGke", Phase.REFUSED  # it selects hosts that GKE itself provisions
    NOT_ALLOWED = "NotAllowed", Phase.REFUSED  # the settings do not allow its tenant such a slice
    PODS_NOT_PINNED = "PodsNotPinned", Phase.REFUSED  # its pods could come to several slices: nothing pins them
    CLUSTER_RETIRED = "ClusterRetired", Phase.REFUSED  # an operator ends all slices of the cluster
    GANG_TOO_LARGE = "GangTooLarge", Phase.REFUSED  # its gang needs more chips than a limit allows
    CHIP_LIMIT_REACHED = "ChipLimitReached", Phase.REFUSED  # allowed, but others hold the chips
    PURCHASES_STOPPED = "PurchasesStopped", Phase.REFUSED  # releases are, and nothing is bought beyond what stands
    LEADER_UNSCHEDULABLE = "LeaderUnschedulable", Phase.REFUSED  # the slice was ready, and the leader did not use it
    PODS_DID_NOT_RUN = "PodsDidNotRun", Phase.REFUSED  # its slice was let go, as pods of its run did not run

    INVALID_CONFIGURATION = "InvalidConfiguration", Phase.BLOCKED
    ATTEMPTS_EXHAUSTED = "AttemptsExhausted", Phase.BLOCKED
    NO_RUNG_IN_ZONE = "NoRungInZone", Phase.BLOCKED  # its workload has slices in a zone of which its ladder has none
    HELD = "Held", Phase.BLOCKED
    PAUSED = "Paused", Phase.BLOCKED

    CLOSING_HOSTS = "ClosingHosts", Phase.RELEASING  # the relay is asked to let no new pod onto them
    WARM = "Warm", Phase.RELEASING  # nobody is on it, and it is kept for a time for a claim that fits
    DELETION_QUEUED = "DeletionQueued", Phase.RELEASING  # the cluster accepts no more operations now
    EARLIER_SLICE_STANDS = "EarlierSliceStands", Phase.RELEASING  # its record says why
    DELETION_POSTPONED = "DeletionPostponed", Phase.RELEASING  # another operation is in its way
    DELETION_STARTED = "DeletionStarted", Phase.RELEASING
    DELETION_REFUSED = "DeletionRefused", Phase.RELEASING  # requested again until GKE accepts it
    OCCUPIED = "Occupied", Phase.RELEASING  # a live Job runs on it
    RESTART_POSSIBLE = "RestartPossible", Phase.RELEASING  # a live Job ran on it a moment ago
    USERS_UNKNOWN = "UsersUnknown", Phase.RELEASING  # kept until it is known who runs on it
    RELAY_SILENT = "RelaySilent", Phase.RELEASING  # nobody can say who runs on it
    RELEASES_STOPPED = "ReleasesStopped", Phase.RELEASING  # too many JobSets are missing at once
    CREATION_IN_DOUBT = "CreationInDoubt", Phase.RELEASING  # a create request may still arrive, or the pool is created

    RELEASED = "Released", Phase.GONE
    NEVER_CREATED = "NeverCreated", Phase.GONE  # nothing was bought for it

    POOL_UNREADABLE = "PoolUnreadable"
    RESERVATION_ENDS = "ReservationEnds"  # its hosts go soon, with their reservation
    LATER_RELEASE = "LaterRelease"  # what a later release wrote, and this one does not know
    # of waits in reports only
    RECORD_UNREADABLE = "RecordUnreadable"

    @classmethod
    def _missing_(cls, value: object) -> Reason | None:
        """Read any other word as LATER_RELEASE: the record stays readable after a rollback, and is decided again."""
        return cls.LATER_RELEASE if isinstance(value, str) else None


UNUSED = frozenset({Reason.PODS_NOT_RUNNING, Reason.PODS_APART, Reason.IDLE, Reason.LEADER_STILL_WAITING})
"""The reasons of slices that stand, whole, and on which their Job does not train."""


SERVED = frozenset(
    {
        Reason.READY,
        Reason.SPEC_DRIFTED,
        Reason.ADOPTED,
        Reason.USED_BY_OTHERS,
        Reason.LABELS_REPLACED,
    }
)
"""The reasons of usable slices: nothing waits for them while their JobSet is active."""


IN_LINE = frozenset({Reason.OPERATION_LIMIT, Reason.AWAITING_TURN, Reason.RESERVATION_NOT_OPEN})
"""The reasons of slices whose creation waits for a slot."""


OF_WAITING_GANGS = frozenset({Reason.AWAITING_GANG, Reason.LET_GO_WITH_GANG, Reason.GANG_TOO_LARGE})
"""The reasons of slices that are not made as their gang waits."""


LIMITED = (Reason.CHIP_LIMIT_REACHED, Reason.PURCHASES_STOPPED)
"""The reasons of slices that are refused as long as others hold the chips."""


EXPLAINED = frozenset(
    {Reason.OCCUPIED, Reason.RELAY_SILENT, Reason.RELEASES_STOPPED, Reason.EARLIER_SLICE_STANDS, Reason.WARM}
)
"""The reasons of what goes once nobody uses a pool, another alert, or slice, is attended to, or a time is over.
"""


class ReportReason(StrEnum):
    """The reason of a JobSet's report, and of the Event that shows it."""

    READY = "SlicesReady"
    NOT_RUNNING = "WorkloadNotRunning"  # the slices are ready, and some pods do not run on them
    IDLE = "SlicesIdle"  # the slices are ready, and nobody uses some of them
    PROVISIONING = "SlicesProvisioning"  # the missing ones are being created
    WAITING = "SlicesWaiting"  # some cannot be created now, and are retried
    BLOCKED = "SlicesBlocked"  # an operator or a user must act
    GANG_CANNOT_FIT = "GangCannotFit"  # it needs more chips together than a limit allows
    GANG_WAITS = "GangWaits"  # nothing is bought before all of it may be, or others are before it in line
    GANG_LET_GO = "GangLetGo"  # its slices were held for too long, and are tried again later
    GANG_YIELDED = "GangYielded"  # its slices went to a gang that waits longer
    GANG_FORMING = "GangForming"  # its slices are being made, and its pods start together
    GANG_HELD = "GangHeld"  # some stand, and others cannot be made now
    GANG_REPAIRING = "GangRepairing"  # it ran, lost slices, and holds the others until these are replaced
    GANG_STARTED = "GangStarted"  # all slices of its gangs stand, and its pods were let go together
    NOT_REQUESTED = "NoSlicesRequested"  # there is no demand for slices
    RELEASING = "SlicesReleasing"  # the JobSet ended or is suspended, and its slices are being deleted
    RELEASED = "SlicesReleased"

    @property
    def serves(self) -> bool:
        """Whether every slice that was requested serves."""
        return self in {ReportReason.READY, ReportReason.GANG_STARTED}


class ClusterReason(StrEnum):
    """A problem of the cluster that the relay found; the reason of an Event on the relay's Deployment."""

    BOTH_PROVISIONERS_ACTIVE = "BothProvisionersActive"  # another provisioner runs in the cluster as well


class OwnerReason(StrEnum):
    """Why the pods of an object get no slice, or do not ask for one; the reason of an Event on that object."""

    NOT_SERVED = "NotServed"  # nothing here makes slices for its kind, or for its templates
    AWAITING_POD_GROUP = "AwaitingPodGroup"  # the scheduler tries none of them before others exist
    GANG_NOT_HELD = "GangNotHeld"  # of a gang, and nothing holds them until the slices of all stand
    NOT_IN_GANG = "NotInGang"  # of no gang, and the scheduling gate of gangs held them until it was taken off


class WorkloadReason(StrEnum):
    """Why the relay tells nothing of a workload yet; the reason of an Event on it."""

    HELD_BACK = "HeldBack"  # it changes too often

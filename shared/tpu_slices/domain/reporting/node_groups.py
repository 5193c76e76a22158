"""The status of a TPUNodeGroup: TPU operator's conditions and reasons, from the record of its slice. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tpu_slices.domain.model.node_groups import INVALID_TEMPLATE, Condition, ConditionType, NodeGroupStatus
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import CapacityKind
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord

READY = "Ready"
PROVISIONING = "Provisioning"
EXTERNAL_TEMPLATE = "ExternalTemplate"

_REASONS: Mapping[Reason, str] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                Reason.REQUESTED,
                Reason.OPERATION_LIMIT,
                Reason.AWAITING_TURN,
                Reason.RESERVATION_NOT_OPEN,
                Reason.DEMAND_STALE,
                Reason.CREATION_STARTED,
                Reason.CREATING,
                Reason.ADOPTED,
            ),
            PROVISIONING,
        ),
        Reason.HOSTS_JOINING: "AwaitingNodeJoin",
        **dict.fromkeys((Reason.READY, Reason.SPEC_DRIFTED, Reason.LABELS_REPLACED), READY),
        Reason.POOL_BUSY: "Unstable",
        **dict.fromkeys((Reason.POOL_BROKEN, Reason.HOSTS_NOT_USABLE), "VMGone"),
        **dict.fromkeys(
            (
                Reason.STOCKOUT,
                Reason.QUOTA_EXCEEDED,
                Reason.RESOURCES_EXHAUSTED,
                Reason.RESERVATION_UNAVAILABLE,
                Reason.RESERVATION_AWAITED,
                Reason.IP_SPACE_EXHAUSTED,
            ),
            "InstancesCreationFailed",
        ),
        **dict.fromkeys(
            (
                Reason.CREATION_FAILED,
                Reason.UNOWNED_POOL,
                Reason.ATTEMPTS_EXHAUSTED,
            ),
            "OperationFailed",
        ),
        **dict.fromkeys(
            (
                Reason.TOO_MANY_OPERATIONS,
                Reason.CLUSTER_BUSY,
                Reason.POOL_UNREADABLE,
            ),
            "ReconcileError",
        ),
        **dict.fromkeys(
            (
                Reason.IMPOSSIBLE_SHAPE,
                Reason.DOES_NOT_FIT,
                Reason.NOT_ALLOWED,
                Reason.CHIP_LIMIT_REACHED,
                Reason.PURCHASES_STOPPED,
                Reason.CLUSTER_RETIRED,
                Reason.INVALID_CONFIGURATION,
            ),
            "RequestRejected",
        ),
        **dict.fromkeys(
            (
                Reason.DELETION_QUEUED,
                Reason.DELETION_POSTPONED,
                Reason.EARLIER_SLICE_STANDS,
                Reason.DELETION_STARTED,
                Reason.DELETION_REFUSED,
                Reason.CREATION_IN_DOUBT,
            ),
            "DeletingMIG",
        ),
        **dict.fromkeys((Reason.RELEASED, Reason.NEVER_CREATED), "DeletingNodes"),
    }
)
"""The reasons that TPU operator has for ours; every other keeps its own name."""
_STANDS = frozenset({Reason.HOSTS_JOINING, Reason.HOSTS_LOST, Reason.PREEMPTED, Reason.POOL_BUSY, Reason.POOL_BROKEN})
"""The reasons with which all that a slice consists of on Compute Engine stands."""
_GONE = frozenset({Reason.POOL_BROKEN, Reason.HOSTS_NOT_USABLE})
"""Compute Engine says that machines are gone: they are still in use, or given up."""
_LOST = frozenset({Reason.HOSTS_LOST, Reason.PREEMPTED, *_GONE})
_STEPS: Mapping[str, int] = MappingProxyType({"regions": 0, "global": 1, "zones": 2})
"""How many of policy and template stand while an operation of this scope runs."""


def status_of(record: SliceRecord, own: WorkloadRecord | None) -> NodeGroupStatus:
    """Return the status of a TPUNodeGroup. `own`: its record, None if there is none.

    | record of the slice               | policy, template and group                  | Ready                          |
    |-----------------------------------|---------------------------------------------|--------------------------------|
    | READY                             | True                                        | True                           |
    | PROVISIONING, all of it stands    | True; the group False while Compute Engine  | False, with the missing hosts  |
    |                                   | works on it                                 |                                |
    | PROVISIONING, being created       | True up to the step that is under way       | False                          |
    | RELEASING, GONE                   | as they were                                | False, with what is awaited    |
    | any other                         | False, for the reason of Ready              | False, with the reason         |

    A single host needs no policy: it has no condition for one. A template of the user's is not ours to make: its
    condition is True unless Compute Engine refuses what comes of it.
    """
    nodes = record.made_as.hosts if record.made_as else record.current.hosts.joined
    ready = min(record.current.hosts.usable, nodes) if record.phase in {Phase.READY, Phase.PROVISIONING} else 0
    missing = nodes - ready
    lost = record.seen_as in _LOST
    return NodeGroupStatus(
        generation=own.generation if own else 0,
        conditions=(*_resources(record), _condition(ConditionType.READY, record, stands=record.phase is Phase.READY)),
        ready=ready,
        reconciling=0 if lost else missing,
        failed=missing if lost else 0,
        gone=record.phase is Phase.GONE and own is not None and own.state.ended,
    )


def reason_of(record: SliceRecord) -> str:
    """Return the reason of the condition Ready."""
    if record.reason is Reason.HOSTS_LOST:
        return "NodeLost" if record.made_as and record.current.hosts.joined < record.made_as.hosts else "NodeNotReady"
    if record.reason in _GONE and record.made_as and record.made_as.capacity.kind is CapacityKind.SPOT:
        return "Preempted"
    return _REASONS.get(record.reason, record.reason.value)


def _resources(record: SliceRecord) -> tuple[Condition, ...]:
    spec = record.made_as
    if record.phase in {Phase.RELEASING, Phase.GONE}:
        return ()
    done = _done(record)
    policy, template, group = (
        ConditionType.WORKLOAD_POLICY,
        ConditionType.INSTANCE_TEMPLATE,
        ConditionType.INSTANCE_GROUP,
    )
    brought = spec is not None and spec.instance is not None and spec.instance.template is not None
    return (
        *(() if spec is None or spec.hosts == 1 else (_condition(policy, record, stands=done > 0),)),
        _brought(record) if brought else _condition(template, record, stands=done > 1),
        _condition(group, record, stands=done > 2 and record.reason is not Reason.POOL_BUSY),
    )


def _done(record: SliceRecord) -> int:
    """Return how many of policy, template and group stand."""
    if record.phase is Phase.READY or record.seen_as in _STANDS:
        return 3
    if record.phase is not Phase.PROVISIONING:
        return 0
    if record.seen_as is Reason.AWAITING_CAPACITY:
        return 2
    return _STEPS.get((record.current.operation or "").partition("/")[0], 0)


def _condition(kind: ConditionType, record: SliceRecord, *, stands: bool) -> Condition:
    reason = READY if stands else reason_of(record)
    message = record.message if kind is ConditionType.READY or not stands else ""
    return Condition(type=kind, status=stands, reason=reason, message=message)


def _brought(record: SliceRecord) -> Condition:
    """Return the condition of an instance template of the user's."""
    refused = record.reason is Reason.INVALID_CONFIGURATION
    return Condition(
        type=ConditionType.INSTANCE_TEMPLATE,
        status=not refused,
        reason=INVALID_TEMPLATE if refused else EXTERNAL_TEMPLATE,
        message=record.message if refused else "",
    )

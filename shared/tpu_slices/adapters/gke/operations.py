"""What GKE's operations say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType

from google.cloud.container_v1 import Operation, StatusCondition

from tpu_slices.adapters import cloud_errors
from tpu_slices.adapters.gke.requests import pool_path
from tpu_slices.domain.model.observations import Broken, Cause, Creating, Failure, Observation, OperationSeen
from tpu_slices.ports.backend import PoolOrder

_WORK: Mapping[Cause, frozenset[int]] = MappingProxyType(
    {
        Cause.UPGRADE: frozenset({Operation.Type.UPGRADE_NODES, Operation.Type.AUTO_UPGRADE_NODES}),
        Cause.REPAIR: frozenset({Operation.Type.AUTO_REPAIR_NODES}),
        Cause.WORK: frozenset(),
    }
)
"""What GKE does to a pool, by the types of its operations; of several that run, the first one here is told."""


def work_of(operation: Operation) -> Cause:
    return next((cause for cause, types in _WORK.items() if operation.operation_type in types), Cause.WORK)


def at_work(operations: Iterable[Operation], target: str) -> Operation | None:
    """Return the operation that runs on the pool whose link has this end; of several an upgrade first."""
    running = (each for each in operations if not has_ended(each) and is_on(each, target))
    return min(running, key=lambda each: list(_WORK).index(work_of(each)), default=None)


def began(operation: Operation) -> datetime | None:
    """Return when an operation began; None: GKE does not say it in RFC 3339."""
    try:
        said = datetime.fromisoformat(operation.start_time)
    except ValueError:
        return None
    return said if said.tzinfo is not None else None


def began_by(operation: Operation, time_: datetime) -> bool:
    """Return whether GKE says that an operation began until then."""
    said = began(operation)
    return said is not None and said <= time_


def created(creation: Operation | None, *, otherwise: Observation) -> Observation:
    """Return the observation that follows from a creation; `otherwise` if it succeeded or is not known."""
    if creation is None:
        return otherwise
    if not has_ended(creation):
        return Creating()
    why = failure(creation)
    return otherwise if why is None else Broken(why)


def seen(operation: Operation, pools: str) -> OperationSeen | None:
    """Return an operation that creates or deletes one of the pools whose links have this part, or None."""
    _, here, pool = operation.target_link.partition(pools)
    makes = operation.operation_type == Operation.Type.CREATE_NODE_POOL
    if not here or not (makes or operation.operation_type == Operation.Type.DELETE_NODE_POOL):
        return None
    return OperationSeen(pool=pool, creates=makes, ended=has_ended(operation))


def has_ended(operation: Operation) -> bool:
    return bool(operation.status == Operation.Status.DONE)


def target_of(order: PoolOrder) -> str:
    """Return the end of the links to an order's pool.

    Only the end is known: GKE writes the project's number, and at times `zones/` instead of `locations/`.
    """
    return f"/clusters/{pool_path(order).partition('/clusters/')[2]}"


def is_on(operation: Operation, target: str) -> bool:
    """Return whether an operation is on the pool whose link has this end."""
    return bool(operation.target_link.endswith(target))


def creates(operation: Operation, target: str) -> bool:
    return operation.operation_type == Operation.Type.CREATE_NODE_POOL and is_on(operation, target)


def failure(operation: Operation) -> Failure | None:
    """Return why an operation failed, None if it did not: DONE can mean both (google.container.v1 Operation.error).

    `status_message` and `nodepool_conditions` are deprecated for `error`; any of the three may be the only one set.
    """
    error, conditions = operation.error, operation.nodepool_conditions
    blamed = [each for each in conditions if cloud_errors.fails(_code(each), each.canonical_code, each.message)]
    if not has_ended(operation) or not (error.code or error.message or operation.status_message or blamed):
        return None
    texts = (error.message, operation.status_message, *(each.message for each in blamed), operation.detail)
    return cloud_errors.failure(error.code or canonical(blamed), texts, codes(conditions))


def canonical(conditions: Iterable[StatusCondition]) -> int:
    """Return the first google.rpc.Code of the conditions that is an error, else 0."""
    return next((code for condition in conditions if (code := int(condition.canonical_code))), 0)


def codes(conditions: Iterable[StatusCondition]) -> list[str]:
    return [_code(condition) for condition in conditions]


def _code(condition: StatusCondition) -> str:
    """Return the name of the condition's code; empty for one that this version of the client does not know."""
    return str(getattr(condition.code, "name", ""))

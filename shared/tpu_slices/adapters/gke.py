"""Slices as node pools of GKE: the `Backend` port over google.container.v1."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

import grpc
from google.api_core import exceptions as google
from google.api_core.retry import Retry, if_exception_type
from google.cloud.container_v1 import ClusterManagerClient, NodePool, Operation, StatusCondition
from google.cloud.container_v1.services.cluster_manager.transports import ClusterManagerGrpcTransport

from tpu_slices.adapters import cloud_errors
from tpu_slices.adapters.cloud_errors import CannotBeMade
from tpu_slices.adapters.gke_requests import (
    create_request,
    location_path,
    operation_path,
    pool_path,
    relabel_request,
)
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.joining import JoinToken
from tpu_slices.domain.model.observations import (
    Absent,
    Broken,
    Busy,
    Cause,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    LegacyPool,
    Observation,
    OperationSeen,
    Outcome,
    PoolSeen,
    Refused,
    Running,
    Started,
    Unowned,
    Unreadable,
)
from tpu_slices.domain.planning.pool_labels import (
    FINGERPRINT_LABEL,
    lacking,
    legacy_pool,
    missing_proof,
    naming_labels,
    pool_seen,
)
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.ports.errors import Temporary

_READ: Mapping[str, Any] = MappingProxyType(
    {
        "timeout": 8.0,
        "retry": Retry(
            if_exception_type(google.DeadlineExceeded, google.ServiceUnavailable),
            initial=0.2,
            maximum=2.0,
            timeout=8.0,
        ),
    }
)
"""Seconds for one read with its retries; the last retry may take as long again: at most 16 in all."""
CONFIRMED_FOR = 60.0
"""Seconds for which a cluster counts as seen: one that was replaced since has none of the pools that it had."""
CLOCKS_DIFFER_BY = timedelta(minutes=1)
"""At most, GKE's and ours; to delete a pool and to make another one takes longer."""
_WORK: Mapping[Cause, frozenset[int]] = MappingProxyType(
    {
        Cause.UPGRADE: frozenset({Operation.Type.UPGRADE_NODES, Operation.Type.AUTO_UPGRADE_NODES}),
        Cause.REPAIR: frozenset({Operation.Type.AUTO_REPAIR_NODES}),
        Cause.WORK: frozenset(),
    }
)
"""What GKE does to a pool, by the types of its operations; of several that run, the first one here is told."""
_CHANGE: Mapping[str, Any] = MappingProxyType({"timeout": 25.0, "retry": None})
"""Never retried: if the response is lost, the outcome is unknown. A look makes at most three reads, a change at most
two: each method of the port ends within a minute."""


def client(emulator_host: str | None) -> ClusterManagerClient:
    """Return Google's client; for an emulator at `host:port`, one that speaks gRPC without TLS and credentials."""
    if emulator_host is None:
        return ClusterManagerClient()
    return ClusterManagerClient(transport=ClusterManagerGrpcTransport(channel=grpc.insecure_channel(emulator_host)))


class GkeBackend:
    """The node pools of every cluster that the client's credentials can access.

    All it keeps between calls is when each cluster was last seen to be the one on record.
    """

    def __init__(self, client: ClusterManagerClient, seconds: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._seconds = seconds
        self._confirmed: dict[tuple[str, str | None], float] = {}

    def look(self, order: PoolOrder) -> Observation:
        try:
            pool = self._pool(order)
            return self._missing(order) if pool is None else self._present(pool, order)
        except google.GoogleAPIError as error:
            return Unreadable(cloud_errors.shortened(str(error)))

    def create(self, order: PoolOrder) -> Outcome:
        try:
            return Started(self._create(order))
        except CannotBeMade as why:
            return Refused(Failure(why.kind, str(why)))
        except google.GoogleAPIError as error:
            refused = _refused(error)
            return self._name_taken(order) or refused if refused.failure.kind is FailureKind.BUSY else refused

    def delete(self, order: PoolOrder) -> Outcome:
        try:
            if not order.seen_ours and not self._deletable(order):
                return Started(None)
            operation = self._client.delete_node_pool(name=pool_path(order), **_CHANGE)
        except google.NotFound:
            return Started(None)
        except google.GoogleAPIError as error:
            return _refused(error)
        return Started(operation.name)

    def delete_remains(self, order: PoolOrder) -> Outcome:  # noqa: ARG002 - a node pool is one thing: it leaves nothing
        return Started(None)

    def cancel(self, order: PoolOrder) -> Outcome:
        try:
            creation = self._cancellable(order)
            if creation is None:
                return Started(None)
            self._client.cancel_operation(name=operation_path(order.cluster_path, creation.name), **_CHANGE)
        except google.NotFound:
            return Started(None)
        except (google.BadRequest, google.MethodNotImplemented) as error:
            return Refused(Failure(FailureKind.BUSY, cloud_errors.shortened(error.message)))
        except google.GoogleAPIError as error:
            return _refused(error)
        return Started(creation.name)

    def relabel(self, order: PoolOrder) -> Outcome:
        try:
            pool = self._pool(order)
            ours = pool is not None and not self._why_not_ours(pool, order)
            request = relabel_request(order, pool) if pool is not None and ours else None
            if request is None:
                return Started(None)
            operation = self._client.update_node_pool(request=request, **_CHANGE)
        except google.NotFound:
            return Started(None)
        except google.GoogleAPIError as error:
            return _refused(error)
        return Started(operation.name)

    def join(self, order: PoolOrder, token: JoinToken | None) -> Outcome:  # noqa: ARG002 - its hosts join by themselves
        return Started(None)

    def inventory(self, cluster: ClusterSettings) -> tuple[PoolSeen, ...]:
        seen = (pool_seen(pool.name, pool.config.labels, cluster.cluster) for pool in self._pools(cluster))
        return tuple(pool for pool in seen if pool is not None)

    def legacy_pools(self, cluster: ClusterSettings) -> tuple[LegacyPool, ...]:
        found = (legacy_pool(pool.name, pool.config.labels) for pool in self._pools(cluster))
        return tuple(pool for pool in found if pool is not None)

    def pool_operations(self, cluster: ClusterSettings) -> frozenset[OperationSeen]:
        try:
            operations = self._operations(cluster.path)
        except google.GoogleAPIError as error:
            raise Temporary(cloud_errors.shortened(str(error))) from error
        pools = f"/clusters/{cluster.path.rpartition('/')[2]}/nodePools/"
        seen = (_seen(operation, pools) for operation in operations)
        return frozenset(operation for operation in seen if operation is not None)

    def _create(self, order: PoolOrder) -> str:
        """Request an order's pool; return the operation's name."""
        request, interval = create_request(order), order.settings.host_maintenance_interval
        if interval is None:
            return str(self._client.create_node_pool(request=request, **_CHANGE).name)
        from tpu_slices.adapters import gke_beta

        return gke_beta.create(self._client, request, interval, **_CHANGE)

    def _missing(self, order: PoolOrder) -> Observation:
        """Return the observation for a pool that was not found.

        Unreadable if the cluster does not exist or is not the one on record. Otherwise Creating or Broken if the
        creation on record is running or failed, else Absent.
        """
        why_not = self._why_unconfirmed(order)
        return Unreadable(why_not) if why_not else _created(self._noted(order), otherwise=Absent())

    def _why_unconfirmed(self, order: PoolOrder) -> str | None:
        """Return why a pool that is not there proves nothing; None: the cluster is, or just was, the one on record."""
        key, now = (order.cluster_path, order.cluster_gke_id), self._seconds()
        if now - self._confirmed.get(key, -CONFIRMED_FOR) < CONFIRMED_FOR:
            return None
        try:
            cluster = self._client.get_cluster(name=order.cluster_path, **_READ)
        except google.NotFound:
            return f"{order.cluster_path} does not exist."
        if order.cluster_gke_id not in {None, cluster.id}:
            return f"{order.cluster_path} is not the cluster on record: its id is {cluster.id}."
        self._confirmed[key] = now
        return None

    def _present(self, pool: NodePool, order: PoolOrder) -> Observation:
        """Return Unowned, or for a pool that is ours what its status means (google.container.v1 NodePool.Status)."""
        not_ours = self._why_not_ours(pool, order)
        if not_ours is not None:
            return Unowned(not_ours)
        match pool.status:
            case NodePool.Status.PROVISIONING:
                return _created(self._creation(order), otherwise=Creating(operation_runs=False))
            case NodePool.Status.RUNNING:
                fingerprint = pool.config.labels.get(FINGERPRINT_LABEL)
                return Running(fingerprint, lacking=_lacking(pool, order), refills=_refills(pool))
            case NodePool.Status.RECONCILING:
                return self._busy(pool, order)
            case NodePool.Status.STOPPING:
                return Deleting()
            case NodePool.Status.ERROR | NodePool.Status.RUNNING_WITH_ERROR:
                return self._with_error(pool, order)
            case _:
                return Unreadable(f"The node pool's status is not known to the provisioner: {pool.status!r}.")

    def _busy(self, pool: NodePool, order: PoolOrder) -> Busy:
        """Return Busy, with what the running operation is if that is asked: the operations are listed for it."""
        says = cloud_errors.shortened(pool.status_message or "a repair, an upgrade or a resize.")
        if not order.asks_work:
            return Busy(says)
        run = [op for op in self._operations(order.cluster_path) if not _ended(op) and _is_on(op, _target(order))]
        upgrades_first = sorted(run, key=lambda op: list(_WORK).index(_work_of(op)))
        found = next(iter(upgrades_first), None)
        return Busy(says) if found is None else Busy(says, _work_of(found), _began(found))

    def _with_error(self, pool: NodePool, order: PoolOrder) -> Observation:
        """Return Broken; Running for a flex-start pool that only has no capacity yet, for which GKE goes on trying."""
        why = self._why_broken(pool, order)
        usable = pool.status == NodePool.Status.RUNNING_WITH_ERROR
        if usable and pool.config.flex_start and why.kind is FailureKind.STOCKOUT:
            return Running(pool.config.labels.get(FINGERPRINT_LABEL), lacking=_lacking(pool, order))
        return Broken(why)

    def _why_broken(self, pool: NodePool, order: PoolOrder) -> Failure:
        """Return the creation's failure, which has more detail; for a pool that broke later, that of its conditions."""
        creation = self._creation(order)
        failure = None if creation is None else _failure(creation)
        if failure is not None:
            return failure
        texts = (*(condition.message for condition in pool.conditions), pool.status_message)
        return cloud_errors.failure(_canonical(pool.conditions), texts, _codes(pool.conditions))

    def _cancellable(self, order: PoolOrder) -> Operation | None:
        """Return the creation of the order's pool if it runs and is not being cancelled; None for others' pools."""
        pool = self._pool(order)
        if pool is not None and self._why_not_ours(pool, order):
            return None
        creation = self._noted(order) if pool is None else self._creation(order)
        if creation is None or not _creates(creation, _target(order)):
            return None
        return creation if creation.status in {Operation.Status.PENDING, Operation.Status.RUNNING} else None

    def _deletable(self, order: PoolOrder) -> bool:
        pool = self._pool(order)
        return pool is not None and pool.status != NodePool.Status.STOPPING and self._why_not_ours(pool, order) is None

    def _why_not_ours(self, pool: NodePool, order: PoolOrder) -> str | None:
        """Return why neither a pool's labels nor the record prove it ours; None if one of them does."""
        why = missing_proof(pool.config.labels, order.job, legacy_pool=order.legacy_pool is not None)
        return why if why is not None and not self._still_ours(order) else None

    def _still_ours(self, order: PoolOrder) -> bool:
        """Return whether a pool that was ours by the record is the same: no later one was made under its name.

        Without a record, a pool is found by its labels within minutes, or by its operations, which GKE keeps for days.
        """
        if order.ours_since is None:
            return False
        target = _target(order)
        later = (each for each in self._operations(order.cluster_path) if _creates(each, target))
        known = order.ours_since + CLOCKS_DIFFER_BY
        return all(each.name == order.operation or _began_by(each, known) for each in later)

    def _name_taken(self, order: PoolOrder) -> Refused | None:
        """Return NAME_TAKEN if the pool exists: until its creation ends, GKE answers another create with "busy"."""
        try:
            taken = self._pool(order) is not None
        except google.GoogleAPIError:
            return None
        return Refused(Failure(FailureKind.NAME_TAKEN, f"{pool_path(order)} exists.")) if taken else None

    def _pool(self, order: PoolOrder) -> NodePool | None:
        try:
            return self._client.get_node_pool(name=pool_path(order), **_READ)
        except google.NotFound:
            return None

    def _pools(self, cluster: ClusterSettings) -> Sequence[NodePool]:
        try:
            return self._client.list_node_pools(parent=cluster.path, **_READ).node_pools
        except google.GoogleAPIError as error:
            raise Temporary(cloud_errors.shortened(str(error))) from error

    def _creation(self, order: PoolOrder) -> Operation | None:
        """Return the operation that creates, or created, the pool: the one on record, else found by the pool's name."""
        if order.operation is not None:
            return self._noted(order)
        return next((op for op in self._operations(order.cluster_path) if _creates(op, _target(order))), None)

    def _noted(self, order: PoolOrder) -> Operation | None:
        """Return the operation on record; None if there is none, or GKE no longer has it."""
        if order.operation is None:
            return None
        try:
            return self._client.get_operation(name=operation_path(order.cluster_path, order.operation), **_READ)
        except google.NotFound:
            return None

    def _operations(self, cluster_path: str) -> list[Operation]:
        """Return the location's operations; GKE offers no filter, and drops operations that ended days ago."""
        return list(self._client.list_operations(parent=location_path(cluster_path), **_READ).operations)


def _lacking(pool: NodePool, order: PoolOrder) -> str:
    """Return which of the labels that name the slice a pool lacks; empty: none."""
    return lacking(
        pool.config.labels, naming_labels(order.job, order.attempt, legacy_pool=order.legacy_pool is not None)
    )


def _refills(pool: NodePool) -> bool:
    """Return whether GKE still asks for all hosts of a spot pool: its instance group has that size as its target."""
    asked = pool.initial_node_count * len(pool.locations)
    return bool(pool.config.spot and asked and not pool.autoscaling.enabled)


def _work_of(operation: Operation) -> Cause:
    return next((cause for cause, types in _WORK.items() if operation.operation_type in types), Cause.WORK)


def _began(operation: Operation) -> datetime | None:
    """Return when an operation began; None: GKE does not say it in RFC 3339."""
    try:
        began = datetime.fromisoformat(operation.start_time)
    except ValueError:
        return None
    return began if began.tzinfo is not None else None


def _began_by(operation: Operation, time_: datetime) -> bool:
    """Return whether GKE says that an operation began until then."""
    began = _began(operation)
    return began is not None and began <= time_


def _created(creation: Operation | None, *, otherwise: Observation) -> Observation:
    """Return the observation that follows from a creation; `otherwise` if it succeeded or is not known."""
    if creation is None:
        return otherwise
    if not _ended(creation):
        return Creating()
    failure = _failure(creation)
    return otherwise if failure is None else Broken(failure)


def _seen(operation: Operation, pools: str) -> OperationSeen | None:
    """Return an operation that creates or deletes one of the pools whose links have this part, or None."""
    _, here, pool = operation.target_link.partition(pools)
    creates = operation.operation_type == Operation.Type.CREATE_NODE_POOL
    if not here or not (creates or operation.operation_type == Operation.Type.DELETE_NODE_POOL):
        return None
    return OperationSeen(pool=pool, creates=creates, ended=_ended(operation))


def _ended(operation: Operation) -> bool:
    return bool(operation.status == Operation.Status.DONE)


def _target(order: PoolOrder) -> str:
    """Return the end of the links to an order's pool.

    Only the end is known: GKE writes the project's number, and at times `zones/` instead of `locations/`.
    """
    return f"/clusters/{pool_path(order).partition('/clusters/')[2]}"


def _is_on(operation: Operation, target: str) -> bool:
    """Return whether an operation is on the pool whose link has this end."""
    return bool(operation.target_link.endswith(target))


def _creates(operation: Operation, target: str) -> bool:
    return operation.operation_type == Operation.Type.CREATE_NODE_POOL and _is_on(operation, target)


def _failure(operation: Operation) -> Failure | None:
    """Return why an operation failed, None if it did not: DONE can mean both (google.container.v1 Operation.error).

    `status_message` and `nodepool_conditions` are deprecated for `error`; any of the three may be the only one set.
    """
    error, conditions = operation.error, operation.nodepool_conditions
    blamed = [each for each in conditions if cloud_errors.fails(_code(each), each.canonical_code, each.message)]
    if not _ended(operation) or not (error.code or error.message or operation.status_message or blamed):
        return None
    texts = (error.message, operation.status_message, *(each.message for each in blamed), operation.detail)
    return cloud_errors.failure(error.code or _canonical(blamed), texts, _codes(conditions))


def _canonical(conditions: Iterable[StatusCondition]) -> int:
    """Return the first google.rpc.Code of the conditions that is an error, else 0."""
    return next((code for condition in conditions if (code := int(condition.canonical_code))), 0)


def _codes(conditions: Iterable[StatusCondition]) -> list[str]:
    return [_code(condition) for condition in conditions]


def _code(condition: StatusCondition) -> str:
    """Return the name of the condition's code; empty for one that this version of the client does not know."""
    return str(getattr(condition.code, "name", ""))


def _refused(error: google.GoogleAPIError) -> Refused:
    classified = cloud_errors.refusal(error)
    if isinstance(classified, Temporary):
        raise classified from error
    return Refused(classified)

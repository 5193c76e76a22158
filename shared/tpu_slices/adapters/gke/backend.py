"""Slices as node pools of GKE: the `Backend` port over google.container.v1."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import grpc
from google.api_core import exceptions as google
from google.api_core.retry import Retry, if_exception_type
from google.cloud.container_v1 import ClusterManagerClient, NodePool, Operation
from google.cloud.container_v1.services.cluster_manager.transports import ClusterManagerGrpcTransport

from tpu_slices.adapters import cloud_errors
from tpu_slices.adapters.cloud_errors import CannotBeMade
from tpu_slices.adapters.gke import operations
from tpu_slices.adapters.gke.requests import (
    create_request,
    location_path,
    naming_labels_of,
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
            found = self._operations(cluster.path)
        except google.GoogleAPIError as error:
            raise Temporary(cloud_errors.shortened(str(error))) from error
        pools = f"/clusters/{cluster.path.rpartition('/')[2]}/nodePools/"
        seen = (operations.seen(each, pools) for each in found)
        return frozenset(operation for operation in seen if operation is not None)

    def _create(self, order: PoolOrder) -> str:
        """Request an order's pool; return the operation's name."""
        request, interval = create_request(order), order.settings.host_maintenance_interval
        if interval is None:
            return str(self._client.create_node_pool(request=request, **_CHANGE).name)
        from tpu_slices.adapters.gke import beta

        return beta.create(self._client, request, interval, **_CHANGE)

    def _missing(self, order: PoolOrder) -> Observation:
        """Return the observation for a pool that was not found.

        Unreadable if the cluster does not exist or is not the one on record. Otherwise Creating or Broken if the
        creation on record is running or failed, else Absent.
        """
        why_not = self._why_unconfirmed(order)
        return Unreadable(why_not) if why_not else operations.created(self._noted(order), otherwise=Absent())

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
                return operations.created(self._creation(order), otherwise=Creating(operation_runs=False))
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
        found = operations.at_work(self._operations(order.cluster_path), operations.target_of(order))
        return Busy(says) if found is None else Busy(says, operations.work_of(found), operations.began(found))

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
        failure = None if creation is None else operations.failure(creation)
        if failure is not None:
            return failure
        texts = (*(condition.message for condition in pool.conditions), pool.status_message)
        return cloud_errors.failure(operations.canonical(pool.conditions), texts, operations.codes(pool.conditions))

    def _cancellable(self, order: PoolOrder) -> Operation | None:
        """Return the creation of the order's pool if it runs and is not being cancelled; None for others' pools."""
        pool = self._pool(order)
        if pool is not None and self._why_not_ours(pool, order):
            return None
        creation = self._noted(order) if pool is None else self._creation(order)
        if creation is None or not operations.creates(creation, operations.target_of(order)):
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
        known, target = order.ours_if_made_by, operations.target_of(order)
        if known is None:
            return False
        creations = (each for each in self._operations(order.cluster_path) if operations.creates(each, target))
        return all(each.name == order.made_by or operations.began_by(each, known) for each in creations)

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
        target = operations.target_of(order)
        return next((each for each in self._operations(order.cluster_path) if operations.creates(each, target)), None)

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
    return lacking(pool.config.labels, naming_labels_of(order))


def _refills(pool: NodePool) -> bool:
    """Return whether GKE still asks for all hosts of a spot pool: its instance group has that size as its target."""
    asked = pool.initial_node_count * len(pool.locations)
    return bool(pool.config.spot and asked and not pool.autoscaling.enabled)


def _refused(error: google.GoogleAPIError) -> Refused:
    classified = cloud_errors.refusal(error)
    if isinstance(classified, Temporary):
        raise classified from error
    return Refused(classified)

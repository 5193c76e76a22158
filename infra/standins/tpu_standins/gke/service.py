"""One call of google.container.v1.ClusterManager: state and request in, state and response out. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from google.cloud import container_v1 as gke

from tpu_standins.cloud.timed import Moment
from tpu_standins.gke import faults, lifecycle
from tpu_standins.gke.codes import Code
from tpu_standins.gke.field_rules import updated
from tpu_standins.gke.messages import cluster_message, operation_message, pool_message
from tpu_standins.gke.paths import as_written, parse_cluster, parse_location, parse_operation, parse_pool
from tpu_standins.gke.refusals import refusal
from tpu_standins.gke.rules import Ask, Refusal
from tpu_standins.gke.state import Operation, State

Message = Any
"""One of Google's request or response messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a call. `started` is the operation that it started, also if its response was lost."""

    state: State
    answer: Message | Refusal
    cluster: str = ""
    pool: str = ""
    started: Operation | None = None


class _Empty:
    """google.protobuf.Empty, which the client library has no class for."""

    @staticmethod
    def serialize(_: Message) -> bytes:
        return b""


@dataclass(frozen=True, slots=True)
class Method:
    request: Any
    response: Any
    respond: Callable[[State, Any, Moment], Outcome]


def _create(state: State, request: gke.CreateNodePoolRequest, moment: Moment) -> Outcome:
    if parse_cluster(request.parent) is None:
        return _malformed(state, "parent", request.parent)
    ask = Ask(state=state, cluster_path=request.parent, name=request.node_pool.name, spec=request.node_pool)
    return _change("CreateNodePool", ask, moment)


def _delete(state: State, request: gke.DeleteNodePoolRequest, moment: Moment) -> Outcome:
    ask = _pool_ask(state, request.name)
    return _change("DeleteNodePool", ask, moment) if ask else _malformed(state, "name", request.name)


def _update(state: State, request: gke.UpdateNodePoolRequest, moment: Moment) -> Outcome:
    ask = _pool_ask(state, request.name)
    if ask is None:
        return _malformed(state, "name", request.name)
    pool = state.pools.get(ask.pool_path)
    spec = updated(pool.spec, request) if pool else ask.spec
    return _change("UpdateNodePool", replace(ask, spec=spec, update=request), moment)


def _change(method: str, ask: Ask, moment: Moment) -> Outcome:
    """Apply a call that starts an operation: first its own faults, then the rules, then faults of the operation."""
    pool, what = ask.name, faults.about(ask)
    state, fault = faults.take(ask.state, faults.AT_ONCE, method, what)
    if fault is not None:
        no: Refusal | None = faults.refused(fault, method, ask.cluster_path, pool)
    else:
        no = refusal(method, ask)
    if no is not None:
        return Outcome(state=state, answer=no, cluster=ask.cluster_path, pool=pool)
    state, later = faults.take(state, faults.later(ask), method, what)
    state, lost = faults.take(state, faults.ANSWER, method, what)
    state, operation = _BEGIN[method](replace(ask, state=state), later, moment)
    answer: Message = operation_message(state, operation, moment.now)
    if lost is not None:
        answer = faults.refused(lost, method, ask.cluster_path, pool)
    return Outcome(state=state, answer=answer, cluster=ask.cluster_path, pool=pool, started=operation)


_BEGIN = {
    "CreateNodePool": lifecycle.begin_create,
    "DeleteNodePool": lifecycle.begin_delete,
    "UpdateNodePool": lifecycle.begin_update,
}


def _get_pool(state: State, request: gke.GetNodePoolRequest, _: Moment) -> Outcome:
    ask = _pool_ask(state, request.name)
    if ask is None:
        return _malformed(state, "name", request.name)
    return _read("GetNodePool", ask, lambda now: pool_message(now, now.pools[ask.pool_path]))


def _list_pools(state: State, request: gke.ListNodePoolsRequest, _: Moment) -> Outcome:
    if parse_cluster(request.parent) is None:
        return _malformed(state, "parent", request.parent)
    ask = Ask(state=state, cluster_path=request.parent, spec=gke.NodePool())
    return _read("ListNodePools", ask, lambda now: _pools(now, request.parent))


def _pools(state: State, cluster: str) -> gke.ListNodePoolsResponse:
    pools = [pool_message(state, pool) for pool in state.pools.values() if pool.cluster == cluster]
    return gke.ListNodePoolsResponse(node_pools=pools)


def _get_cluster(state: State, request: gke.GetClusterRequest, _: Moment) -> Outcome:
    if parse_cluster(request.name) is None:
        return _malformed(state, "name", request.name)
    ask = Ask(state=state, cluster_path=request.name, spec=gke.NodePool())
    return _read("GetCluster", ask, lambda now: cluster_message(now, now.clusters[request.name]))


def _read(method: str, ask: Ask, look: Callable[[State], Message]) -> Outcome:
    state, fault = faults.take(ask.state, faults.AT_ONCE, method, faults.about(ask))
    no = faults.refused(fault, method, ask.cluster_path, ask.name) if fault else refusal(method, ask)
    return Outcome(state=state, answer=no or look(state), cluster=ask.cluster_path, pool=ask.name)


def _get_operation(state: State, request: gke.GetOperationRequest, moment: Moment) -> Outcome:
    parsed = parse_operation(request.name)
    if parsed is None:
        return _malformed(state, "name", request.name)
    state, fault = faults.take(state, faults.AT_ONCE, "GetOperation", faults.About())
    if fault is not None:
        return Outcome(state=state, answer=faults.refused(fault, "GetOperation", request.name, ""))
    operation = state.operation_at(*parsed)
    if operation is None:
        return _unknown_operation(state, request.name)
    return Outcome(
        state=state,
        answer=operation_message(state, operation, moment.now),
        cluster=operation.cluster,
        pool=operation.target.rpartition("/nodePools/")[2],
    )


def _cancel(state: State, request: gke.CancelOperationRequest, moment: Moment) -> Outcome:
    parsed = parse_operation(request.name)
    if parsed is None:
        return _malformed(state, "name", request.name)
    method = "CancelOperation"
    operation = state.operation_at(*parsed)
    cluster, pool = (operation.cluster, operation.target.rpartition("/nodePools/")[2]) if operation else ("", "")
    what = faults.About(pool=pool)
    state, fault = faults.take(state, faults.AT_ONCE, method, what)
    if fault is not None:
        return Outcome(state=state, answer=faults.refused(fault, method, cluster or request.name, pool))
    if operation is None:
        return _unknown_operation(state, request.name)
    no = refusal(method, Ask(state=state, cluster_path=cluster, spec=gke.NodePool(), operation=operation))
    if no is None:
        state = state if operation.aborting else lifecycle.begin_abort(state, operation, moment.now)
        state, lost = faults.take(state, faults.ANSWER, method, what)
        no = faults.refused(lost, method, cluster, pool) if lost else None
    return Outcome(state=state, answer=no or _Empty(), cluster=cluster, pool=pool)


def _unknown_operation(state: State, path: str) -> Outcome:
    refused = Refusal(code=Code.NOT_FOUND, message=f"Not found: {as_written(path)}.", rule="operation-unknown")
    return Outcome(state=state, answer=refused)


def _list_operations(state: State, request: gke.ListOperationsRequest, moment: Moment) -> Outcome:
    parsed = parse_location(request.parent)
    if parsed is None:
        return _malformed(state, "parent", request.parent)
    state, fault = faults.take(state, faults.AT_ONCE, "ListOperations", faults.About())
    if fault is not None:
        return Outcome(state=state, answer=faults.refused(fault, "ListOperations", request.parent, ""))
    project, location = parsed
    paths = {key: cluster.path for key, cluster in state.clusters.items()}
    operations = [
        operation_message(state, operation, moment.now)
        for operation in state.operations.values()
        if paths[operation.cluster].project == project and location in {"-", paths[operation.cluster].location}
    ]
    return Outcome(state=state, answer=gke.ListOperationsResponse(operations=operations))


def _pool_ask(state: State, path: str) -> Ask | None:
    parsed = parse_pool(path)
    return Ask(state=state, cluster_path=parsed[0], name=parsed[1], spec=gke.NodePool()) if parsed else None


def _malformed(state: State, field: str, value: str) -> Outcome:
    """Refuse a malformed path; the deprecated fields project_id, zone, ... are accepted by GKE, but not here."""
    if value:
        message, code = f'Invalid value for field "{field}": "{value}".', Code.INVALID_ARGUMENT
    else:
        message = f'Requests without "{field}", by deprecated fields, are not implemented by the local GKE.'
        code = Code.UNIMPLEMENTED
    return Outcome(state=state, answer=Refusal(code=code, message=message, rule="malformed-path"))


METHODS: Mapping[str, Method] = {
    "CreateNodePool": Method(gke.CreateNodePoolRequest, gke.Operation, _create),
    "DeleteNodePool": Method(gke.DeleteNodePoolRequest, gke.Operation, _delete),
    "UpdateNodePool": Method(gke.UpdateNodePoolRequest, gke.Operation, _update),
    "GetNodePool": Method(gke.GetNodePoolRequest, gke.NodePool, _get_pool),
    "ListNodePools": Method(gke.ListNodePoolsRequest, gke.ListNodePoolsResponse, _list_pools),
    "GetCluster": Method(gke.GetClusterRequest, gke.Cluster, _get_cluster),
    "CancelOperation": Method(gke.CancelOperationRequest, _Empty, _cancel),
    "GetOperation": Method(gke.GetOperationRequest, gke.Operation, _get_operation),
    "ListOperations": Method(gke.ListOperationsRequest, gke.ListOperationsResponse, _list_operations),
}
"""The methods covered; the service's other methods return UNIMPLEMENTED."""

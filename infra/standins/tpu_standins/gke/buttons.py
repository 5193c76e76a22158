"""Buttons for people and demos: endpoints that inspect state and inject faults, HTTP and JSON on a separate port.

GET  /pools /hosts /operations /faults /calls /policies
POST /faults      {"kind": "stockout", "method": "CreateNodePool", "zone": null, "pools": ".*", "times": 1};
                  "for": duration in seconds, instead of times; "share": fraction of the calls affected, 0 to 1;
                  "capacity": only of spot, on-demand, flex-start or reservation; "at_least": only of pools of so many
                  hosts and more; "available": the zones that a stockout says have stock. A stockout for a time keeps
                  pools of flex-start empty;
                  "usable": true: a deletion that fails leaves the pool RUNNING, not in ERROR;
                  "conditions_only": true: only the operation's nodepool_conditions name the stockout or quota
DELETE /faults    clear all faults, or with {"pools": ".*"} those with that pattern
POST /policies    {"cluster": PATH, "name": NAME, "topology": "2x2x2"}: create a workload policy in its region
DELETE /policies  {"cluster": PATH, "name": NAME}: delete the workload policy
POST /operations  {"cluster": PATH, "kind": "UPGRADE_MASTER", "seconds": 10}: start an operation on the cluster,
                  which excludes node pool operations
POST /releases    {"pools": ".*"}: let the operations go on that a fault "held" holds, and forget that fault
POST /cancellations {"creations": true}: let creations be cancelled, which GKE is documented to refuse
POST /hosts/...   break, heal, repair, upgrade, preempt, maintain, fill, end: see `host_buttons`
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from google.cloud.container_v1 import NodePool
from google.cloud.container_v1 import Operation as Wire

from tpu_standins.cloud.buttons import UnknownThingError, fault_buttons, pressed, read_fault
from tpu_standins.cloud.machines import dimensions
from tpu_standins.cloud.timed import Moment
from tpu_standins.gke import lifecycle
from tpu_standins.gke.control_plane import ControlPlane
from tpu_standins.gke.faults import about_pool
from tpu_standins.gke.host_buttons import HOST_BUTTONS, HostButton
from tpu_standins.gke.hosts import appearances
from tpu_standins.gke.paths import policy_path
from tpu_standins.gke.state import CLUSTER_KINDS, Cluster, Fault, Kind, Pool, State

Body = Mapping[str, Any]
Reply = dict[str, Any]
Button = Callable[[ControlPlane, Body], Reply]


def _pools(plane: ControlPlane, _: Body) -> Reply:
    state, _now = plane.look()
    return {"pools": [_pool(state, pool) for pool in state.pools.values()]}


def _pool(state: State, pool: Pool) -> Reply:
    return {
        "name": pool.name,
        "cluster": pool.cluster,
        "status": NodePool.Status(pool.status).name,
        "machine_type": pool.machine.name,
        "capacity": about_pool(pool).capacity,
        "topology": pool.topology,
        "zones": pool.zones,
        "size": pool.size,
        "hosts": [host.name for host in state.hosts_of(pool.path)],
        "problem": pool.failure.detail if pool.failure else "",
    }


def _hosts(plane: ControlPlane, _: Body) -> Reply:
    state, now = plane.look()
    seen = appearances(state, now)
    return {
        "hosts": [
            {**asdict(host), "shows": asdict(seen[host.name]) if host.name in seen else None}
            for host in state.hosts.values()
        ]
    }


def _operations(plane: ControlPlane, _: Body) -> Reply:
    state, _now = plane.look()
    return {
        "operations": [
            {
                "name": operation.name,
                "type": Wire.Type(operation.kind).name,
                "target": operation.target,
                "started": operation.started,
                "ended": operation.ended,
                "error": operation.error.message if operation.error else "",
            }
            for operation in state.operations.values()
        ]
    }


def _fault(body: Body) -> tuple[Fault, float | None]:
    read, lasts = read_fault(Kind, body, "pools")
    return Fault(**read | {flag: bool(body.get(flag, False)) for flag in ("conditions_only", "usable")}), lasts


def _policies(plane: ControlPlane, _: Body) -> Reply:
    state, _now = plane.look()
    rules = {path: cluster.policies for path, cluster in state.clusters.items()}
    return {"beginnings": rules, "exceptions": state.policies}


def _make_policy(plane: ControlPlane, body: Body) -> Reply:
    topology = str(body["topology"])
    if dimensions(topology) is None:
        raise UnknownThingError(f"no topology: {topology}")
    return _put_policy(plane, body, topology)


def _remove_policy(plane: ControlPlane, body: Body) -> Reply:
    return _put_policy(plane, body, None)


def _put_policy(plane: ControlPlane, body: Body, topology: str | None) -> Reply:
    name = str(body["name"])

    def put(state: State, _: Moment) -> State:
        return state.with_policy(policy_path(_cluster(state, body).path, name), topology)

    plane.change(put)
    return _policies(plane, {})


def _cluster(state: State, body: Body) -> Cluster:
    path = str(body.get("cluster", ""))
    if path not in state.clusters:
        raise UnknownThingError(f"no such cluster: {path}")
    return state.clusters[path]


def _operate_cluster(plane: ControlPlane, body: Body) -> Reply:
    kind = CLUSTER_KINDS.get(body.get("kind", "UPGRADE_MASTER"))
    seconds = float(body.get("seconds", 10))
    if kind is None:
        raise UnknownThingError(f"kinds of operations on a cluster: {', '.join(CLUSTER_KINDS)}")

    def begin(state: State, moment: Moment) -> State:
        cluster = _cluster(state, body)
        return lifecycle.begin_on_cluster(state, str(cluster.path), kind, moment.now + seconds, moment)

    plane.change(begin)
    return _operations(plane, {})


def _release(plane: ControlPlane, body: Body) -> Reply:
    pools = re.compile(body.get("pools", ".*"))

    def release(state: State, moment: Moment) -> State:
        state = replace(state, faults=tuple(each for each in state.faults if each.kind is not Kind.HELD))
        for operation in lifecycle.held(state):
            if pools.fullmatch(state.pools[operation.target].name):
                state = lifecycle.let_go(state, operation, moment.now)
        return state

    plane.change(release)
    return _operations(plane, {})


def _cancellations(plane: ControlPlane, body: Body) -> Reply:
    kinds = {Wire.Type.UPGRADE_NODES} | ({Wire.Type.CREATE_NODE_POOL} if body["creations"] is True else set())
    plane.change(lambda state, _: replace(state, cancellable=frozenset(kinds)))
    return {"cancellable": sorted(Wire.Type(kind).name for kind in kinds)}


def _on_pool(press: HostButton) -> Button:
    def button(plane: ControlPlane, body: Body) -> Reply:
        plane.change(lambda state, moment: press(state, body, moment))
        return _hosts(plane, {})

    return button


BUTTONS: Mapping[tuple[str, str], Button] = {
    ("GET", "/pools"): _pools,
    ("GET", "/hosts"): _hosts,
    ("GET", "/operations"): _operations,
    **fault_buttons(Kind, _fault),
    ("GET", "/policies"): _policies,
    ("POST", "/policies"): _make_policy,
    ("DELETE", "/policies"): _remove_policy,
    ("POST", "/operations"): _operate_cluster,
    ("POST", "/releases"): _release,
    ("POST", "/cancellations"): _cancellations,
    **{("POST", path): _on_pool(change) for path, change in HOST_BUTTONS.items()},
}


def press(plane: ControlPlane, method: str, path: str, body: bytes) -> tuple[int, Reply]:
    """Return the HTTP status and the JSON response."""
    return pressed(BUTTONS, plane, method, path, body)

"""The state of the control plane: immutable values, so that every decision is a pure function of them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Self

from google.cloud.container_v1 import NodePool
from google.cloud.container_v1 import Operation as Wire

from tpu_standins.cloud import faults
from tpu_standins.cloud.machines import Machine, is_tpu7x
from tpu_standins.gke.codes import Code
from tpu_standins.gke.paths import ClusterPath, policy_path

CLUSTER_KINDS = {
    "UPGRADE_MASTER": Wire.Type.UPGRADE_MASTER,
    "UPDATE_CLUSTER": Wire.Type.UPDATE_CLUSTER,
    "REPAIR_CLUSTER": Wire.Type.REPAIR_CLUSTER,
}
"""Cluster-level operations, which exclude node pool operations [doc:troubleshooting/concurrent-operations]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Durations in seconds: what takes GKE minutes takes a few seconds here.

    A creation takes `create` until the VMs run, `join` until their Nodes are registered, `ready` until those are
    Ready, `chips` until they offer google.com/tpu. `stockout` represents some 35 min (akka/akka-core#32992),
    `quota` less than one. `join_limit`: how long a creation waits for Nodes, and a deletion for their removal.

    `shutdown` represents the 25 s that pods have from the preemption notice on, `unhealthy` the 10 min that a
    Node may be NotReady before GKE repairs its pool [doc:concepts/spot-vms, how-to/node-auto-repair]. Operations
    are kept for `history` after they end. A cancelled one is ABORTING for `abort`.

    `fill`: how long a pool of flex-start stays empty, which may take days. `run`: how long its hosts run at most,
    if that is shorter than the pool's max_run_duration.
    """

    pending: float = 0.2
    create: float = 4.0
    join: float = 1.0
    ready: float = 1.0
    chips: float = 0.5
    delete: float = 2.0
    repair: float = 4.0
    stockout: float = 6.0
    quota: float = 1.0
    join_limit: float = 3600.0
    update: float = 1.0
    log: float = 0.2
    shutdown: float = 2.5
    unhealthy: float = 60.0
    history: float = 86_400.0
    abort: float = 1.0
    fill: float = 3.0
    run: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster. `id` is assigned by GKE; a cluster recreated under the same name gets another [py-gke Cluster.id]."""

    path: ClusterPath
    id: str
    zones: tuple[str, ...]
    release_channel: str | None = "REGULAR"
    version: str = "1.34.1-gke.3084001"
    concurrent_operations: int = 5
    policies: str | None = "tpu-provisioner-"
    """Prefix of the names of the workload policies in the project and region; the rest of a name is its topology.

    There is one per topology of tpu7x, as TPU Provisioner's script creates them
    [peer docs/ironwood-policy-bootstrap.sh]. None: there are none. `State.policies` has the exceptions.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """How an operation fails: `message` goes into Operation.error, `detail` into Operation.detail.

    `condition` is a StatusCondition.Code; `pool_status` is the NodePool.Status that the pool gets. `conditions_only`:
    Operation.nodepool_conditions alone name it; the field is deprecated for Operation.error, but still there [py-gke].
    """

    code: Code
    message: str
    detail: str
    condition: int
    pool_status: int
    conditions_only: bool = False


def size(spec: NodePool, zones: tuple[str, ...]) -> int:
    """Return the number of VMs of a pool in all its zones, when it is full."""
    each = spec.autoscaling.max_node_count if spec.config.flex_start else spec.initial_node_count
    return each * len(zones)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A node pool. `spec` is the NodePool of the request as accepted, and as updated. `stem` begins its VMs' names.

    `status` is a NodePool.Status. `fills`: when GKE fills it, if it is one of flex-start without hosts.
    """

    path: str
    cluster: str
    spec: NodePool
    machine: Machine
    topology: str
    zones: tuple[str, ...]
    stem: str
    status: int
    failure: Failure | None = None
    fills: float | None = None

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def size(self) -> int:
        """Return the number of VMs in all zones, when it is full."""
        return size(self.spec, self.zones)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation. `kind` is Google's Operation.Type, `target` a pool's or a cluster's path.

    `due`: when its own work is done, before any waiting for Nodes; infinity: once it is let go. `spec`: what its pool
    is updated to.
    """

    name: str
    kind: int
    cluster: str
    target: str
    started: float
    due: float
    plan: Failure | None = None
    spec: NodePool | None = None
    aborting: bool = False
    ended: float | None = None
    error: Failure | None = None


class Ailment(Enum):
    """What can be wrong with a VM: its kubelet reports that it is not ready, or stops reporting."""

    NOT_READY = "not-ready"
    SILENT = "silent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A VM. `boots`: when its Node registers; None: never. `life` rises by one whenever the VM is replaced.

    `ails`: what is wrong with it, since `fell_ill`. `maintenance`: when maintenance begins, with a termination notice.
    `stops`: when the VM stops after a notice; `returns`: when the Node of its replacement then registers.
    """

    name: str
    pool: str
    zone: str
    boots: float | None
    life: int = 1
    ails: Ailment | None = None
    fell_ill: float = 0.0
    maintenance: float | None = None
    stops: float | None = None
    returns: float | None = None
    cordoned: bool = False
    leaving: bool = False


class Kind(Enum):
    """The kinds of faults that can be injected; see `faults`."""

    STOCKOUT = "stockout"
    QUOTA = "quota"
    NEVER_JOINS = "never_joins"
    SLOW = "slow"
    SLOW_END = "slow_end"
    HELD = "held"
    DELETE_FAILS = "delete_fails"
    PERMISSION = "permission"
    UNAVAILABLE = "unavailable"
    INTERNAL = "internal"
    RESERVATION = "reservation"
    LOST_ANSWER = "lost_answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(faults.Fault):
    """Affects calls on matching pools.

    `seconds` is how much longer a SLOW operation takes, and how long a SLOW_END creation runs on after its Nodes have
    registered. A HELD operation lasts until it is let go (`lifecycle.let_go`). `conditions_only`: see `Failure`; for
    STOCKOUT and QUOTA. `usable`: DELETE_FAILS leaves the pool RUNNING, not in ERROR.
    """

    kind: Kind
    method: str = "CreateNodePool"
    pools: str = ".*"
    conditions_only: bool = False
    usable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The whole state. `nodes`: name and life of every host whose Node exists in the Kubernetes API, as last observed.

    `policies`: by path, the topologies of workload policies that deviate from `Cluster.policies`; None: deleted.
    `cancellable`: the types of operations that CancelOperation takes [doc:gcloud container operations cancel].
    """

    clusters: Mapping[str, Cluster]
    pace: Pace = field(default_factory=Pace)
    project_number: int = 123_456_789_012
    pools: Mapping[str, Pool] = field(default_factory=dict)
    operations: Mapping[str, Operation] = field(default_factory=dict)
    hosts: Mapping[str, Host] = field(default_factory=dict)
    nodes: frozenset[tuple[str, int]] = frozenset()
    faults: tuple[Fault, ...] = ()
    policies: Mapping[str, str | None] = field(default_factory=dict)
    cancellable: frozenset[int] = frozenset({Wire.Type.UPGRADE_NODES})

    def policy_topology(self, cluster: Cluster, name: str) -> str | None:
        """Return the topology of a workload policy in the cluster's project and region; None: no such policy."""
        path = policy_path(cluster.path, name)
        if path in self.policies:
            return self.policies[path]
        if cluster.policies is None or not name.startswith(cluster.policies):
            return None
        topology = name.removeprefix(cluster.policies)
        return topology if is_tpu7x(topology) else None

    def with_policy(self, path: str, topology: str | None) -> Self:
        return replace(self, policies={**self.policies, path: topology})

    def with_pool(self, pool: Pool) -> Self:
        return replace(self, pools={**self.pools, pool.path: pool})

    def without_pool(self, path: str) -> Self:
        return replace(
            self,
            pools={key: pool for key, pool in self.pools.items() if key != path},
            hosts={name: host for name, host in self.hosts.items() if host.pool != path},
        )

    def with_operation(self, operation: Operation) -> Self:
        return replace(self, operations={**self.operations, operation.name: operation})

    def with_hosts(self, *hosts: Host) -> Self:
        return replace(self, hosts={**self.hosts, **{host.name: host for host in hosts}})

    def hosts_of(self, pool: str) -> tuple[Host, ...]:
        return tuple(host for host in self.hosts.values() if host.pool == pool)

    def operation_at(self, location: str, name: str) -> Operation | None:
        """Return the operation of that name of a cluster in `projects/P/locations/L`."""
        found = self.operations.get(name)
        return found if found and found.cluster.partition("/clusters/")[0] == location else None

    def running(self, cluster: str) -> tuple[Operation, ...]:
        """Return the cluster's operations that have not ended, oldest first."""
        return tuple(op for op in self.operations.values() if op.ended is None and op.cluster == cluster)

    def running_on(self, target: str) -> Operation | None:
        return next((op for op in self.operations.values() if op.ended is None and op.target == target), None)

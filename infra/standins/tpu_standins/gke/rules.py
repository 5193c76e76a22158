"""The types of a rule and of the refusal that it returns."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from google.cloud.container_v1 import NodePool, UpdateNodePoolRequest

from tpu_standins.cloud.machines import MACHINES, Machine
from tpu_standins.cloud.rules import LIMIT, OURS, Row, first
from tpu_standins.gke.codes import Code
from tpu_standins.gke.paths import pool_path
from tpu_standins.gke.state import Cluster, Operation, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An error response. `rule` names the row that refused."""

    code: Code
    message: str
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a rule may read: a cluster's path (possibly unknown) and, by kind of request, a pool's name and spec.

    `operation`: the one to cancel. `update`: what is to be changed of a pool; `spec` is then the pool as it would be.
    """

    state: State
    cluster_path: str
    name: str = ""
    spec: NodePool
    operation: Operation | None = None
    update: UpdateNodePoolRequest | None = None

    @property
    def cluster(self) -> Cluster:
        """Return the cluster; only for rows after the one that refuses unknown clusters."""
        return self.state.clusters[self.cluster_path]

    @property
    def pool_path(self) -> str:
        return pool_path(self.cluster_path, self.name)

    @property
    def machine(self) -> Machine:
        """Return the machine type; only for rows after those that refuse unknown ones."""
        return MACHINES[self.spec.config.machine_type]

    @property
    def zones(self) -> tuple[str, ...]:
        """Return the pool's own zones, else the cluster's [py-gke NodePool.locations]."""
        return tuple(self.spec.locations) or self.cluster.zones

    @property
    def topology(self) -> str:
        """Return the slice's topology, as requested or from its workload policy; empty for a single host."""
        return str(self.spec.placement_policy.tpu_topology) or self.policy_topology or ""

    @property
    def policy_topology(self) -> str | None:
        """Return the topology of the named workload policy; None: there is no such policy."""
        return self.state.policy_topology(self.cluster, str(self.spec.placement_policy.policy_name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Row[Ask]):
    """One row, and the code with which it refuses."""

    code: Code


def first_refusal(ask: Ask, rules: Iterable[Rule]) -> Refusal | None:
    found = first(ask, rules)
    return Refusal(code=found[0].code, message=found[1], rule=found[0].name) if found else None


def limit(check: Callable[[Ask], str | None], name: str) -> Rule:
    """Return the row that refuses what the local GKE does not cover."""
    return Rule(name=name, code=Code.UNIMPLEMENTED, fact=LIMIT, words=OURS, check=check)

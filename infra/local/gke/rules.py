"""The shape of a rule, and of the refusal it leads to."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from google.cloud.container_v1 import NodePool

from infra.local.gke.codes import Code
from infra.local.gke.machines import MACHINES, Machine
from infra.local.gke.paths import pool_path
from infra.local.gke.state import Cluster, State

OURS = "ours"
"""GKE's wording was not seen anywhere: a plausible one, which no client should match on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """`rule` names the row that refused."""

    code: Code
    message: str
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a rule may look at: a cluster's path (perhaps unknown) and, by request, a pool's name and spec."""

    state: State
    cluster_path: str
    name: str = ""
    spec: NodePool

    @property
    def cluster(self) -> Cluster:
        """Only behind the row that refuses unknown clusters."""
        return self.state.clusters[self.cluster_path]

    @property
    def pool_path(self) -> str:
        return pool_path(self.cluster_path, self.name)

    @property
    def machine(self) -> Machine:
        """Only behind the rows that refuse unknown machine types."""
        return MACHINES[self.spec.config.machine_type]

    @property
    def zones(self) -> tuple[str, ...]:
        """The pool's own, else the cluster's [py-gke NodePool.locations]."""
        return tuple(self.spec.locations) or self.cluster.zones

    @property
    def topology(self) -> str:
        """The slice's: as asked for, or its workload policy's; none for a single host."""
        return str(self.spec.placement_policy.tpu_topology) or self.policy_topology or ""

    @property
    def policy_topology(self) -> str | None:
        """What the named workload policy wires hosts to; None: there is no such policy."""
        return self.state.policy_topology(self.cluster, str(self.spec.placement_policy.policy_name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One row. `check` returns the text of the refusal, or None.

    `fact`: why GKE refuses this. `words`: where its wording was seen, or OURS.
    """

    name: str
    code: Code
    fact: str
    words: str
    check: Callable[[Ask], str | None]


def first_refusal(ask: Ask, rules: Iterable[Rule]) -> Refusal | None:
    for rule in rules:
        text = rule.check(ask)
        if text is not None:
            return Refusal(code=rule.code, message=text, rule=rule.name)
    return None

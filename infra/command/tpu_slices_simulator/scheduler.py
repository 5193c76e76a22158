"""The scheduler of the small cluster: which waiting leaders are bound to which pools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from relay.objects import Pool, PoolKey
from tpu_slices.domain.model.slices import ClusterId, WorkloadJob, WorkloadUid, claim_id
from tpu_slices.domain.planning.host_labels import ACCELERATOR, TOPOLOGY
from tpu_slices.domain.planning.keys import KEY_LABEL
from tpu_slices.domain.planning.pool_labels import PARENT_NAMESPACE_LABEL
from tpu_slices_simulator.live import Node, Pod

Pods = dict[str, Pod]
"""By UID."""
Nodes = dict[str, Node]
"""By name."""


@dataclass(slots=True)
class Scheduler:
    cluster: ClusterId
    crosses: bool = False
    """Whether leaders that nothing pins are bound to hosts of other JobSets' slices, too."""
    slow: bool = False
    """Whether leaders are bound when they have been waiting for a moment, and not at once."""
    _last_pool: dict[tuple[WorkloadUid, int], Pool] = field(default_factory=dict)
    _waited: set[str] = field(default_factory=set)
    """The leaders that waited when it last looked, by UID."""

    def bound(self, leader: Pod, pool: Pool) -> None:
        """Remember where a leader was bound."""
        self._last_pool[leader.jobset.ref.owner.uid, leader.index] = pool

    def places(self, leaders: Pods, followers: Pods, nodes: Nodes) -> Iterator[tuple[Pod, Pool]]:
        """Yield which leaders go where: to hosts with their key; without one, to their own slice, a sibling's, or back.

        Each is to be bound, with its followers, before the next one is asked for.
        """
        waiting = [pod for pod in leaders.values() if pod.node is None and not pod.ended and not pod.gated]
        before, self._waited = self._waited, {pod.uid for pod in waiting}
        free = _free_pools(leaders, followers, nodes) if waiting else {}
        for pod in sorted(waiting, key=lambda pod: pod.uid):
            if self.slow and pod.uid not in before:
                continue
            if (place := _beside_its_own(pod, leaders, followers, nodes)) is not None:
                yield pod, place
                continue
            if pod.key:
                for pool in _with_key(pod, leaders, followers, nodes)[:1]:
                    free.pop(pool, None)
                    yield pod, pool
                continue
            able = [pool for pool, owner in free.items() if self._may_use(pod, pool, owner, nodes)]
            if able:
                best = min(able, key=lambda pool: not self._own(pod, pool))
                del free[best]
                yield pod, best

    def _own(self, pod: Pod, pool: Pool) -> bool:
        name, index = pod.job
        job = WorkloadJob(cluster=self.cluster, owner=pod.jobset.ref.owner, replicated_job=name, job_index=index)
        return isinstance(pool, PoolKey) and pool.slice_id == claim_id(job)

    def _may_use(self, pod: Pod, pool: Pool, owner: str | None, nodes: Nodes) -> bool:
        uid = pod.jobset.ref.owner.uid
        its_own = self.crosses or owner == uid or self._last_pool.get((uid, pod.index)) == pool
        return its_own and _selects(pod, pool, nodes)


def beside(leader: Pod, followers: Pods) -> list[Pod]:
    """Return the other pods of a leader's Job."""
    return [pod for pod in followers.values() if pod.jobset is leader.jobset and pod.index == leader.index]


def _beside_its_own(leader: Pod, leaders: Pods, followers: Pods, nodes: Nodes) -> Pool | None:
    """Return the pool on which other pods of a leader's Job are, if the host that is left is usable."""
    own = [pod for pod in beside(leader, followers) if pod.node in nodes and pod.ends_by is None]
    pools = {nodes[pod.node].pool for pod in own if pod.node is not None}
    taken = {each.node for each in (*leaders.values(), *followers.values()) if not each.ended}
    left = (node for node in nodes.values() if node.pool in pools and node.name not in taken)
    return next((node.pool for node in left if node.seen.usable and _selects(leader, node.pool, nodes)), None)


def _selects(pod: Pod, pool: Pool, nodes: Nodes) -> bool:
    first = min(name for name, node in nodes.items() if node.pool == pool)
    labels = nodes[first].raw["metadata"]["labels"]
    selector = pod.template["spec"].get("nodeSelector") or {}
    return all(selector.get(key, labels.get(key)) == labels.get(key) for key in (ACCELERATOR, TOPOLOGY))


def _with_key(pod: Pod, leaders: Pods, followers: Pods, nodes: Nodes) -> list[Pool]:
    """Return the pools whose hosts are all usable and carry the key of a leader, and of which one is free.

    Not those with pods that nothing pins: they share hosts with nobody here.
    """
    taken = {each.node: each for each in (*leaders.values(), *followers.values()) if not each.ended}
    free = dict.fromkeys(node.pool for node in nodes.values() if node.name not in taken)
    others = {node.pool for node in nodes.values() if not (node.seen.usable and fits(pod, node))}
    others |= {nodes[name].pool for name, each in taken.items() if name in nodes and not each.key}
    return [pool for pool in free if pool not in others and _selects(pod, pool, nodes)]


def fits(pod: Pod, node: Node) -> bool:
    """Return whether a host is what the admission policy has a leader require: one with its key, in its namespace."""
    labels = node.raw["metadata"]["labels"]
    asked = (pod.key, pod.jobset.ref.owner.namespace)
    return (labels.get(KEY_LABEL), labels.get(PARENT_NAMESPACE_LABEL)) == asked


def _free_pools(leaders: Pods, followers: Pods, nodes: Nodes) -> dict[Pool, str | None]:
    """Return the pools whose hosts are all usable, open, and without a pod, with the UIDs of their workloads."""
    pods = (pod for pod in (*leaders.values(), *followers.values()) if not pod.ended)
    taken = {nodes[pod.node].pool for pod in pods if pod.node in nodes}
    taken |= {node.pool for node in nodes.values() if not node.seen.usable}
    hosts = reversed(nodes.values())  # so that each pool's first host names its workload
    owners = {node.pool: node.seen.workload_uid for node in hosts if node.pool not in taken}
    pools = dict.fromkeys(node.pool for node in nodes.values())
    return {pool: owners[pool] for pool in pools if pool in owners}

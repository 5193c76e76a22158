"""What relays read and write of TPUNodeGroups, nodes and pods in the cluster in memory, as the API server takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relay.objects import PoolKey
from tpu_slices.domain.model.slices import ClaimId, Owner
from tpu_slices.ports.errors import Temporary
from tpu_slices.wire.workloads import Json
from tpu_slices_simulator import objects
from tpu_slices_simulator.cluster import FakeCluster
from tpu_slices_simulator.live import LiveWorkload


class ApiServer:
    """The calls of `relay.cluster.Cluster`, on a `FakeCluster`; a write that is based on an old state is Temporary."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster

    def workload(self, owner: Owner) -> Json | None:
        return self._cluster.workload(owner)

    def post(self, event: Mapping[str, Any]) -> None:
        self._cluster.events.setdefault(event["metadata"]["name"], event)

    def patch_group(self, owner: Owner, patch: Mapping[str, Any]) -> None:
        live = self._based_on(owner, patch)
        written = {"metadata": {key: value for key, value in patch["metadata"].items() if key != "resourceVersion"}}
        live.manifest = objects.patched(live.manifest, written)
        self._cluster.changes(live)

    def patch_group_status(self, owner: Owner, patch: Mapping[str, Any]) -> None:
        live = self._based_on(owner, patch)
        live.manifest = objects.patched(live.manifest, {"status": patch["status"]})
        self._cluster.changes(live)

    def nodes_of_slice(self, slice_id: ClaimId) -> Mapping[str, int]:
        pools = ((each.name, each.pool) for each in self._cluster.nodes.values())
        return {name: pool.attempt for name, pool in pools if isinstance(pool, PoolKey) and pool.slice_id == slice_id}

    def lacks_chips(self, slice_id: ClaimId) -> bool:
        """Return what the relay sees of it."""
        return any(relay.queue.cache.lacks_chips(slice_id) for relay in self._cluster.relays)

    def delete_node(self, node: str) -> None:
        self._cluster.loses_node(node)

    def pods_on(self, node: str) -> Sequence[Json]:
        cluster = self._cluster
        pods = (pod.raw for pod in (*cluster.pods.values(), *cluster.followers.values()) if pod.node == node)
        rest = (*cluster.strangers.values(), *cluster.other_pods.values())
        return [*pods, *(pod for pod in rest if pod["spec"]["nodeName"] == node)]

    def evict(self, namespace: str, pod: str) -> None:
        """Remove a pod, unless a disruption budget keeps it."""
        name = f"{namespace}/{pod}"
        if name in self._cluster.kept_by_budgets:
            return
        self._cluster.other_pods.pop(name, None)
        for each in [each for each in self._cluster.pods.values() if each.raw["metadata"]["name"] == pod]:
            self._cluster.removes_pod(each.jobset, each.index)
        for each in [each for each in self._cluster.followers.values() if each.raw["metadata"]["name"] == pod]:
            self._cluster.removes_follower(each)

    def _based_on(self, owner: Owner, patch: Mapping[str, Any]) -> LiveWorkload:
        live = self._cluster.workloads[owner.uid]
        if patch["metadata"]["resourceVersion"] != live.ref.resource_version:
            raise Temporary("the object has changed")
        return live

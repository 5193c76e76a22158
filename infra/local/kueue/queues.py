"""The queues: which ones a Workload belongs to, and why they do not admit it now (pure).

| the LocalQueue, or its ClusterQueue | Workloads that wait | Workloads that run |
|---|---|---|
| is not there, or a ResourceFlavor, or the WorkloadPriorityClass | wait: Misconfigured | run on |
| has stopPolicy Hold | wait: LocalQueueStopped, ClusterQueueStopped | run on |
| has stopPolicy HoldAndDrain; or the Workload's spec.active is false | likewise; Deactivated | are evicted |
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from infra.local.clients.objects import Object, Objects
from infra.local.kueue.quota import Why, quota

HOLD, DRAIN = "Hold", "HoldAndDrain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Queues:
    """ClusterQueues, ResourceFlavors and WorkloadPriorityClasses by name, LocalQueues by namespace and name."""

    cluster: Mapping[str, Object]
    local: Mapping[tuple[str, str], Object]
    flavors: Mapping[str, Object]
    priorities: Mapping[str, Object]

    @classmethod
    def of(cls, objects: Objects) -> Self:
        kinds = ("clusterqueues", "resourceflavors", "workloadpriorityclasses")
        cluster, flavors, priorities = (
            {one["metadata"]["name"]: one for one in objects.stored(kind)} for kind in kinds
        )
        local = {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in objects.stored("localqueues")}
        return cls(cluster=cluster, local=local, flavors=flavors, priorities=priorities)

    def of_workload(self, workload: Object) -> tuple[Object | None, Object | None]:
        """Return a Workload's LocalQueue and that one's ClusterQueue, if they are there."""
        local = self.local.get((workload["metadata"]["namespace"], workload["spec"]["queueName"]))
        return local, self.cluster.get(local["spec"]["clusterQueue"]) if local else None

    def name_of(self, workload: Object) -> str:
        """Return the ClusterQueue whose quota a Workload has or waits for; empty if there is none."""
        admission, cluster = workload.get("status", {}).get("admission"), self.of_workload(workload)[1]
        return str(admission["clusterQueue"] if admission else cluster["metadata"]["name"] if cluster else "")

    def closed(self, workload: Object) -> Why | None:
        """Return why a Workload is not considered for admission; None: it is."""
        spec, (local, cluster) = workload["spec"], self.of_workload(workload)
        if (named := spec.get("priorityClassName")) and named not in self.priorities:
            return _missing(f"WorkloadPriorityClass {named}")
        if local is None:
            return _missing(f"LocalQueue {spec['queueName']}")
        if cluster is None:
            return _missing(f"ClusterQueue {local['spec']['clusterQueue']}")
        if lost := [name for name in quota(cluster) if name not in self.flavors]:
            return _missing(f"ResourceFlavor {lost[0]}")
        return self.stopped(workload, HOLD, DRAIN)

    def stopped(self, workload: Object, *policies: str) -> Why | None:
        """Return why a Workload may not run, if its queues have one of these stopPolicies, or it is not active."""
        for kind, queue in zip(("LocalQueue", "ClusterQueue"), self.of_workload(workload), strict=True):
            if queue and queue["spec"].get("stopPolicy") in policies:
                return Why(f"{kind}Stopped", f"The {kind} is stopped")
        return None if workload["spec"]["active"] else Why("Deactivated", "The workload is deactivated")


def _missing(what: str) -> Why:
    return Why("Misconfigured", f"{what} doesn't exist")

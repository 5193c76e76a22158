"""The queues: which one a Workload belongs to, and why it is not considered for admission (pure).

Source: pkg/controller/core/workload_controller.go (getQueueBlocker), pkg/cache/scheduler/clusterqueue.go
(inactiveReason), pkg/controller/core/localqueue_controller.go.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from infra.local.cluster.controllers.conditions import Condition
from infra.local.cluster.controllers.selectors import label_selector_picks
from infra.local.cluster.objects import Object

_SUSPENDED, _MISCONFIGURED = "Suspended", "Misconfigured"
_ACTIVE = "Active"
HOLD_AND_DRAIN = "HoldAndDrain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Queues:
    """ClusterQueues, ResourceFlavors and namespaces by name, LocalQueues by namespace and name."""

    cluster_queues: Mapping[str, Object]
    local_queues: Mapping[tuple[str, str], Object]
    flavors: Mapping[str, Object]
    namespaces: Mapping[str, Object]

    @classmethod
    def of(
        cls,
        cluster_queues: Iterable[Object],
        local_queues: Iterable[Object],
        flavors: Iterable[Object],
        namespaces: Iterable[Object],
    ) -> Self:
        return cls(
            cluster_queues=_named(cluster_queues),
            local_queues={(q["metadata"]["namespace"], q["metadata"]["name"]): q for q in local_queues},
            flavors=_named(flavors),
            namespaces=_named(namespaces),
        )

    def local_queue(self, workload: Object) -> Object | None:
        return self.local_queues.get((workload["metadata"]["namespace"], workload["spec"].get("queueName", "")))

    def cluster_queue(self, workload: Object) -> Object | None:
        local = self.local_queue(workload)
        return None if local is None else self.cluster_queues.get(local["spec"].get("clusterQueue", ""))

    def blocker(self, workload: Object) -> tuple[str, str] | None:
        """Return why a Workload is not considered, as reason and message of QuotaReserved=False; None: it is."""
        local, cluster = self.local_queue(workload), self.cluster_queue(workload)
        if local is None:
            return _MISCONFIGURED, f"LocalQueue {workload['spec'].get('queueName', '')} doesn't exist"
        name = local["spec"].get("clusterQueue", "")
        if stopped(local):
            return _SUSPENDED, f"LocalQueue {local['metadata']['name']} is inactive"
        if cluster is None:
            return _MISCONFIGURED, f"ClusterQueue {name} doesn't exist"
        if not self.readiness(cluster).status:
            return _SUSPENDED, f"ClusterQueue {name} is inactive"
        if not self._is_welcome(workload, cluster):
            return _MISCONFIGURED, "workload namespace doesn't match ClusterQueue selector"
        return None

    def readiness(self, cluster_queue: Object) -> Condition:
        """Return the condition Active of a ClusterQueue: whether it can admit Workloads."""
        wrong = []
        if stopped(cluster_queue):
            wrong.append(("Stopped", "is stopped"))
        if missing := [name for name in _flavor_names(cluster_queue) if name not in self.flavors]:
            wrong.append(("FlavorNotFound", f"references missing ResourceFlavor(s): {','.join(missing)}"))
        if checks := _checks(cluster_queue):
            wrong.append(("AdmissionCheckNotFound", f"references missing AdmissionCheck(s): {','.join(checks)}"))
        if not wrong:
            return Condition(type=_ACTIVE, reason="Ready", message="Can admit new workloads")
        message = f"Can't admit new workloads: {', '.join(text for _, text in wrong)}."
        return Condition(type=_ACTIVE, status=False, reason=wrong[0][0], message=message)

    def openness(self, local_queue: Object) -> Condition:
        """Return the condition Active of a LocalQueue: whether it accepts Workloads."""
        cluster = self.cluster_queues.get(local_queue["spec"].get("clusterQueue", ""))
        closed = "Can't submit new workloads to clusterQueue"
        if stopped(local_queue):
            return Condition(type=_ACTIVE, status=False, reason="Stopped", message="LocalQueue is stopped")
        if cluster is None:
            return Condition(type=_ACTIVE, status=False, reason="ClusterQueueDoesNotExist", message=closed)
        if not self.readiness(cluster).status:
            return Condition(type=_ACTIVE, status=False, reason="ClusterQueueIsInactive", message=closed)
        return Condition(type=_ACTIVE, reason="Ready", message="Can submit new workloads to localQueue")

    def _is_welcome(self, workload: Object, cluster_queue: Object) -> bool:
        namespace = self.namespaces.get(workload["metadata"]["namespace"], {"metadata": {}})
        labels = namespace["metadata"].get("labels", {})
        return label_selector_picks(cluster_queue["spec"].get("namespaceSelector"), labels)


def stopped(queue: Object) -> bool:
    return stop_policy(queue) != "None"


def stop_policy(queue: Object) -> str:
    return str(queue["spec"].get("stopPolicy", "None"))


def _named(objects: Iterable[Object]) -> dict[str, Object]:
    return {obj["metadata"]["name"]: obj for obj in objects}


def _flavor_names(cluster_queue: Object) -> list[str]:
    groups = cluster_queue["spec"].get("resourceGroups", [])
    return [flavor["name"] for group in groups for flavor in group["flavors"]]


def _checks(cluster_queue: Object) -> list[str]:
    """Return the names of the required AdmissionChecks, which never exist here."""
    spec = cluster_queue["spec"]
    ruled = spec.get("admissionChecksStrategy", {}).get("admissionChecks", [])
    return [*spec.get("admissionChecks", []), *(rule["name"] for rule in ruled)]

"""A local cluster with Kueue whose clock is advanced only by the test, and builders of queued objects."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from infra.local.cluster.controllers import reconcile
from infra.local.cluster.controllers.run import Controller
from infra.local.cluster.kueue.controller import controller
from infra.local.cluster.kueue.settings import Settings
from infra.local.cluster.kueue.transitions import reserved
from infra.local.cluster.kueue_api.defaults import DEFAULTS
from infra.local.cluster.objects import Object, timestamp
from tests.local.controllers.cluster import (
    ACCELERATOR,
    TOPOLOGY,
    Cluster,
    condition,
    jobset,
    pod_spec,
    replicated_job,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"
TPU = "google.com/tpu"
LABELS = {ACCELERATOR: "tpu-v5-lite-podslice", TOPOLOGY: "2x4"}


@dataclass
class QueuedCluster(Cluster):
    settings: Settings = field(default_factory=Settings)
    guests: list[Controller] = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.guests = [controller(self.settings)]

    def settle(self) -> int:
        for rounds in range(1, 60):
            seen = self.objects.version
            self.wake = reconcile(self.objects, self.now, self.pace, self.guests)
            if self.objects.version == seen:
                return rounds
        raise AssertionError("the controllers do not converge")

    def open_queue(self, chips: int = 8, **spec: Any) -> None:
        """Create the queue `jobs` in the namespace default, on a ClusterQueue `team` with one flavor, `tpu`."""
        self.objects.create("resourceflavors", flavor())
        self.objects.create("clusterqueues", cluster_queue(chips, **spec))
        self.objects.create("localqueues", local_queue())
        self.settle()

    def submit(self, name: str, *replicated: Object, labels: dict[str, str] | None = None, **spec: Any) -> None:
        self.apply("jobsets", queued(name, *replicated, labels=labels, **spec))

    def change(self, plural: str, name: str, **spec: Any) -> None:
        namespace = None if plural == "clusterqueues" else "default"
        known = self.objects.get(plural, namespace, name)
        self.objects.update(plural, known | {"spec": known["spec"] | spec})
        self.settle()

    def workload(self, jobset_name: str) -> Object:
        found: list[Object] = [
            one
            for one in self.objects.list("workloads")
            if one["metadata"]["ownerReferences"][0]["name"] == jobset_name
        ]
        assert len(found) == 1
        return found[0]

    def told(self, jobset_name: str, kind: str) -> tuple[str, str, str]:
        """Return status, reason and message of a condition of a JobSet's Workload; empty if it is not set."""
        found = condition(self.workload(jobset_name), kind)
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")

    def is_running(self, name: str) -> bool:
        return not self.jobset(name)["spec"].get("suspend", False)


def flavor(name: str = "tpu", **spec: Any) -> Object:
    return {"metadata": {"name": name}, "spec": {"nodeLabels": LABELS} | spec}


def group(quota: int | str = 8, *flavors: str, resource: str = TPU) -> Object:
    """Return a resource group: one resource with the same quota in each flavor."""
    quotas = [{"name": resource, "nominalQuota": quota}]
    named = [{"name": name, "resources": quotas} for name in flavors or ("tpu",)]
    return {"coveredResources": [resource], "flavors": named}


def cluster_queue(chips: int = 8, **spec: Any) -> Object:
    known = {"namespaceSelector": {}, "resourceGroups": [group(chips)]}
    return {"metadata": {"name": "team"}, "spec": known | spec}


def local_queue(name: str = "jobs", **spec: Any) -> Object:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"clusterQueue": "team"} | spec}


def queued(name: str, *replicated: Object, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    """Return a JobSet in the queue `jobs`, of one slice with two hosts of four chips each."""
    made = jobset(name, *(replicated or (replicated_job(replicas=1),)), **spec)
    made["metadata"]["labels"] = {QUEUE: "jobs"} | (labels or {})
    return made


def workload(name: str, *pod_sets: Object, age: int = 0, **spec: Any) -> Object:
    """Return a Workload as it is stored, created `age` seconds before noon."""
    made = NOON - timedelta(seconds=age)
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "creationTimestamp": timestamp(made)}
    known = {"queueName": "jobs", "active": True, "priority": 0, "podSets": list(pod_sets) or [pod_set()]}
    return {"metadata": metadata, "spec": known | spec}


def pod_set(name: str = "slice", count: int = 2, **pod: Any) -> Object:
    """Return a podSet of hosts with four chips each."""
    return {"name": name, "count": count, "template": {"spec": pod_spec(**pod)}}


def admitted(made: Object, now: datetime | None = None) -> Object:
    """Return a Workload admitted with all its requests, on the flavor `tpu` of `team`."""
    assigned = [
        {
            "name": one["name"],
            "count": one["count"],
            "flavors": {TPU: "tpu"},
            "resourceUsage": {TPU: str(4 * one["count"])},
        }
        for one in made["spec"]["podSets"]
    ]
    return reserved(made, {"clusterQueue": "team", "podSetAssignments": assigned}, now or NOON)


def stored(queue: Object) -> Object:
    """Return a ClusterQueue or flavor as it is stored."""
    kind = "resourceflavors" if "nodeLabels" in queue["spec"] else "clusterqueues"
    DEFAULTS[kind](queue)
    return queue


def priority_class(name: str, value: int) -> Object:
    return {"metadata": {"name": name}, "value": value}

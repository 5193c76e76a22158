"""Queues, JobSets and their Workloads as they are stored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from infra.local.clients.objects import timestamp
from infra.local.kueue.workloads import decided, new, next_change
from tests.local.clients.fake_objects import FakeObjects

Json = dict[str, Any]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TPU = "google.com/tpu"
ACCELERATOR = "cloud.google.com/gke-tpu-accelerator"
QUEUE, PRIORITY = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
V5E, V6E = {ACCELERATOR: "tpu-v5-lite-podslice"}, {ACCELERATOR: "tpu-v6e-slice"}


def queue(*, chips: int = 16, v6e: int | None = None, **spec: Any) -> Json:
    """Return the ClusterQueue "team" with quota of the flavor v5e, and of v6e if it is given."""
    quotas = {"v5e": chips} | ({} if v6e is None else {"v6e": v6e})
    flavors = [{"name": name, "resources": [{"name": TPU, "nominalQuota": n}]} for name, n in quotas.items()]
    groups = [{"coveredResources": [TPU], "flavors": flavors}]
    return {"kind": "ClusterQueue", "metadata": {"name": "team"}, "spec": {"resourceGroups": groups} | spec}


def local_queue(**spec: Any) -> Json:
    metadata = {"namespace": "default", "name": "jobs"}
    return {"kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": "team"} | spec}


def flavor(name: str, labels: dict[str, str], **spec: Any) -> Json:
    return {"kind": "ResourceFlavor", "metadata": {"name": name}, "spec": {"nodeLabels": labels} | spec}


FLAVORS = {"v5e": flavor("v5e", V5E), "v6e": flavor("v6e", V6E)}


def cluster(team: Json | None = None, jobs: Json | None = None, without: str = "", **flavors: Json) -> FakeObjects:
    """Return a cluster with the ClusterQueue "team", the LocalQueue "jobs", flavors and a class; `without` one kind."""
    kept = {
        ("clusterqueues", "", "team"): team or queue(),
        ("localqueues", "default", "jobs"): jobs or local_queue(),
        ("workloadpriorityclasses", "", "high"): {"metadata": {"name": "high"}, "value": 1000},
    } | {("resourceflavors", "", name): one for name, one in (FLAVORS | flavors).items()}
    return FakeObjects(kept={key: one for key, one in kept.items() if key[0] != without})


def replicated(name: str = "workers", *, hosts: int = 4, replicas: int = 1, chips: object = 4, **pod: Any) -> Json:
    container = {"name": "train", "resources": {"limits": {TPU: chips}} if chips else {}}
    template = {"spec": {"nodeSelector": V5E, "containers": [container]} | pod}
    job = {"parallelism": hosts, "completions": hosts, "template": template}
    return {"name": name, "replicas": replicas, "template": {"spec": job}}


def jobset(name: str = "train", *jobs: Json, labels: dict[str, str] | None = None, **changes: Any) -> Json:
    """Return a suspended JobSet of one slice of 16 chips; `changes` are fields besides metadata and spec."""
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-of-{name}",
        "labels": {QUEUE: "jobs"} | (labels or {}),
    }
    spec = {"suspend": True, "replicatedJobs": list(jobs) or [replicated()]}
    made = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": spec}
    return made | changes


def running(of: Json) -> Json:
    return of | {"spec": of["spec"] | {"suspend": False}}


def workload(name: str = "train", *jobs: Json, age: int = 0, priority: int = 0) -> Json:
    """Return the Workload of `jobset(name, *jobs)`, created so many seconds before noon."""
    made = new(jobset(name, *jobs), cluster())
    stored = {"name": name, "creationTimestamp": timestamp(NOON - timedelta(seconds=age))}
    return made | {"metadata": made["metadata"] | stored, "spec": made["spec"] | {"priority": priority}}


def admitted(one: Json, name: str = "v5e", chips: int = 16) -> Json:
    row = {"name": "workers", "count": 4, "flavors": {TPU: name}, "resourceUsage": {TPU: str(chips)}}
    return decided(one, {"clusterQueue": "team", "podSetAssignments": [row]}, NOON)


def driven_out(one: Json) -> Json:
    after = next_change(jobset(), admitted(one), cluster(queue(stopPolicy="HoldAndDrain")), NOON)
    assert after is not None
    return after


def condition(one: Json | None, kind: str) -> tuple[str, str, str]:
    """Return status, reason and message of a condition; empty if it is not there."""
    conditions: list[Json] = (one or {})["status"]["conditions"]
    found = next((each for each in conditions if each["type"] == kind), {})
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")

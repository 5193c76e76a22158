"""Workloads of one shape that ask for nothing but chips, of every kind: only their keys keep their pods apart."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from tests.examples.cluster import FOR_EVER, POOL, Cluster, Json
from tpu_standins.kubelet.keys import RUN_SECONDS

HOSTS = 2
JOBSETS = tuple(f"alike-{number}" for number in range(8))
GROUPS, JOBS = ("alike-set-0", "alike-set-1"), ("alike-job-0", "alike-job-1")
DAEMON = "watches-hosts"
_NAMES = ("jobset.sigs.k8s.io/jobset-name", "leaderworkerset.sigs.k8s.io/name", "batch.kubernetes.io/job-name")


def begin(cluster: Cluster) -> None:
    """Apply all at once, and a DaemonSet that monitors hosts."""
    cluster.kubectl("apply", "-f", "-", text=json.dumps(daemon()))
    cluster.create([*map(jobset, JOBSETS), *map(group, GROUPS), *map(job, JOBS)])


def pod(**more: object) -> Json:
    """Return a template of a pod with the chips of a host of a slice of v6e 2x4."""
    selector = {"cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice", "cloud.google.com/gke-tpu-topology": "2x4"}
    container = {"name": "train", "image": "train:1", "resources": {"limits": {"google.com/tpu": "4"}}}
    spec = {"nodeSelector": selector, "containers": [container], **more}
    return {"metadata": {"annotations": {RUN_SECONDS: FOR_EVER}}, "spec": spec}


def _indexed() -> Json:
    several = {"parallelism": HOSTS, "completions": HOSTS, "completionMode": "Indexed", "backoffLimit": 0}
    return {**several, "template": pod(restartPolicy="Never")}


def jobset(name: str) -> Json:
    replicated = {"name": "workers", "replicas": 1, "template": {"spec": _indexed()}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {"replicatedJobs": [replicated]},
    }


def group(name: str) -> Json:
    spec = {"replicas": 1, "leaderWorkerTemplate": {"size": HOSTS, "workerTemplate": pod()}}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name},
        "spec": spec,
    }


def job(name: str) -> Json:
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": _indexed()}


def daemon() -> Json:
    """Return what monitors every host of a slice of this shape: it asks for no chips."""
    labels = {"app": DAEMON}
    template = pod(tolerations=[{"operator": "Exists"}])
    template["metadata"]["labels"] = labels
    template["spec"]["containers"] = [{"name": "monitor", "image": "monitor:1"}]
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": DAEMON}, "spec": spec}


def users(cluster: Cluster) -> dict[str, dict[str, int]]:
    """Return by node pool how many pods with chips of which workload are bound to its hosts, and have not ended."""
    pools = {each["metadata"]["name"]: each["metadata"]["labels"].get(POOL, "") for each in cluster.items("nodes")}
    found: dict[str, dict[str, int]] = {}
    for workload, node in _bound(cluster):
        counts = found.setdefault(pools.get(node, node), {})
        counts[workload] = counts.get(workload, 0) + 1
    return found


def _bound(cluster: Cluster) -> Iterator[tuple[str, str]]:
    for each in cluster.items("pods"):
        labels, node = each["metadata"].get("labels") or {}, each["spec"].get("nodeName")
        over = each["status"].get("phase") in {"Succeeded", "Failed"}
        if node and not over and labels.get("app") != DAEMON:
            yield next(labels[name] for name in _NAMES if name in labels), node


def watched(cluster: Cluster) -> Counter[str]:
    """Return by node pool on how many of its hosts the monitor is, which the stand-in for kubelets does not run."""
    pools = {each["metadata"]["name"]: each["metadata"]["labels"].get(POOL, "") for each in cluster.items("nodes")}
    placed = (each["spec"].get("nodeName") for each in cluster.items("pods", f"app={DAEMON}"))
    return Counter(pools[node] for node in placed if node in pools)

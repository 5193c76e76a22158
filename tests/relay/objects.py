"""Kubernetes objects as the API server returns them, for tests to vary."""

from functools import partial
from typing import Any

from relay import translate
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.wire.readers import READERS

Json = dict[str, Any]

SELECTOR = {
    "cloud.google.com/gke-tpu-accelerator": "tpu-v4-podslice",
    "cloud.google.com/gke-tpu-topology": "2x2x4",
}
ONE_HOST = {
    "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
    "cloud.google.com/gke-tpu-topology": "2x4",
}
TOPOLOGY = "cloud.google.com/gke-tpu-topology"
OPTED_OUT = "tpu-provisioner.cloud.google.com/disable-autoprovisioning"


def container(chips: int | str = 4, **fields: Any) -> Json:
    amounts = {"google.com/tpu": str(chips)} if chips else {"cpu": "1"}
    return {"name": "main", "image": "train", "resources": {"requests": amounts, "limits": amounts}, **fields}


def replicated_job(name: str = "workers", replicas: int | None = 2, **pod_spec: Any) -> Json:
    spec = {"containers": [container()], "nodeSelector": dict(SELECTOR), **pod_spec}
    job: Json = {"name": name, "template": {"spec": {"template": {"spec": spec}}}}
    return job if replicas is None else {**job, "replicas": replicas}


read_jobset = partial(translate.workload, READERS[OwnerKind.JOBSET])


def jobset(name: str = "llama", *, uid: str = "u-1", version: int = 10, generation: int = 1, **parts: Any) -> Json:
    """Return a JobSet; `spec`, `metadata` and `conditions` (types that are True) override its fields."""
    conditions = [{"type": type_, "status": "True"} for type_ in parts.get("conditions", ())]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "namespace": "research",
            "name": name,
            "uid": uid,
            "generation": generation,
            "resourceVersion": str(version),
            **parts.get("metadata", {}),
        },
        "spec": {"replicatedJobs": [replicated_job()], **parts.get("spec", {})},
        "status": {"conditions": conditions},
    }


def controlled_by(job: str) -> list[Json]:
    """Return the ownerReferences of a Job's pods."""
    return [{"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": f"job-{job}", "controller": True}]


def pod(index: int = 0, *, jobset: str = "llama", uid: str | None = None, **parts: Any) -> Json:
    """Return an unschedulable leader pod; `spec`, `metadata`, `labels` and `status` override its fields."""
    labels = {
        "jobset.sigs.k8s.io/jobset-name": jobset,
        "jobset.sigs.k8s.io/jobset-uid": "u-1",
        "jobset.sigs.k8s.io/replicatedjob-name": "workers",
        "jobset.sigs.k8s.io/job-index": str(index),
        "batch.kubernetes.io/job-name": f"{jobset}-workers-{index}",
        "batch.kubernetes.io/job-completion-index": "0",
        **parts.get("labels", {}),
    }
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": "research",
            "name": f"{jobset}-workers-{index}-0-x2x4z",
            "uid": uid or f"pod-{index}",
            "resourceVersion": "20",
            "labels": {key: value for key, value in labels.items() if value is not None},
            "ownerReferences": controlled_by(f"{jobset}-workers-{index}"),
            **parts.get("metadata", {}),
        },
        "spec": {"containers": [container()], "nodeSelector": dict(SELECTOR), **parts.get("spec", {})},
        "status": {"phase": "Pending", "conditions": [unschedulable], **parts.get("status", {})},
    }


def job(name: str = "tune", *, uid: str = "u-job", hosts: int = 4, generation: int = 1, **parts: Any) -> Json:
    """Return an Indexed Job that no JobSet controls; `spec`, `metadata` and `status` vary it."""
    template = {"spec": {"containers": [container()], "nodeSelector": dict(SELECTOR)}}
    spec = {"completionMode": "Indexed", "completions": hosts, "parallelism": hosts, "template": template}
    metadata = {"namespace": "research", "name": name, "uid": uid, "generation": generation, "resourceVersion": "40"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata | parts.get("metadata", {}),
        "spec": spec | parts.get("spec", {}),
        "status": parts.get("status", {}),
    }


def job_pod(name: str = "tune", uid: str = "u-job", index: int = 0, **parts: Any) -> Json:
    """Return a pod of such a Job that cannot be scheduled; it is varied as in `pod`."""
    labels = {"batch.kubernetes.io/job-name": name, "batch.kubernetes.io/job-completion-index": str(index)}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": True}
    return _pod(f"{name}-{index}-x2x4z", f"pod-{name}-{index}", labels, owner, parts)


def job_of_one_pod(name: str = "tune", **parts: Any) -> Json:
    """Return a Job that is not Indexed, whose one pod has a host of 8 chips by itself; it is varied as in `job`."""
    template = {"spec": {"containers": [container(8)], "nodeSelector": dict(ONE_HOST)}}
    spec = {"completionMode": "NonIndexed", "completions": 1, "parallelism": 1, "template": template}
    return job(name, **{**parts, "spec": spec | parts.get("spec", {})})


def only_pod(name: str = "tune", uid: str = "u-job", **parts: Any) -> Json:
    """Return the pod of such a Job that cannot be scheduled; it is varied as in `pod`."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": True}
    spec = {"containers": [container(8)], "nodeSelector": dict(ONE_HOST), **parts.pop("spec", {})}
    labels = {"batch.kubernetes.io/job-name": name}
    return _pod(f"{name}-x2x4z", f"pod-{name}", labels, owner, {**parts, "spec": spec})


def leader_worker_set(
    name: str = "serve", *, uid: str = "u-lws", groups: int = 2, generation: int = 1, **template: Any
) -> Json:
    """Return a LeaderWorkerSet whose groups are of four hosts; `template` varies its leaderWorkerTemplate."""
    worker = {"spec": {"containers": [container()], "nodeSelector": dict(SELECTOR)}}
    metadata = {"namespace": "research", "name": name, "uid": uid, "generation": generation, "resourceVersion": "50"}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": metadata,
        "spec": {"replicas": groups, "leaderWorkerTemplate": {"size": 4, "workerTemplate": worker, **template}},
        "status": {},
    }


def group_pod(index: int = 0, *, name: str = "serve", **parts: Any) -> Json:
    """Return the leader pod of a group that cannot be scheduled; it is varied as in `pod`."""
    prefix = "leaderworkerset.sigs.k8s.io"
    labels = {f"{prefix}/name": name, f"{prefix}/group-index": str(index), f"{prefix}/worker-index": "0"}
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "uid": "u-sts", "controller": True}
    return _pod(f"{name}-{index}", f"pod-{name}-{index}", labels, owner, parts)


def worker_pod(index: int = 0, worker: int = 1, *, leader_has_chips: bool = False, **parts: Any) -> Json:
    """Return a worker of a group that cannot be scheduled; it is varied as in `pod`."""
    prefix = "leaderworkerset.sigs.k8s.io"
    labels = {f"{prefix}/name": "serve", f"{prefix}/group-index": str(index), f"{prefix}/worker-index": str(worker)}
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": f"serve-{index}", "uid": "s", "controller": True}
    annotations = {f"{prefix}/leader-requests-tpus": "true"} if leader_has_chips else {}
    metadata = {"annotations": annotations, **parts.pop("metadata", {})}
    name = f"serve-{index}-{worker}"
    return _pod(name, f"pod-{name}", labels, owner, {**parts, "metadata": metadata})


def single_pod(name: str = "web-1-x2x4z", *, key: str = "u-rs", node: str | None = None, **parts: Any) -> Json:
    """Return a Deployment's pod for a whole host, that the policy pinned; no key: to static hosts. Varied as `pod`."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "u-rs", "controller": True}
    keyed = [
        _required("google.com/tpu-slice-key", key),
        _required("google.com/tpu-provisioner-parent-namespace", "research"),
    ]
    terms = [*([keyed] if key else []), [{"key": "google.com/nodepool-manager", "operator": "DoesNotExist"}]]
    required = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    spec: Json = {"nodeSelector": {**SELECTOR, TOPOLOGY: "2x2x1"}, "affinity": affinity}
    status: Json = {}
    if node is not None:
        spec["nodeName"] = node
        status = {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}]}
    parts = parts | {"spec": spec | parts.get("spec", {}), "status": status | parts.get("status", {})}
    return _pod(name, f"u-{name}", {"app": "web"}, owner, parts)


def _required(key: str, value: str) -> Json:
    return {"key": key, "operator": "In", "values": [value]}


def _pod(name: str, uid: str, labels: dict[str, str], owner: Json, parts: Json) -> Json:
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    metadata = {"namespace": "research", "name": name, "uid": uid, "resourceVersion": "20"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | {"labels": labels, "ownerReferences": [owner]} | parts.get("metadata", {}),
        "spec": {"containers": [container()], "nodeSelector": dict(SELECTOR), **parts.get("spec", {})},
        "status": {"phase": "Pending", "conditions": [unschedulable], **parts.get("status", {})},
    }


def bound_pod(index: int, node: str, *, phase: str = "Running", **parts: Any) -> Json:
    """Return a leader pod that is bound to a node; it is varied as in `pod`."""
    spec = {"nodeName": node, **parts.pop("spec", {})}
    conditions = [{"type": "PodScheduled", "status": "True"}]
    return pod(index, spec=spec, status={"phase": phase, "conditions": conditions}, **parts)


def node(number: int = 0, *, slice_id: str = "tpu-llama-0-aaaaaaaaaaaaa", attempt: int = 1, **parts: Any) -> Json:
    """Return a node of ours, Ready with its 4 chips; `ready`, `offers`, `labels`, `metadata` and `spec` vary it."""
    labels = {
        "google.com/nodepool-manager": "tpu-provisioner",
        "google.com/tpu-slice-id": slice_id,
        "google.com/tpu-slice-attempt": str(attempt),
        "google.com/tpu-slice-owner-uid": "u-1",
        "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
        "cloud.google.com/gke-accelerator-count": "4",
        "cloud.google.com/gke-tpu-topology": "2x2x4",
        **parts.get("labels", {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": f"{slice_id}-{attempt}-{number}",
            "uid": f"node-{slice_id}-{attempt}-{number}",
            "resourceVersion": "30",
            "labels": {key: value for key, value in labels.items() if value is not None},
            **parts.get("metadata", {}),
        },
        "spec": parts.get("spec", {}),
        "status": {
            "conditions": [{"type": "Ready", "status": "True" if parts.get("ready", True) else "False"}],
            "allocatable": {"google.com/tpu": parts.get("offers", "4"), "cpu": "239"},
        },
    }

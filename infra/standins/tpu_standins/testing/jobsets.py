"""JobSets as users write them and as they are stored, and the Jobs that become of them."""

from __future__ import annotations

from typing import Any

from tpu_standins.clients.objects import Object
from tpu_standins.jobset.fields import admitted
from tpu_standins.testing.objects import FakeObjects

POOL = "cloud.google.com/gke-nodepool"
TOPOLOGY = "cloud.google.com/gke-tpu-topology"
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
INDEX = "batch.kubernetes.io/job-completion-index"
LABEL = "jobset.sigs.k8s.io/"
API = "jobset.x-k8s.io/v1alpha2"


def pod_spec(**changes: Any) -> Object:
    resources = {"limits": {"google.com/tpu": "4"}}
    container = {"name": "main", "image": "trainer:1", "resources": resources}
    return {"containers": [container], "nodeSelector": {TOPOLOGY: "2x4"}} | changes


def job_spec(hosts: int = 2, pod: Object | None = None, **changes: Any) -> Object:
    template = {"spec": pod_spec(restartPolicy="Never")} | (pod or {})
    return {"parallelism": hosts, "completions": hosts, "backoffLimit": 0, "template": template} | changes


def replicated_job(name: str = "slice", replicas: int = 2, **changes: Any) -> Object:
    """Return one replicatedJob; `changes` are passed to `job_spec`."""
    return {"name": name, "replicas": replicas, "template": {"spec": job_spec(**changes)}}


def jobset(name: str = "train", *replicated: Object, **spec: Any) -> Object:
    """Return a JobSet, by default of two slices of two hosts, each with exclusive use of its node pool."""
    jobs = list(replicated) or [replicated_job()]
    metadata = {"name": name, "namespace": "default", "annotations": {EXCLUSIVE: POOL}}
    return {"apiVersion": API, "kind": "JobSet", "metadata": metadata, "spec": {"replicatedJobs": jobs} | spec}


def created(new: Object) -> Object:
    """Return what the webhook makes of a new JobSet. Raise Refused."""
    return admitted(FakeObjects(), {"operation": "CREATE", "object": new, "oldObject": None})


def stored(name: str = "train", *replicated: Object, **spec: Any) -> Object:
    """Return a JobSet as the API server has it, with defaults and a UID."""
    made = created(jobset(name, *replicated, **spec))
    return made | {"metadata": made["metadata"] | {"uid": f"uid-of-{name}", "resourceVersion": "1"}}


def annotated(**annotations: str) -> Object:
    """Return a pod template with annotations for the kubelet, such as run_seconds="5", fail_until_restart="1"."""
    keys = {f"local.kubelet/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {"metadata": {"annotations": keys}}


def condition(obj: Object, kind: str) -> Object:
    """Return the condition of this type, or an empty dict."""
    conditions = obj.get("status", {}).get("conditions", [])
    found: Object = next((each for each in conditions if each["type"] == kind), {})
    return found


def ended(job: Object, kind: str, at: str = "2026-01-01T00:00:10Z", **more: str) -> Object:
    """Return a Job that is Complete or Failed since then."""
    final = {"type": kind, "status": "True", "reason": "BackoffLimitExceeded", "lastTransitionTime": at} | more
    return job | {"status": {"conditions": [final]}}


def ready(job: Object) -> Object:
    """Return a Job whose pods are all ready."""
    pods = job["spec"]["parallelism"]
    return job | {"status": {"active": pods, "ready": pods}}

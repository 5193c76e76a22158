"""Objects as people and controllers write them."""

from __future__ import annotations

from typing import Any

from tests.cluster.asking import Json

POOL = "cloud.google.com/gke-nodepool"
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
TPU = "google.com/tpu"
NOBODY = "example.com/nobody"
CONTAINER: Json = {"name": "main", "image": "python:3.12"}


def meta(name: str, **more: Any) -> Json:
    return {"metadata": {"name": name} | more}


def pod(name: str = "one", *, spec: Json | None = None, **more: Any) -> Json:
    """Return a pod that nobody schedules: nothing happens to it by itself; `more` is metadata."""
    return meta(name, **more) | {"spec": {"containers": [CONTAINER], "schedulerName": "nobody"} | (spec or {})}


def chips(count: int | str) -> Json:
    """Return a spec of a pod that wants so many chips."""
    return {"containers": [CONTAINER | {"resources": {"limits": {TPU: count}}}]}


def node(name: str, *, spec: Json | None = None, status: Json | None = None, **labels: str) -> Json:
    return meta(name, labels=labels) | {"spec": spec or {}, "status": status or {}}


def job(name: str = "work", *, spec: Json | None = None, **more: Any) -> Json:
    """Return a suspended Job: it has no pods."""
    template = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
    return meta(name, **more) | {"spec": {"suspend": True, "template": template} | (spec or {})}


def jobset(name: str = "train", *, replicas: int = 2, spec: Json | None = None, **more: Any) -> Json:
    """Return a suspended JobSet that nobody manages: nothing happens to it by itself."""
    selector = {"cloud.google.com/gke-tpu-topology": "4x4"}
    pods = {"nodeSelector": selector, "restartPolicy": "Never"} | chips(4)
    jobs = {"parallelism": 4, "completions": 4, "completionMode": "Indexed", "template": {"spec": pods}}
    replicated = {"name": "slice", "groupName": "default", "replicas": replicas, "template": {"spec": jobs}}
    kind = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    return (
        kind
        | meta(name, **more)
        | {"spec": {"suspend": True, "managedBy": NOBODY, "replicatedJobs": [replicated]} | (spec or {})}
    )


def event(name: str, namespace: str, **more: Any) -> Json:
    about = {"kind": "Pod", "apiVersion": "v1", "name": "one", "namespace": namespace}
    said = {"reason": "Testing", "message": "so", "type": "Normal"}
    return meta(name, namespace=namespace) | {"involvedObject": about} | said | more


def owned_by(owner: Json, *, blocks: bool = False) -> Json:
    """Return metadata with an owner reference."""
    metadata = owner["metadata"]
    reference = {key: owner[key] for key in ("apiVersion", "kind")} | {key: metadata[key] for key in ("name", "uid")}
    return {"ownerReferences": [reference | {"controller": True, "blockOwnerDeletion": blocks}]}


def bound(name: str, host: str, **more: Any) -> Json:
    """Return a pod that somebody has put on a node: it stays when it is deleted, until its node lets go."""
    return pod(name, spec={"nodeName": host, "tolerations": [{"operator": "Exists"}]}, **more)

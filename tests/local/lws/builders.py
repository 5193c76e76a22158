"""LeaderWorkerSets as they are stored, and what becomes of them."""

from __future__ import annotations

from typing import Any

from infra.local.clients.objects import Object
from infra.local.clients.reviews import Json
from infra.local.lws.manifests import mutate_leader_worker_set

API = "leaderworkerset.x-k8s.io/v1"
LABEL = "leaderworkerset.sigs.k8s.io/"
EXCLUSIVE = f"{LABEL}exclusive-topology"
POOL = "cloud.google.com/gke-nodepool"


def lws(name: str = "serve", *, groups: int = 2, size: int = 2, exclusive: bool = False, **parts: Any) -> Object:
    """Return a LeaderWorkerSet as the API server has it; `spec` and `template` vary it."""
    resources = {"limits": {"google.com/tpu": "4"}}
    worker = {"spec": {"containers": [{"name": "main", "image": "server:1", "resources": resources}]}}
    template = {"size": size, "workerTemplate": worker, "restartPolicy": "RecreateGroupOnPodRestart"}
    spec: Json = {
        "replicas": groups,
        "leaderWorkerTemplate": template | parts.get("template", {}),
        "startupPolicy": "LeaderCreated",
    }
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-of-{name}",
        "generation": 1,
        "annotations": {EXCLUSIVE: POOL} if exclusive else {},
    }
    written = {"apiVersion": API, "kind": "LeaderWorkerSet", "metadata": metadata, "spec": spec | parts.get("spec", {})}
    return mutate_leader_worker_set({"object": written, "namespace": "default"})


def condition(obj: Object, kind: str) -> Object:
    """Return the condition of this type, or an empty dict."""
    conditions = obj.get("status", {}).get("conditions", [])
    found: Object = next((each for each in conditions if each["type"] == kind), {})
    return found

"""Kueue's kinds as far as they are used here, and the webhook that suspends new JobSets of queues."""

import base64
from collections.abc import Mapping
from typing import Any

from infra.local.clients.api import Api
from infra.local.clients.installing import OURS, crd, rule, webhook
from infra.local.clients.kinds import KINDS
from infra.local.kueue.workloads import QUEUE

Json = dict[str, Any]
NAME = "tpu-slices-local-kueue"
_ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_FIELDS = {"spec": _ANY, "status": _ANY}
_PENDING = {"Pending Workloads": ".status.pendingWorkloads", "Admitted Workloads": ".status.admittedWorkloads"}
_WORKLOAD = {
    "Queue": ".spec.queueName",
    "Reserved in": ".status.admission.clusterQueue",
    "Admitted": ".status.conditions[?(@.type=='Admitted')].status",
    "Finished": ".status.conditions[?(@.type=='Finished')].status",
    "Age": ".metadata.creationTimestamp",
}


def definitions() -> Mapping[str, Json]:
    """Return the CRDs by plural, with the columns that `kubectl get` shows with Kueue."""
    return {
        "resourceflavors": crd(KINDS["resourceflavors"], _FIELDS, {}, "flavor", "flavors", "rf"),
        "clusterqueues": crd(KINDS["clusterqueues"], _FIELDS, _PENDING, "cq"),
        "localqueues": crd(
            KINDS["localqueues"], _FIELDS, {"ClusterQueue": ".spec.clusterQueue"} | _PENDING, "queue", "queues", "lq"
        ),
        "workloads": crd(KINDS["workloads"], _FIELDS, _WORKLOAD, "kwl"),
        "workloadpriorityclasses": crd(
            KINDS["workloadpriorityclasses"],
            {"value": {"type": "integer"}, "description": {"type": "string"}},
            {"Value": ".value"},
            "wpc",
        ),
    }


def configuration(address: str, authority: bytes) -> Json:
    """Return the webhook's configuration: it is asked about new JobSets that name a queue."""
    queued = {"matchExpressions": [{"key": QUEUE, "operator": "Exists"}]}
    asked = rule(KINDS["jobsets"], "CREATE")
    one = webhook("mjobset.kueue.x-k8s.io", f"{address}/suspend", authority, asked, objectSelector=queued)
    return {"metadata": {"name": NAME, "labels": dict(OURS)}, "webhooks": [one]}


def suspend(_: str, asked: Json) -> Json:
    """Answer an AdmissionReview: the JobSet is created suspended."""
    patch = base64.b64encode(b'[{"op": "add", "path": "/spec/suspend", "value": true}]').decode()
    response = {"uid": asked["request"]["uid"], "allowed": True, "patchType": "JSONPatch", "patch": patch}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def suspends(api: Api) -> bool:
    """Return whether the webhook is called: by a JobSet that is not stored."""
    kind = KINDS["jobsets"]
    metadata = {"name": NAME, "labels": {QUEUE: "none"}}
    body = {"apiVersion": kind.api, "kind": kind.name, "metadata": metadata, "spec": {"replicatedJobs": []}}
    made = api.call("POST", kind.path("default"), body, query={"dryRun": "All"})
    return made["spec"].get("suspend") is True

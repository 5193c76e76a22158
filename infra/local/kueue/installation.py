"""Kueue's kinds as far as they are used here, and the webhook that suspends new JobSets of queues."""

import base64
from collections.abc import Iterator
from typing import Any

from infra.local.clients.api import Api
from infra.local.clients.installing import ANYTHING, crd, rule, tried, webhook
from infra.local.clients.kinds import KINDS, Kind
from infra.local.clients.labels import marked
from infra.local.kueue.workloads import QUEUE

Json = dict[str, Any]
NAME = "tpu-slices-local-kueue"
_FIELDS = {"spec": ANYTHING, "status": ANYTHING}
_COUNTS = {"Pending Workloads": ".status.pendingWorkloads", "Admitted Workloads": ".status.admittedWorkloads"}
_WORKLOAD = {
    "Queue": ".spec.queueName",
    "Reserved in": ".status.admission.clusterQueue",
    "Admitted": ".status.conditions[?(@.type=='Admitted')].status",
    "Finished": ".status.conditions[?(@.type=='Finished')].status",
    "Age": ".metadata.creationTimestamp",
}
_KINDS: dict[str, tuple[Json, dict[str, str], tuple[str, ...]]] = {
    "resourceflavors": (_FIELDS, {}, ("flavor", "flavors", "rf")),
    "workloadpriorityclasses": ({"value": {"type": "integer"}}, {"Value": ".value"}, ("wpc",)),
    "clusterqueues": (_FIELDS, _COUNTS, ("cq",)),
    "localqueues": (_FIELDS, {"ClusterQueue": ".spec.clusterQueue"} | _COUNTS, ("queue", "queues", "lq")),
    "workloads": (_FIELDS, _WORKLOAD, ("kwl",)),
}
"""The fields besides metadata, the columns that `kubectl get` shows, as with Kueue, and the short names."""


def definitions() -> Iterator[tuple[Kind, Json]]:
    """Yield the kinds with their CRDs."""
    for plural, (fields, columns, short) in _KINDS.items():
        yield KINDS[plural], crd(KINDS[plural], fields, columns, *short)


def configurations(address: str, authority: bytes) -> dict[str, Json]:
    """Return the webhook's configuration, by plural: it is asked about new JobSets that name a queue."""
    queued = {"matchExpressions": [{"key": QUEUE, "operator": "Exists"}]}
    one = webhook("mjobset.kueue.x-k8s.io", address, authority, rule(KINDS["jobsets"], "CREATE"), objectSelector=queued)
    return {"mutatingwebhookconfigurations": marked({"metadata": {"name": NAME}, "webhooks": [one]})}


def suspend(_: str, asked: Json) -> Json:
    """Answer an AdmissionReview: the JobSet is created suspended."""
    patch = base64.b64encode(b'[{"op": "add", "path": "/spec/suspend", "value": true}]').decode()
    response = {"uid": asked["request"]["uid"], "allowed": True, "patchType": "JSONPatch", "patch": patch}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def suspends(api: Api) -> bool:
    """Return whether the webhook is called: by a JobSet that is not stored."""
    body = {"metadata": {"name": NAME, "labels": {QUEUE: "none"}}, "spec": {"replicatedJobs": []}}
    return (tried(api, KINDS["jobsets"], body) or {"spec": {}})["spec"].get("suspend") is True

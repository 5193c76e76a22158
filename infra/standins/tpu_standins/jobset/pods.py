"""JobSet's webhook for pods: exclusive placement (pure). Facts: pkg/webhooks/pod_webhook.go.

A leader, the pod of completion index 0, repels other Jobs from its topology domain. Its followers select the domain of
the node that it is bound to, and are refused before. Pods of the node selector strategy are left alone.
"""

from tpu_standins.clients.objects import Object, Objects
from tpu_standins.clients.owners import controller_uid
from tpu_standins.clients.reviews import Refused, submitted
from tpu_standins.jobset import keys

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_ENDED = ("Succeeded", "Failed")


def placed(cluster: Objects, request: Object) -> Object:
    """Return a new pod as JobSet wants it. Raise Refused."""
    pod = submitted(request)
    annotations = pod["metadata"].get("annotations", {})
    topology = annotations.get(keys.EXCLUSIVE_TOPOLOGY)
    if topology is None or keys.NODE_SELECTOR_STRATEGY in annotations:
        return pod
    if _is_leader(pod):
        _repel_other_jobs(pod, topology)
    else:
        domain = {topology: _domain(cluster, pod, topology)}
        pod["spec"]["nodeSelector"] = pod["spec"].get("nodeSelector", {}) | domain
    return pod


def _is_leader(pod: Object) -> bool:
    return bool(pod["metadata"].get("annotations", {}).get(keys.COMPLETION_INDEX) == "0")


def _lives(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") not in _ENDED and "deletionTimestamp" not in pod["metadata"]


def _repel_other_jobs(pod: Object, topology: str) -> None:
    """Add to a leader affinity to its own Job and anti-affinity to other Jobs."""
    own = [pod["metadata"].get("labels", {}).get(keys.JOB_KEY, "")]
    together = [{"key": keys.JOB_KEY, "operator": "In", "values": own}]
    apart = [{"key": keys.JOB_KEY, "operator": "Exists"}, {"key": keys.JOB_KEY, "operator": "NotIn", "values": own}]
    affinity = pod["spec"].setdefault("affinity", {})
    for kind, expressions in (("podAffinity", together), ("podAntiAffinity", apart)):
        selector = {"labelSelector": {"matchExpressions": expressions}, "namespaceSelector": {}}
        affinity.setdefault(kind, {}).setdefault(_REQUIRED, []).append(selector | {"topologyKey": topology})


def _domain(cluster: Objects, pod: Object, topology: str) -> str:
    """Return the domain of the node to which the leader of a follower's Job is bound. Raise Refused."""
    own, namespace = controller_uid(pod), pod["metadata"]["namespace"]
    siblings = [each for each in cluster.stored("pods", namespace) if own and controller_uid(each) == own]
    hosts = [each["spec"].get("nodeName") for each in siblings if _is_leader(each) and _lives(each)]
    labels = [
        each["metadata"].get("labels", {}) for each in cluster.stored("nodes") if [each["metadata"]["name"]] == hosts
    ]
    if not labels or topology not in labels[0]:
        why = f"the leader of this pod is on no node with the label {topology}: not creating a follower yet"
        raise Refused(403, "Forbidden", f"{why}. this is an expected, transient error")
    return str(labels[0][topology])

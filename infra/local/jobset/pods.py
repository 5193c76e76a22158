"""JobSet's webhooks for pods: exclusive placement (pure). Facts: pkg/webhooks/pod_webhook.go.

A leader, the pod of completion index 0, repels other Jobs from its topology domain. Its followers select the domain of
the node that it is bound to, and are refused before.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from infra.local.clients.errors import ApiError
from infra.local.clients.owners import controller_uid
from infra.local.jobset import keys
from infra.local.jobset.refusals import forbidden

Json = dict[str, Any]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TRANSIENT = "this is an expected, transient error"
_ENDED = ("Succeeded", "Failed")


class Cluster(Protocol):
    """The nodes, and the pods of JobSets."""

    def get(self, plural: str, namespace: str | None, name: str) -> Json: ...

    def stored(self, plural: str, namespace: str | None = None) -> Sequence[Json]: ...


def placed(cluster: Cluster, pod: Json) -> Json:
    """Return a new pod as JobSet wants it; `pod` itself is changed, too. Raise Refused."""
    annotations = pod["metadata"].get("annotations") or {}
    if keys.JOBSET_NAME not in annotations or keys.NODE_SELECTOR_STRATEGY in annotations:
        return pod
    if "priority" in pod["spec"]:
        pod["metadata"].setdefault("labels", {})[keys.PRIORITY] = str(pod["spec"]["priority"])
    topology = annotations.get(keys.EXCLUSIVE_TOPOLOGY)
    if topology is not None and is_leader(pod):
        _repel_other_jobs(pod, topology)
    elif topology is not None:
        leader, _ = _leader_of(cluster, pod)
        if leader is not None and leader["spec"].get("nodeName"):
            domain = _domain(cluster, leader, topology)
            pod["spec"]["nodeSelector"] = (pod["spec"].get("nodeSelector") or {}) | {topology: domain}
    return pod


def check(cluster: Cluster, pod: Json) -> None:
    """Raise Refused for a follower whose leader is not bound yet."""
    annotations = pod["metadata"].get("annotations") or {}
    topology = annotations.get(keys.EXCLUSIVE_TOPOLOGY)
    exclusive = keys.JOBSET_NAME in annotations and keys.NODE_SELECTOR_STRATEGY not in annotations
    if not exclusive or topology is None or is_leader(pod):
        return
    selector = pod["spec"].get("nodeSelector")
    if selector is None:
        raise forbidden("follower pod node selector not set")
    if topology not in selector:
        raise forbidden(f"follower pod node selector for topology domain not found. missing selector: {topology}")
    leader, doubt = _leader_of(cluster, pod)
    if leader is None:
        raise forbidden(doubt)
    if not leader["spec"].get("nodeName"):
        raise forbidden(f"leader pod not yet scheduled, not creating follower pod. {_TRANSIENT}")


def is_leader(pod: Json) -> bool:
    return bool((pod["metadata"].get("annotations") or {}).get(keys.COMPLETION_INDEX) == "0")


def lives(pod: Json) -> bool:
    """Return whether the pod has neither ended nor is being deleted."""
    return (pod.get("status") or {}).get("phase") not in _ENDED and "deletionTimestamp" not in pod["metadata"]


def _repel_other_jobs(pod: Json, topology: str) -> None:
    """Add to a leader affinity to its own Job and anti-affinity to other Jobs of the same priority."""
    labels = pod["metadata"].get("labels") or {}
    own, priority = [labels.get(keys.JOB_KEY, "")], [labels.get(keys.PRIORITY, "")]
    together = [{"key": keys.JOB_KEY, "operator": "In", "values": own}]
    apart = [
        {"key": keys.JOB_KEY, "operator": "Exists"},
        {"key": keys.JOB_KEY, "operator": "NotIn", "values": own},
        {"key": keys.PRIORITY, "operator": "In", "values": priority},
    ]
    affinity = pod["spec"].setdefault("affinity", {})
    for kind, expressions in (("podAffinity", together), ("podAntiAffinity", apart)):
        term = {
            "labelSelector": {"matchExpressions": expressions},
            "topologyKey": topology,
            "namespaceSelector": {},
        }
        affinity.setdefault(kind, {}).setdefault(_REQUIRED, []).append(term)


def _domain(cluster: Cluster, leader: Json, topology: str) -> str:
    try:
        labels = cluster.get("nodes", None, leader["spec"]["nodeName"])["metadata"].get("labels") or {}
    except ApiError as error:
        raise forbidden(error.message) from error
    if topology not in labels:
        raise forbidden(f"node does not have topology label: {topology}")
    return str(labels[topology])


def _leader_of(cluster: Cluster, pod: Json) -> tuple[Json | None, str]:
    """Return the only live leader of the follower's Job, or None and the reason why there is none."""
    labels, namespace = pod["metadata"].get("labels") or {}, pod["metadata"]["namespace"]
    for key in (keys.JOBSET_NAME, keys.REPLICATED_JOB, keys.JOB_INDEX):
        if key not in labels:
            return None, f"pod missing label: {key}"
    name = f"{labels[keys.JOBSET_NAME]}-{labels[keys.REPLICATED_JOB]}-{labels[keys.JOB_INDEX]}-0"
    leaders = [other for other in cluster.stored("pods", namespace) if _name(other) == name and lives(other)]
    if len(leaders) != 1:
        return None, f"expected 1 leader pod ({name}), but got {len(leaders)}. {_TRANSIENT}"
    own, theirs = controller_uid(pod), controller_uid(leaders[0])
    if own is None:
        return None, "follower pod has no owner reference"
    if theirs is None:
        return None, f'leader pod "{leaders[0]["metadata"]["name"]}" has no owner reference'
    if own != theirs:
        return None, f"follower pod owner UID ({own}) != leader pod owner UID ({theirs})"
    return leaders[0], ""


def _name(pod: Json) -> str:
    """Return the pod's name without its random suffix."""
    return str(pod["metadata"]["name"].rpartition("-")[0])

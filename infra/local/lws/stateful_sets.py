"""The StatefulSets of a LeaderWorkerSet: one of its leaders, and one of each leader's workers (pure).

Source: sigs.k8s.io/lws pkg/controllers. A pod of the first has worker index 0; it owns the second, of its own name.
"""

import hashlib

import orjson

from infra.local.clients.objects import Object, copied
from infra.local.clients.owners import controlled_by
from infra.local.lws.keys import (
    EXCLUSIVE_TOPOLOGY,
    GROUP_INDEX,
    GROUP_KEY,
    LEADER_NAME,
    NAME,
    REPLICAS,
    REVISION,
    SIZE,
    SUBGROUP_EXCLUSIVE_TOPOLOGY,
    SUBGROUP_SIZE,
    SUBGROUP_TYPE,
    WORKER_INDEX,
)

_TOPOLOGIES = (EXCLUSIVE_TOPOLOGY, SUBGROUP_EXCLUSIVE_TOPOLOGY)


def size(lws: Object) -> int:
    """Return the number of pods of a group, its leader among them."""
    pods: int = lws["spec"]["leaderWorkerTemplate"]["size"]
    return pods


def annotations(obj: Object) -> Object:
    return obj["metadata"].get("annotations") or {}


def labels(obj: Object) -> Object:
    return obj["metadata"].get("labels") or {}


def revision(lws: Object) -> str:
    """Return a hash of all of a LeaderWorkerSet that makes groups anew if it changes."""
    made_of = [lws["spec"]["leaderWorkerTemplate"], lws["spec"].get("networkConfig")]
    return hashlib.sha1(orjson.dumps(made_of, option=orjson.OPT_SORT_KEYS), usedforsecurity=False).hexdigest()


def leader_set(lws: Object, partition: int) -> Object:
    """Return the StatefulSet of the leaders; those of groups below `partition` keep their template."""
    name, template = lws["metadata"]["name"], lws["spec"]["leaderWorkerTemplate"]
    selector, made = {NAME: name, WORKER_INDEX: "0"}, {REVISION: revision(lws)}
    leader = _with(template.get("leaderTemplate") or template["workerTemplate"], selector | made, _told_pods(lws))
    return {
        "metadata": {
            "name": name,
            "namespace": lws["metadata"]["namespace"],
            "labels": labels(lws) | {NAME: name} | made,
            "annotations": annotations(lws) | {REPLICAS: str(lws["spec"]["replicas"])},
            "ownerReferences": [controlled_by(lws)],
        },
        "spec": {
            "serviceName": name,
            "replicas": lws["spec"]["replicas"],
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": selector},
            "template": leader,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}},
        },
    }


def worker_set(lws: Object, leader: Object, domain: str | None) -> Object:
    """Return the StatefulSet of a leader's workers; `domain` is the only one of exclusive topology they may be in."""
    name, made = leader["metadata"]["name"], {REVISION: labels(leader)[REVISION]}
    selector = {key: labels(leader)[key] for key in (GROUP_INDEX, GROUP_KEY)} | {NAME: lws["metadata"]["name"]}
    told = _told_pods(lws) | {LEADER_NAME: name}
    worker = _with(lws["spec"]["leaderWorkerTemplate"]["workerTemplate"], selector | made, told)
    if domain is not None:
        worker["spec"].setdefault("nodeSelector", {})[annotations(lws)[EXCLUSIVE_TOPOLOGY]] = domain
    return {
        "metadata": {
            "name": name,
            "namespace": lws["metadata"]["namespace"],
            "labels": labels(lws) | selector | made,
            "annotations": annotations(lws),
            "ownerReferences": [controlled_by(leader)],
        },
        "spec": {
            "serviceName": lws["metadata"]["name"],
            "replicas": size(lws) - 1,
            "ordinals": {"start": 1},
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": selector},
            "template": worker,
        },
    }


def service(lws: Object) -> Object:
    """Return the headless Service that all groups share."""
    name = lws["metadata"]["name"]
    own = {"labels": {NAME: name}, "ownerReferences": [controlled_by(lws)]}
    return {
        "metadata": {"name": name, "namespace": lws["metadata"]["namespace"]} | own,
        "spec": {"clusterIP": "None", "selector": {NAME: name}, "publishNotReadyAddresses": True},
    }


def _told_pods(lws: Object) -> Object:
    """Return the annotations by which the webhook knows a pod's place."""
    policy = lws["spec"]["leaderWorkerTemplate"].get("subGroupPolicy")
    subgroups = (
        {SUBGROUP_SIZE: str(policy["subGroupSize"]), SUBGROUP_TYPE: policy["subGroupPolicyType"]} if policy else {}
    )
    topologies = {key: annotations(lws)[key] for key in _TOPOLOGIES if key in annotations(lws)}
    return {SIZE: str(size(lws))} | subgroups | topologies


def _with(template: Object, more_labels: Object, more_annotations: Object) -> Object:
    new = copied(template)
    metadata = new.setdefault("metadata", {})
    metadata["labels"] = (metadata.get("labels") or {}) | more_labels
    metadata["annotations"] = (metadata.get("annotations") or {}) | more_annotations
    return new

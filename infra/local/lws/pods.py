"""What the webhook makes of a new pod of a group (pure; sigs.k8s.io/lws pkg/webhooks/pod_webhook.go).

Left out are subgroups, and the variables by which containers know their TPUs: locally no container runs.
"""

import hashlib
from typing import Any

from infra.local.lws.groups import is_leader
from infra.local.lws.keys import EXCLUSIVE_TOPOLOGY, GROUP_INDEX, GROUP_KEY, NAME, SIZE, WORKER_INDEX
from infra.local.lws.stateful_sets import annotations

Json = dict[str, Any]


def placed(pod: Json) -> Json:
    """Return the pod with its place in its group, and a leader with its exclusive domain. It is changed itself.

    Raise KeyError or ValueError for one that no StatefulSet of a LeaderWorkerSet makes.
    """
    metadata = pod["metadata"]
    ordinal = str(int(metadata["name"].rpartition("-")[2]))
    if is_leader(pod):
        metadata["labels"].setdefault(GROUP_INDEX, ordinal)
        key = metadata["labels"].setdefault(GROUP_KEY, group_key(metadata["namespace"], metadata["name"]))
        if EXCLUSIVE_TOPOLOGY in annotations(pod):
            _exclude_others(pod["spec"], annotations(pod)[EXCLUSIVE_TOPOLOGY], key)
    else:
        metadata["labels"][WORKER_INDEX] = ordinal
    for container in (*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ())):
        _introduce(container, _variables(pod))
    return pod


def group_key(namespace: str, leader: str) -> str:
    """Return what all pods of a group have in common, and no others."""
    return hashlib.sha1(f"{namespace}/{leader}".encode(), usedforsecurity=False).hexdigest()


def _exclude_others(spec: Json, topology: str, key: str) -> None:
    """Have the leader's domain of this topology to its group alone."""
    own = {"key": GROUP_KEY, "operator": "In", "values": [key]}
    others = [{"key": GROUP_KEY, "operator": "Exists"}, {"key": GROUP_KEY, "operator": "NotIn", "values": [key]}]
    affinity = spec.get("affinity") or {}
    for kind, expressions in (("podAffinity", [own]), ("podAntiAffinity", others)):
        term = {"labelSelector": {"matchExpressions": expressions}, "topologyKey": topology}
        rules = affinity.get(kind) or {}
        required = rules.get("requiredDuringSchedulingIgnoredDuringExecution") or []
        affinity[kind] = rules | {"requiredDuringSchedulingIgnoredDuringExecution": [*required, term]}
    spec["affinity"] = affinity


def _variables(pod: Json) -> dict[str, str]:
    labels, spec, namespace = pod["metadata"]["labels"], pod["spec"], pod["metadata"]["namespace"]
    leader = f"{labels[NAME]}-{labels[GROUP_INDEX]}"
    return {
        "LWS_LEADER_ADDRESS": f"{leader}.{spec.get('subdomain', '')}.{namespace}",
        "LWS_GROUP_SIZE": annotations(pod)[SIZE],
        "LWS_WORKER_INDEX": labels[WORKER_INDEX],
    }


def _introduce(container: Json, variables: dict[str, str]) -> None:
    own = [each for each in container.get("env") or () if each["name"] not in variables]
    container["env"] = [{"name": name, "value": value} for name, value in variables.items()] + own

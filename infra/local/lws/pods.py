"""What the webhook makes of a new pod of a group (pure; sigs.k8s.io/lws pkg/webhooks/pod_webhook.go).

Left out are the variables by which containers know their TPUs: locally no container runs.
"""

import hashlib
from typing import Any

from infra.local.lws.groups import is_leader
from infra.local.lws.keys import (
    EXCLUSIVE_TOPOLOGY,
    GROUP_INDEX,
    GROUP_KEY,
    LEADER_NAME,
    NAME,
    SIZE,
    SUBGROUP_EXCLUSIVE_TOPOLOGY,
    SUBGROUP_INDEX,
    SUBGROUP_KEY,
    SUBGROUP_SIZE,
    SUBGROUP_TYPE,
    WORKER_INDEX,
)
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
            _exclude_others(pod["spec"], annotations(pod)[EXCLUSIVE_TOPOLOGY], (GROUP_KEY, key))
    else:
        metadata["labels"][WORKER_INDEX] = ordinal
    _place_in_subgroup(pod, int(metadata["labels"][WORKER_INDEX]))
    for container in (*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ())):
        _introduce(container, _variables(pod))
    return pod


def group_key(of: str, name: str) -> str:
    """Return what all pods of a group have in common, and no others: of its namespace and its leader's name."""
    return hashlib.sha1(f"{of}/{name}".encode(), usedforsecurity=False).hexdigest()


def _place_in_subgroup(pod: Json, index: int) -> None:
    """Label a pod with its subgroup, if its group has any that it belongs to."""
    told = annotations(pod)
    if SUBGROUP_SIZE not in told or (index == 0 and told.get(SUBGROUP_TYPE) == "LeaderExcluded"):
        return
    size, each = int(told[SIZE]), int(told[SUBGROUP_SIZE])
    leader_is_extra = (size - 1) % each == 0 and size % each != 0
    subgroup = str(max(index - 1, 0) // each if leader_is_extra else index // each)
    key = group_key(told.get(LEADER_NAME, pod["metadata"]["name"]), subgroup)
    pod["metadata"]["labels"] |= {SUBGROUP_INDEX: subgroup, SUBGROUP_KEY: key}
    if SUBGROUP_EXCLUSIVE_TOPOLOGY in told:
        _exclude_others(pod["spec"], told[SUBGROUP_EXCLUSIVE_TOPOLOGY], (SUBGROUP_KEY, key))


def _exclude_others(spec: Json, topology: str, label: tuple[str, str]) -> None:
    """Have the pod's domain of this topology to the pods with this label alone."""
    key, value = label
    own = {"key": key, "operator": "In", "values": [value]}
    others = [{"key": key, "operator": "Exists"}, {"key": key, "operator": "NotIn", "values": [value]}]
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

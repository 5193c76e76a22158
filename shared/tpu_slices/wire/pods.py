"""Reads pods that get a slice each, where the setting `serve` says so: of no Job, JobSet or LeaderWorkerSet.

Such a pod is a workload of its own, with one claim, and leads it. When its controller makes another one in its place,
that is another workload, which is handed the slice.

| a pod with chips                                       | is by itself, of               |
|--------------------------------------------------------|--------------------------------|
| that nothing controls                                  | a Pod                          |
| that a ReplicaSet controls, as a Deployment's          | a Deployment                   |
| that a StatefulSet controls                            | a StatefulSet                  |
| of a JobSet or LeaderWorkerSet, by its labels          | none, whatever controls it     |
| that anything else controls: a Job, a RayCluster, Node | none                           |

It is served if the admission policy, or the webhook, has it run on hosts with a key (`key_of`): they judge it by the
setting as it is when the pod is created. Whatever becomes of the setting, or of its controller, which may be deleted
without it, a pod that runs stays what it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from tpu_slices.domain.model.clusters import PodsOf
from tpu_slices.domain.model.facts import TemplateRequest, WaitingLeader, WorkloadState
from tpu_slices.domain.planning.host_labels import TOPOLOGY
from tpu_slices.domain.planning.keys import KEY_LABEL
from tpu_slices.domain.planning.pool_labels import OWNER_LABEL, PARENT_NAMESPACE_LABEL
from tpu_slices.wire.jobs import fills_a_slice
from tpu_slices.wire.jobsets import strings
from tpu_slices.wire.leader_worker_sets import NAME as GROUPS
from tpu_slices.wire.workloads import (
    JOBSET_NAME,
    Json,
    chips_of,
    leader_with,
    opted_out,
    reading,
    request_of_template,
)

MADE_BY: Mapping[tuple[str, str], PodsOf] = MappingProxyType(
    {("apps/v1", "ReplicaSet"): PodsOf.DEPLOYMENT, ("apps/v1", "StatefulSet"): PodsOf.STATEFUL_SET}
)
"""Whose a pod is, by the API version and the kind of what controls it."""
_NAME_SUFFIX = ".pod"
"""How the keys of pods end that nothing controls: those of no other workload do."""
_NAME_CHARACTERS = 59
"""What is left for the name of a pod in the value of a label."""
UNPINNED = (
    "neither the admission policy nor the webhook has it run on hosts of its own: it was created before they knew that "
    "such pods are served, or there is neither: delete it, so that it is created again, once `slices doctor` finds one"
)


def made_by(pod: Json) -> PodsOf | None:
    """Return whose pod it is; None: it is not by itself."""
    metadata = pod.get("metadata") or {}
    if not {JOBSET_NAME, GROUPS}.isdisjoint(strings(metadata, "labels")):
        return None
    controller = _controller(pod)
    return PodsOf.POD if controller is None else MADE_BY.get((controller["apiVersion"], controller["kind"]))


def new_key(pod: Json) -> str:
    """Return the key that a pod by itself gets when it is created, by what is known of it then."""
    controller, metadata = _controller(pod), pod.get("metadata") or {}
    if controller is not None:
        return str(controller["uid"])
    return f"{(metadata.get('generateName') or metadata.get('name', ''))[:_NAME_CHARACTERS]}{_NAME_SUFFIX}"


def key_of(pod: Json) -> str:
    """Return the key that the hosts of a pod by itself have to carry, as it was judged to run there; empty: none.

    A tenant who writes such a requirement gets no hosts by it: the policy adds its own to the same term.
    """
    if made_by(pod) is None:
        return ""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or ()
    found = (_key_of(term.get("matchExpressions") or (), pod["metadata"]["namespace"]) for term in terms)
    return next(filter(None, found), "")


def is_served(pod: Json) -> bool:
    """Return whether a pod by itself has not opted out."""
    return not opted_out(pod)


def asks_for_tpu(pod: Json) -> bool:
    """Return whether a pod, or a template, requests chips; raise ValueError like `workloads.requests_of`."""
    with reading("Pod"):
        return bool(chips_of(pod))


def not_ours(pod: Json) -> str:
    """Return why a pod, or one of a template, gets no slice to itself, as a clause with the remedy; empty if it may.

    One of its containers has to have all chips of the topology that the node selector names: by that the admission
    policy knows it, too.
    """
    with reading("Pod"):
        topology = strings(pod["spec"], "nodeSelector").get(TOPOLOGY, "")
        if not topology:
            return f"it selects no {TOPOLOGY}: select one of one host with the node selector"
        if fills_a_slice(strings(pod["spec"], "nodeSelector"), pod["spec"]["containers"]):
            return ""
        return (
            f"none of its containers has all chips of {topology}, and a pod by itself gets a slice of one host that it "
            "takes whole: request them all, select a topology of one host, or use a Job or a LeaderWorkerSet"
        )


def requests_of(pod: Json) -> tuple[TemplateRequest, ...]:
    """Return the request of a pod by itself; raise ValueError like `workloads.requests_of`."""
    return (request_of_pod(pod),)


def request_of_pod(pod: Json) -> TemplateRequest:
    """Return the request of a pod by itself; raise ValueError like `workloads.requests_of`."""
    with reading("Pod"):
        whose = made_by(pod)
        known = {"made_by": whose.value, "pod_key": key_of(pod)} if whose is not None else {}  # of others: refused
        return request_of_template(pod, parallelism=1, completions=1, **known)


def state_of(pod: Json) -> WorkloadState:
    """Return the state of a pod. One that ended and is being deleted has ended."""
    match (pod.get("status") or {}).get("phase"):
        case "Succeeded":
            return WorkloadState.COMPLETED
        case "Failed":
            return WorkloadState.FAILED
        case _:
            return WorkloadState.DELETED if "deletionTimestamp" in pod["metadata"] else WorkloadState.ACTIVE


def leader_of(pod: Json) -> WaitingLeader:
    """Return a pod by itself as its own leader; raise ValueError like `workloads.requests_of`."""
    with reading("Pod"):
        return leader_with(pod, "", 0)


def _key_of(term: Iterable[Json], namespace: str) -> str:
    """Return the key in one term of a pod's required node affinity, as the policy writes it; empty: there is none."""
    required = {(each["key"], each["operator"]): each.get("values") or [] for each in term}
    key, within = required.get((KEY_LABEL, "In"), []), required.get((PARENT_NAMESPACE_LABEL, "In"))
    judged = within == [namespace] and (OWNER_LABEL, "DoesNotExist") not in required
    return str(key[0]) if judged and len(key) == 1 else ""


def _controller(pod: Json) -> Json | None:
    references = (pod.get("metadata") or {}).get("ownerReferences") or ()
    return next((each for each in references if each.get("controller")), None)

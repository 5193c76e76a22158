"""Reads Jobs that no JobSet controls, and identifies the leader pods of Jobs (k8s.io/api/batch/v1).

Each is one slice, whose hosts are its pods:

| the pods of a Job                                              | who leads               |
|----------------------------------------------------------------|-------------------------|
| have a completion index: it is Indexed                         | the pod of index 0      |
| have none, and there is one alone, which fills a slice         | that pod                |
| have none, and are several, or do not fill a slice             | nobody: it is no slice  |

A pod fills a slice if one container of it has all chips of the topology that its node selector names. It does not say
how many pods its Job has: each that fills a slice may lead, and its Job says whether it does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import prod

from tpu_slices.domain.model.facts import EXCLUSIVE, TemplateRequest, WaitingLeader, WorkloadState
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.domain.planning.host_labels import TOPOLOGY
from tpu_slices.wire.jobsets import condition, strings
from tpu_slices.wire.workloads import (
    BY_NODE_SELECTOR,
    CHIPS,
    COMPLETION_INDEX,
    Json,
    annotations_of,
    chips_of,
    fields_of_job,
    leader_with,
    opted_out,
    pods_of,
    reading,
    request_of_template,
)

JOB_NAME = "batch.kubernetes.io/job-name"
"""The label of the pods of Jobs, since Kubernetes 1.27."""
JOB_CONTROLLER = "kubernetes.io/job-controller"
NOBODY_LEADS = (
    "its pods have no completion index, by which one of them leads: set completionMode to Indexed, and completions and "
    "parallelism to the number of hosts. Without an index a Job needs completions and parallelism 1, and one container "
    f"with all chips of the {TOPOLOGY} that it selects"
)
"""Why a Job is no slice, as a clause with the remedy."""
_GROUP = OwnerKind.JOBSET.api_version.partition("/")[0]
_SIDES = re.compile(r"[0-9]{1,3}(x[0-9]{1,3}){1,2}")


def not_ours(obj: Json) -> str:
    """Return why a Job is no slice's, as a clause with the remedy; empty if it may be.

    Raise ValueError like `workloads.requests_of`.
    """
    if _is_of_a_jobset(obj):
        return "its JobSet is served"
    return "" if obj["spec"].get("completionMode") == "Indexed" or is_of_one_pod(obj["spec"]) else NOBODY_LEADS


def why_nobody_leads(jobset: Json, job: Json) -> str:
    """Return why no pod of the Jobs of a replicatedJob leads, as a clause with the remedy; empty: one does.

    Raise ValueError like `workloads.requests_of`.
    """
    spec = job["template"]["spec"]
    if spec.get("completionMode") in {None, "Indexed"}:
        return ""
    if not is_of_one_pod(spec):
        return NOBODY_LEADS
    both = {**annotations_of(jobset), **annotations_of(job["template"])}
    if EXCLUSIVE in both and BY_NODE_SELECTOR not in both:
        return (
            f"with the annotation {EXCLUSIVE} JobSet's webhook refuses its pod, which has no completion index: set "
            "completionMode to Indexed, or remove the annotation"
        )
    return ""


def may_have_asked(obj: Json) -> bool:
    """Return whether a Job that is no slice's may have been one: its parallelism may change while its pod runs."""
    return not _is_of_a_jobset(obj) and asks_for_tpu(obj)


def is_of_one_pod(spec: Json) -> bool:
    """Return whether a Job of this spec has one pod alone, which fills a slice; raise ValueError for a field."""
    with reading("spec"):
        parallelism, template = pods_of(spec, "parallelism", 1), spec["template"]["spec"]
        alone = (parallelism, pods_of(spec, "completions", parallelism)) == (1, 1)
        return alone and fills_a_slice(template.get("nodeSelector") or {}, template.get("containers") or ())


def fills_a_slice(selector: Mapping[str, str], containers: Iterable[Json]) -> bool:
    """Return whether one container of a pod has all chips of the topology that it selects."""
    topology = str(selector.get(TOPOLOGY, ""))
    chips = prod(map(int, topology.split("x"))) if _SIDES.fullmatch(topology) else 0
    limits = ((each.get("resources") or {}).get("limits") or {} for each in containers)
    return chips > 0 and any(str(each.get(CHIPS)) == str(chips) for each in limits)


def _is_of_a_jobset(obj: Json) -> bool:
    references: Iterable[Json] = obj["metadata"].get("ownerReferences") or ()
    return any(
        each.get("controller") and each["kind"] == OwnerKind.JOBSET and each["apiVersion"].partition("/")[0] == _GROUP
        for each in references
    )


def is_served(obj: Json) -> bool:
    """Return whether a Job is managed by Kubernetes' own controller and neither it nor its template opted out."""
    own = (obj["spec"].get("managedBy") or JOB_CONTROLLER) == JOB_CONTROLLER
    return own and not opted_out(obj) and not opted_out(obj["spec"]["template"])


def asks_for_tpu(obj: Json) -> bool:
    """Return whether the template requests chips; raise ValueError like `workloads.requests_of`."""
    with reading("spec.template"):
        return bool(chips_of(obj["spec"]["template"]))


def requests_of(obj: Json) -> tuple[TemplateRequest, ...]:
    """Return the request of a Job; raise ValueError like `workloads.requests_of`."""
    with reading("spec.template"):
        return (request_of_template(obj["spec"]["template"], **fields_of_job(obj)),)


def request_of_pod(pod: Json) -> TemplateRequest:
    """Return the request of a Job's leader without its Job; raise ValueError like `workloads.requests_of`."""
    with reading("Pod"):
        return request_of_template(pod)


def state_of(obj: Json) -> WorkloadState:
    """Return the state of a Job. A Job that fails releases its slice once its pods have ended, as Failed says.

    One that ended and is being deleted, as by its TTL, has ended.
    """
    if condition(obj, "Complete").get("status") == "True":
        return WorkloadState.COMPLETED
    if condition(obj, "Failed").get("status") == "True":
        return WorkloadState.FAILED
    if "deletionTimestamp" in obj["metadata"]:
        return WorkloadState.DELETED
    return WorkloadState.SUSPENDED if obj["spec"].get("suspend") else WorkloadState.ACTIVE


def leader_of(pod: Json) -> WaitingLeader:
    """Return a Job's leader; raise ValueError like `workloads.requests_of`."""
    with reading("Pod"):
        return leader_with(pod, "", 0)


def is_leader(pod: Json) -> bool:
    """Return whether a pod has completion index 0, or has none and fills a slice; whose, its controller tells."""
    labels, annotations = strings(pod["metadata"], "labels"), strings(pod["metadata"], "annotations")
    index = labels.get(COMPLETION_INDEX, annotations.get(COMPLETION_INDEX))
    if index is None:
        return fills_a_slice(strings(pod["spec"], "nodeSelector"), pod["spec"]["containers"])
    return index == "0"

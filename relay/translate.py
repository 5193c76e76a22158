"""Kubernetes objects, as the API server's JSON says them, to what the relay keeps of them. Pure.

Every reader gives None for an object that does not concern us; fields that only Kubernetes writes are trusted to have
their documented shape. Labels: sigs.k8s.io/jobset api v1alpha2, k8s.io/api/batch/v1; GKE's: google.com/tpu nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from relay.seen import Host, JobSet, JobSetName, Leader, PoolKey
from shared.domain.facts import JobSetRef, JobSetState, SliceRequest, WaitingLeader
from shared.domain.host_labels import ACCELERATOR, COUNT, TOPOLOGY
from shared.domain.slices import JobSetUid, SliceId
from shared.domain.topology import Topology

Json = Mapping[str, Any]

CHIPS = "google.com/tpu"
JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"
JOBSET_UID = "jobset.sigs.k8s.io/jobset-uid"
REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
JOB_INDEX = "jobset.sigs.k8s.io/job-index"
JOB_NAME = "batch.kubernetes.io/job-name"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
JOBSET_CONTROLLER = "jobset.sigs.k8s.io/jobset-controller"
OPTED_OUT = "tpu-provisioner.cloud.google.com/disable-autoprovisioning"
SLICE_ID = "google.com/tpu-slice-id"
SLICE_ATTEMPT = "google.com/tpu-slice-attempt"
SLICE_JOBSET_UID = "google.com/tpu-slice-jobset-uid"

LEADERS = f"{JOBSET_NAME},{COMPLETION_INDEX}=0"
"""The label selector of leader pods; Kubernetes labels pods with their index since 1.28."""
HOSTS = SLICE_ID
"""The label selector of our nodes."""

_GKE_PROVISIONERS = (
    "cloud.google.com/compute-class",
    "cloud.google.com/gke-queued",
    "cloud.google.com/gke-flex-start",
)
"""Node selectors by which a pod asks for hosts that GKE itself makes."""


def jobset(obj: Json) -> JobSet | None:
    """Read a jobset.x-k8s.io/v1alpha2 JobSet; None where it asks for no TPU."""
    requests = tuple(request for job in obj["spec"].get("replicatedJobs") or () if (request := _request(job)))
    if not requests:
        return None
    controller = obj["spec"].get("managedBy") or JOBSET_CONTROLLER
    return JobSet(
        ref=jobset_ref(obj),
        state=jobset_state(obj),
        requests=requests,
        served=controller == JOBSET_CONTROLLER and not _opted_out(obj["metadata"]),
    )


def jobset_ref(obj: Json) -> JobSetRef:
    metadata = obj["metadata"]
    return JobSetRef(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=JobSetUid(metadata["uid"]),
        generation=metadata.get("generation", 0),
        resource_version=metadata["resourceVersion"],
    )


def jobset_state(obj: Json) -> JobSetState:
    """Say what a JobSet is up to.

    Suspended is read off the spec alone, whose changes raise the generation: the condition of that name comes later,
    at the same generation, and two facts that differ under one generation could not be put in order.
    """
    if "deletionTimestamp" in obj["metadata"]:
        return JobSetState.DELETED
    if _condition(obj, "Completed").get("status") == "True":
        return JobSetState.COMPLETED
    if _condition(obj, "Failed").get("status") == "True":
        return JobSetState.FAILED
    return JobSetState.SUSPENDED if obj["spec"].get("suspend") else JobSetState.ACTIVE


def leader(obj: Json) -> Leader | None:
    """Read a v1 Pod; None where it is no leader of a JobSet's Job."""
    metadata = obj["metadata"]
    labels = _strings(metadata, "labels")
    index = labels.get(COMPLETION_INDEX, _strings(metadata, "annotations").get(COMPLETION_INDEX))
    job_index = labels.get(JOB_INDEX, "")
    if index != "0" or JOBSET_NAME not in labels or REPLICATED_JOB not in labels or not _is_count(job_index):
        return None
    place = WaitingLeader(replicated_job=labels[REPLICATED_JOB], job_index=int(job_index))
    ended = obj.get("status", {}).get("phase") in {"Succeeded", "Failed"}
    uid = labels.get(JOBSET_UID)
    return Leader(
        pod=metadata["name"],
        pod_uid=metadata["uid"],
        jobset=JobSetName(metadata["namespace"], labels[JOBSET_NAME]),
        jobset_uid=JobSetUid(uid) if uid else None,
        job=labels.get(JOB_NAME) or f"{labels[JOBSET_NAME]}-{place.replicated_job}-{place.job_index}",
        place=place,
        waiting=_cannot_be_scheduled(obj) and _asks_us(obj),
        node=None if ended else obj["spec"].get("nodeName"),
    )


def host(obj: Json) -> Host | None:
    """Read a v1 Node; None where it is not of a pool of ours."""
    metadata = obj["metadata"]
    labels = _strings(metadata, "labels")
    attempt = labels.get(SLICE_ATTEMPT, "")
    if SLICE_ID not in labels or not _is_count(attempt):
        return None
    uid = labels.get(SLICE_JOBSET_UID)
    return Host(
        node=metadata["name"],
        pool=PoolKey(SliceId(labels[SLICE_ID]), int(attempt)),
        jobset_uid=JobSetUid(uid) if uid else None,
        expected=_hosts_of_the_slice(labels),
        usable=_is_usable(obj, labels),
    )


def _request(replicated_job: Json) -> SliceRequest | None:
    spec = replicated_job["template"]["spec"]["template"]["spec"]
    chips = _chips(spec)
    if chips == 0:
        return None
    selector = _strings(spec, "nodeSelector")
    return SliceRequest(
        replicated_job=replicated_job["name"],
        replicas=replicated_job.get("replicas", 1),
        accelerator=selector.get(ACCELERATOR),
        topology=selector.get(TOPOLOGY),
        chips_per_pod=chips,
        node_selector=tuple(sorted(selector.items())),
    )


def _chips(pod_spec: Json) -> int:
    """Sum up the chips of all containers that run at once: sidecars are init containers that restart always."""
    sidecars = (c for c in pod_spec.get("initContainers") or () if c.get("restartPolicy") == "Always")
    return sum(_chips_of(container) for container in (*pod_spec["containers"], *sidecars))


def _chips_of(container: Json) -> int:
    """Read the request, which a limit stands for where there is none (extended resources are whole numbers)."""
    resources = container.get("resources") or {}
    for section in ("requests", "limits"):
        text = str((resources.get(section) or {}).get(CHIPS, ""))
        if _is_count(text):
            return int(text)
    return 0


def _cannot_be_scheduled(pod: Json) -> bool:
    scheduled = _condition(pod, "PodScheduled")
    return (
        pod.get("status", {}).get("phase") == "Pending"
        and (scheduled.get("status"), scheduled.get("reason")) == ("False", "Unschedulable")
        and not pod["spec"].get("schedulingGates")
        and not pod["spec"].get("nodeName")
        and "deletionTimestamp" not in pod["metadata"]
    )


def _asks_us(pod: Json) -> bool:
    selector = _strings(pod["spec"], "nodeSelector")
    return (
        ACCELERATOR in selector
        and TOPOLOGY in selector
        and _chips(pod["spec"]) > 0
        and not _opted_out(pod["metadata"])
        and not any(key in selector for key in _GKE_PROVISIONERS)
    )


def _opted_out(metadata: Json) -> bool:
    return _strings(metadata, "annotations").get(OPTED_OUT) == "true"


def _is_usable(node: Json, labels: Mapping[str, str]) -> bool:
    offered = str((node.get("status", {}).get("allocatable") or {}).get(CHIPS, ""))
    needed = labels.get(COUNT, "")
    return (
        _condition(node, "Ready").get("status") == "True"
        and _is_count(offered)
        and int(offered) >= (int(needed) if _is_count(needed) else 1)
        and "deletionTimestamp" not in node["metadata"]
    )


def _hosts_of_the_slice(labels: Mapping[str, str]) -> int | None:
    chips = labels.get(COUNT, "")
    try:
        return Topology.parse(labels.get(TOPOLOGY, "")).chips // int(chips)
    except (ValueError, ZeroDivisionError):
        return None


def _condition(obj: Json, type_: str) -> Json:
    conditions: Iterable[Json] = obj.get("status", {}).get("conditions") or ()
    matching: Iterator[Json] = (condition for condition in conditions if condition["type"] == type_)
    return next(matching, {})


def _strings(section: Json, key: str) -> Mapping[str, str]:
    strings: Mapping[str, str] = section.get(key) or {}
    return strings


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10

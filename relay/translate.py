"""Kubernetes objects, as the API server's JSON says them, to what the relay keeps of them. Pure.

Every reader gives None for an object that does not concern us; fields that only Kubernetes writes are trusted to have
their documented shape. What tenants write into pod templates is read by `tpu_slices.wire.workloads`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from relay.node_labeler import missing_labels
from relay.objects import Host, JobSet, JobSetName, Leader, PoolKey
from relay.volume_claims import CLAIMS_PER_FACT
from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.model.facts import TemplateRequest
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.slices import SliceId, WorkloadUid
from tpu_slices.domain.planning.host_labels import ACCELERATOR, COUNT, NODE_POOL, TOPOLOGY
from tpu_slices.domain.planning.pool_labels import (
    ATTEMPT_LABEL,
    OWNER,
    OWNER_LABEL,
    OWNER_UID_LABEL,
    SLICE_ID_LABEL,
    legacy_pool,
)
from tpu_slices.wire.jobsets import condition, is_leader, is_served, jobset_ref, jobset_state, strings
from tpu_slices.wire.workloads import (
    CHIPS,
    COMPLETION_INDEX,
    JOB_NAME,
    JOBSET_NAME,
    JOBSET_UID,
    LABELS,
    Json,
    asks_for_tpu,
    chips_of,
    claims_of,
    is_count,
    leader_of,
    opted_out,
    requests_of,
)

LEADERS = f"{JOBSET_NAME},{COMPLETION_INDEX}=0"
"""The label selector of leader pods; Kubernetes labels pods with their index since 1.28."""
LABELS_KEPT = 2 * LABELS
"""Of a pod's, the first by key: among so many are all that are told, LABELS beyond as many of the template's."""
QUEUE = "kueue.x-k8s.io/queue-name"
"""The label that puts a JobSet into a queue of Kueue."""
HOSTS = f"{OWNER_LABEL}={OWNER}"
"""The label selector of our nodes, and of those that TPU Provisioner made."""


def jobset(obj: Json) -> JobSet | None:
    """Read a jobset.x-k8s.io/v1alpha2 JobSet; None where it asks for no TPU.

    One that cannot be read whole is there all the same, and asks for nothing: it must not seem gone.
    """
    requests: tuple[TemplateRequest, ...] = ()
    parse_error = None
    try:
        if not asks_for_tpu(obj):
            return None
        requests = requests_of(obj)
    except ValueError as unreadable:
        parse_error = str(unreadable)
    return JobSet(
        ref=jobset_ref(obj),
        state=jobset_state(obj),
        requests=requests,
        served=is_served(obj),
        queue=strings(obj["metadata"], "labels").get(QUEUE, ""),
        parse_error=parse_error,
    )


def leader(obj: Json) -> Leader | None:
    """Read a v1 Pod; None where it is no leader of a JobSet's Job."""
    if not is_leader(obj):
        return None
    metadata = obj["metadata"]
    labels = strings(metadata, "labels")
    asks = leader_of(obj)
    asks = replace(asks, labels=asks.labels[:LABELS_KEPT])
    ended = obj.get("status", {}).get("phase") in {"Succeeded", "Failed"}
    uid = labels.get(JOBSET_UID)
    return Leader(
        pod=metadata["name"],
        pod_uid=metadata["uid"],
        jobset=JobSetName(metadata["namespace"], labels[JOBSET_NAME]),
        jobset_uid=WorkloadUid(uid) if uid else None,
        job=labels.get(JOB_NAME) or f"{labels[JOBSET_NAME]}-{asks.replicated_job}-{asks.job_index}",
        asks=asks,
        claims=claims_of(obj)[:CLAIMS_PER_FACT],
        waiting=_cannot_be_scheduled(obj) and _asks_us(obj),
        node=None if ended else obj["spec"].get("nodeName"),
    )


def host(obj: Json) -> Host | None:
    """Read a v1 Node; None where it is neither of a pool of ours nor of one that TPU Provisioner made."""
    metadata = obj["metadata"]
    labels = strings(metadata, "labels")
    pool = _pool(labels)
    if pool is None:
        return None
    uid = labels.get(OWNER_UID_LABEL)
    unlabeled = missing_labels(obj)
    return Host(
        node=metadata["name"],
        pool=pool,
        jobset_uid=WorkloadUid(uid) if uid else None,
        expected=_hosts_of_the_slice(labels),
        usable=unlabeled is None and _is_usable(obj, labels),
        unlabeled=unlabeled,
    )


def _pool(labels: Mapping[str, str]) -> PoolKey | LegacyPool | None:
    attempt = labels.get(ATTEMPT_LABEL, "")
    if SLICE_ID_LABEL not in labels:
        return legacy_pool(labels.get(NODE_POOL, ""), labels)
    return PoolKey(SliceId(labels[SLICE_ID_LABEL]), int(attempt)) if is_count(attempt) else None


def _cannot_be_scheduled(pod: Json) -> bool:
    scheduled = condition(pod, "PodScheduled")
    return (
        pod.get("status", {}).get("phase") == "Pending"
        and (scheduled.get("status"), scheduled.get("reason")) == ("False", "Unschedulable")
        and not pod["spec"].get("schedulingGates")
        and not pod["spec"].get("nodeName")
        and "deletionTimestamp" not in pod["metadata"]
    )


def _asks_us(pod: Json) -> bool:
    selector = strings(pod["spec"], "nodeSelector")
    return ACCELERATOR in selector and TOPOLOGY in selector and chips_of(pod) > 0 and not opted_out(pod)


def _is_usable(node: Json, labels: Mapping[str, str]) -> bool:
    offered = str((node.get("status", {}).get("allocatable") or {}).get(CHIPS, ""))
    needed = labels.get(COUNT, "")
    return (
        condition(node, "Ready").get("status") == "True"
        and is_count(offered)
        and int(offered) >= (int(needed) if is_count(needed) else 1)
        and "deletionTimestamp" not in node["metadata"]
        and not node.get("spec", {}).get("unschedulable")
    )


def _hosts_of_the_slice(labels: Mapping[str, str]) -> int | None:
    chips = labels.get(COUNT, "")
    try:
        return Topology.parse(labels.get(TOPOLOGY, "")).chips // int(chips)
    except (ValueError, ZeroDivisionError):
        return None

"""Kubernetes objects as the API server returns them: workloads, their leader pods, and the nodes of pools.

What controllers, kubelets and GKE add to them is as real ones do, where the relay reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from relay.hosts.announced import SCHEDULED
from relay.translate import MAINTENANCE, TAINT
from tpu_slices.domain.model.facts import EXCLUSIVE, GROUP_EXCLUSIVE, WorkloadRef, WorkloadState
from tpu_slices.domain.model.gangs import GANG
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.slices import Owner, OwnerKind
from tpu_slices.domain.planning.host_labels import ACCELERATOR, COUNT, NODE_POOL, TOPOLOGY, host_labels
from tpu_slices.domain.planning.keys import KEY_LABEL
from tpu_slices.domain.planning.pool_labels import (
    JOBSET_LABEL,
    NAMESPACE_LABEL,
    OWNER,
    OWNER_LABEL,
    PARENT_KIND_LABEL,
    PARENT_NAME_LABEL,
    PARENT_NAMESPACE_LABEL,
    labels_of_pool,
)
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.wire import leader_worker_sets
from tpu_slices.wire.workloads import (
    CHIPS,
    COMPLETION_INDEX,
    JOB_INDEX,
    JOBSET_NAME,
    JOBSET_UID,
    REPLICATED_JOB,
    Json,
    chips_of,
)

_CONDITIONS: Mapping[tuple[OwnerKind, WorkloadState], str] = {
    (OwnerKind.JOBSET, WorkloadState.COMPLETED): "Completed",
    (OwnerKind.JOB, WorkloadState.COMPLETED): "Complete",
    (OwnerKind.JOBSET, WorkloadState.FAILED): "Failed",
    (OwnerKind.JOB, WorkloadState.FAILED): "Failed",
}
"""The conditions that tell how a workload has ended. A LeaderWorkerSet does not end by itself."""
_PHASES = {WorkloadState.COMPLETED: "Succeeded", WorkloadState.FAILED: "Failed"}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_OF_JOBS = {OwnerKind.JOBSET, OwnerKind.JOB}
_TPU_TAINT = "google.com/tpu"
"""The key of the taint of every TPU host."""


def workload(manifest: Json, ref: WorkloadRef, state: WorkloadState) -> Json:
    """Return a workload that was made of a manifest, in a state, or as it was last if it is gone."""
    owner, written = ref.owner, manifest.get("metadata") or {}
    metadata = {
        **{key: written[key] for key in ("labels", "annotations", "finalizers") if key in written},
        "namespace": owner.namespace,
        "name": owner.name,
        "uid": owner.uid,
        "generation": ref.generation,
        "resourceVersion": ref.resource_version,
    }
    if state in {WorkloadState.DELETED, WorkloadState.MISSING}:
        metadata["deletionTimestamp"] = "2026-11-01T12:00:00Z"
    if owner.kind.declares:
        api = {"apiVersion": owner.kind.api_version, "kind": owner.kind.value}
        return {**api, "metadata": metadata, "spec": manifest["spec"], "status": manifest.get("status") or {}}
    if owner.kind is OwnerKind.POD:
        phase = _PHASES.get(state, "Pending")
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": manifest["spec"],
            "status": {"phase": phase},
        }
    ended = _CONDITIONS.get((owner.kind, state))
    return {
        "apiVersion": owner.kind.api_version,
        "kind": owner.kind.value,
        "metadata": metadata,
        "spec": {**manifest["spec"], "suspend": state is WorkloadState.SUSPENDED},
        "status": {"conditions": [{"type": ended, "status": "True"}] if ended else []},
    }


def template_of(manifest: Json, replicated_job: str) -> Json:
    """Return the template of the pods that lead a workload, or one of its replicatedJobs.

    Its controller adds the annotations of exclusive topology that the workload itself has, and to the pods of groups
    whether their leader has chips, so that it leads.
    """
    written = (manifest.get("metadata") or {}).get("annotations") or {}
    added = {key: written[key] for key in (EXCLUSIVE, GROUP_EXCLUSIVE) if key in written}
    if manifest["kind"] == OwnerKind.POD:
        return {"metadata": manifest.get("metadata") or {}, "spec": manifest["spec"]}
    spec = _spec_of(manifest, replicated_job)
    groups: Json = spec.get("leaderWorkerTemplate") or {"workerTemplate": spec["template"]}
    worker: Json = groups["workerTemplate"]
    leader: Json = groups.get("leaderTemplate") or worker
    template = leader if chips_of(leader) else worker
    if "leaderWorkerTemplate" in spec and template is leader:
        added[leader_worker_sets.LEADER_HAS_CHIPS] = "true"
    return patched(template, {"metadata": {"annotations": added}}) if added else template


def is_indexed(manifest: Json, replicated_job: str) -> bool:
    """Return whether the pods of a Job have completion indexes; JobSet gives them to its own by default."""
    default = "Indexed" if replicated_job else "NonIndexed"
    return bool((_spec_of(manifest, replicated_job).get("completionMode") or default) == "Indexed")


def _spec_of(manifest: Json, replicated_job: str) -> Json:
    """Return the spec of a workload, or of the Jobs of one of its replicatedJobs."""
    spec: Json = manifest["spec"]
    if "replicatedJobs" in spec:
        [job] = (each for each in spec["replicatedJobs"] if each["name"] == replicated_job)
        spec = job["template"]["spec"]
    return spec


def pod_of(template: Json, owner: Owner, place: tuple[str, int, int], uid: str, node: str | None) -> Json:
    """Return a pod of a Job, bound or unschedulable. Its place: replicatedJob, index, and its own rank; 0 leads."""
    replicated_job, index, rank = place
    written = template.get("metadata") or {}
    if owner.kind is OwnerKind.LEADER_WORKER_SET:
        of_leader = (written.get("annotations") or {}).get(leader_worker_sets.LEADER_HAS_CHIPS) == "true"
        rank += 0 if of_leader else 1
    name, (labels, controller) = owner.job_name(replicated_job, index), _ranked(owner, replicated_job, index, rank)
    scheduled = {"type": "PodScheduled", "status": "True" if node else "False"}
    of_a_set = name if rank == 0 else f"{name}-{rank}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": owner.namespace,
            "name": f"{name}-{rank}-{uid[-5:]}" if owner.kind in _OF_JOBS else of_a_set,
            "uid": uid,
            "resourceVersion": "1",
            "labels": {**(written.get("labels") or {}), **labels},
            "annotations": written.get("annotations") or {},
            "ownerReferences": [{**controller, "controller": True}] if controller else [],
        },
        "spec": {**template["spec"], "nodeName": node} if node else template["spec"],
        "status": {
            "phase": "Running" if node else "Pending",
            "conditions": [scheduled if node else {**scheduled, "reason": "Unschedulable"}],
        },
    }


def changed(pod: Json, at: datetime | None) -> Json:
    """Return a pod whose conditions changed at a time; None: nobody asks."""
    if at is None:
        return pod
    conditions = [{**each, "lastTransitionTime": f"{at:%Y-%m-%dT%H:%M:%SZ}"} for each in pod["status"]["conditions"]]
    return patched(pod, {"status": {"conditions": conditions}})


def gated(pod: Json) -> dict[str, Any]:
    """Return a pod that the scheduling gate of gangs holds, as the admission policy gives it to those of a gang."""
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    held = {"spec": {"schedulingGates": [{"name": GANG}]}, "status": {"conditions": [scheduled]}}
    return patched(pod, {"metadata": {"labels": {GANG: "true"}}, **held})


def unindexed(pod: Json) -> dict[str, Any]:
    """Return a Job's pod without a completion index."""
    return patched(pod, {"metadata": {"labels": {COMPLETION_INDEX: None}}})


def pinned(pod: Json, key: str) -> Json:
    """Return a pod that requires hosts with a key, as the admission policy has it do; empty: it is left as it is."""
    if not key:
        return pod
    affinity = pod["spec"].get("affinity") or {}
    node_affinity = affinity.get("nodeAffinity") or {}
    required = node_affinity.get(_REQUIRED) or {"nodeSelectorTerms": [{}]}
    pairs = ((KEY_LABEL, key), (PARENT_NAMESPACE_LABEL, pod["metadata"]["namespace"]))
    wanted = [{"key": label, "operator": "In", "values": [value]} for label, value in pairs]
    terms = [
        {**each, "matchExpressions": [*each.get("matchExpressions", ()), *wanted]}
        for each in required["nodeSelectorTerms"]
    ]
    affinity = {**affinity, "nodeAffinity": {**node_affinity, _REQUIRED: {"nodeSelectorTerms": terms}}}
    return {**pod, "spec": {**pod["spec"], "affinity": affinity}}


def _ranked(owner: Owner, replicated_job: str, index: int, rank: int) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the labels of a pod that has a rank in its Job, and the reference to its controller."""
    name = owner.job_name(replicated_job, index)
    if owner.kind is OwnerKind.LEADER_WORKER_SET:
        group = {leader_worker_sets.GROUP_INDEX: str(index), leader_worker_sets.WORKER_INDEX: str(rank)}
        made_by = owner.name if rank == 0 else name
        set_ = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": made_by, "uid": f"set-{owner.uid}-{made_by}"}
        return {leader_worker_sets.NAME: owner.name, **group}, set_
    if owner.kind is OwnerKind.POD:
        return {}, {}
    controller = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": f"job-{name}"}
    if owner.kind is OwnerKind.JOB:
        return {COMPLETION_INDEX: str(rank)}, {**controller, "uid": owner.uid}
    whose = {JOBSET_NAME: owner.name, JOBSET_UID: owner.uid, REPLICATED_JOB: replicated_job, JOB_INDEX: str(index)}
    return {**whose, COMPLETION_INDEX: str(rank)}, controller


def node(name: str, labels: Mapping[str, str], chips: str, taints: Sequence[Json] = ()) -> dict[str, Any]:
    """Return a host that is Ready and offers its chips."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "labels": labels, "annotations": {}},
        "spec": {"taints": [{"key": _TPU_TAINT, "value": "present", "effect": "NoSchedule"}, *taints]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {CHIPS: chips}},
    }


def node_of(order: PoolOrder, number: int) -> dict[str, Any]:
    """Return a host of a pool, as GKE registers it: without what only the relay sets."""
    assert order.spec is not None
    known = host_labels(order.spec, order.job, order.settings)
    labels = {key: known[key] for key in (ACCELERATOR, TOPOLOGY, COUNT)}
    labels |= {**labels_of_pool(order.job, order.attempt, order.spec), NODE_POOL: order.name}
    taints = [dict(TAINT)] if order.spec.exclusive_nodes else []
    return node(f"{order.name}-{number}", labels, labels[COUNT], taints)


def legacy_node(pool: LegacyPool, number: int, shape: Mapping[str, str]) -> dict[str, Any]:
    """Return a host of a pool that TPU Provisioner made; `shape` is its labels of accelerator, topology and chips."""
    labels = {
        OWNER_LABEL: OWNER,
        PARENT_KIND_LABEL: "job",
        PARENT_NAME_LABEL: pool.job,
        PARENT_NAMESPACE_LABEL: pool.namespace,
        JOBSET_LABEL: pool.jobset,
        NAMESPACE_LABEL: pool.namespace,
        NODE_POOL: pool.name,
    }
    return node(f"{pool.name}-{number}", {**labels, **shape}, shape[COUNT])


def maintenance(*, on: bool) -> dict[str, Any]:
    """Return the patch of a node whose machine Google maintains, or does no more: it has a label, and is not Ready."""
    ready = [{"type": "Ready", "status": "False" if on else "True"}]
    return {"metadata": {"labels": {MAINTENANCE: "ONGOING" if on else None}}, "status": {"conditions": ready}}


def announcement(at: datetime | None) -> dict[str, Any]:
    """Return the patch of a node of whose machine Google announces maintenance, or does no more."""
    return {"metadata": {"labels": {SCHEDULED: None if at is None else str(int(at.timestamp()))}}}


def aged(obj: Json, created: datetime | None) -> Json:
    """Return an object with the time at which it was created, in whole seconds; None: nobody asks."""
    if created is None:
        return obj
    return patched(obj, {"metadata": {"creationTimestamp": f"{created:%Y-%m-%dT%H:%M:%SZ}"}})


def patched(obj: Json, patch: Json) -> dict[str, Any]:
    """Return an object after a JSON merge patch (RFC 7386)."""
    merged = dict(obj)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            before = merged.get(key)
            merged[key] = patched(before if isinstance(before, Mapping) else {}, value)
        else:
            merged[key] = value
    return merged

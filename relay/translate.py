"""Translates Kubernetes objects, in the API server's JSON, to what the relay keeps of them. Pure.

Every reader returns None for an object that is not relevant; fields that only Kubernetes writes are trusted to have
their documented shape. What tenants write into pod templates is read by `tpu_slices.wire.workloads`.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from relay.hosts.announced import announced
from relay.hosts.closing import closed_for
from relay.hosts.job_pods import created_at, fields_of_pod, has_ended
from relay.hosts.occupants import HostPod
from relay.hosts.waiting import asks_us, unserved, waits
from relay.objects import (
    Hardware,
    Host,
    Leader,
    Pool,
    PoolKey,
    Reference,
    Workload,
)
from relay.pod_status import status_of
from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.model.facts import TemplateRequest
from tpu_slices.domain.model.host_keys import within
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.slices import (
    ClaimId,
    Owner,
    OwnerKind,
    WorkloadUid,
    attempt_named,
    is_claim_id,
    pool_name,
)
from tpu_slices.domain.model.texts import shortened
from tpu_slices.domain.planning.host_labels import (
    ACCELERATOR,
    COUNT,
    JOBSET_TAINT,
    NAMESPACED_JOB,
    NODE_POOL,
    TOPOLOGY,
)
from tpu_slices.domain.planning.keys import KEY_LABEL
from tpu_slices.domain.planning.pool_labels import (
    ANY_NAMESPACE_LABEL,
    ATTEMPT_LABEL,
    EXCLUSIVE_NODES_LABEL,
    OWNER_UID_LABEL,
    PARENT_NAME_LABEL,
    PARENT_NAMESPACE_LABEL,
    SLICE_ID_LABEL,
    legacy_pool,
)
from tpu_slices.domain.planning.tpu_operator import operator_names
from tpu_slices.wire import leader_worker_sets
from tpu_slices.wire.bounds import ERROR_CHARACTERS, VOLUMES_PER_FACT
from tpu_slices.wire.gangs import gates_of
from tpu_slices.wire.jobs import JOB_NAME
from tpu_slices.wire.jobsets import condition, notify_of, strings
from tpu_slices.wire.leaders import (
    LeaderOf,
    itself,
    leader_of_a_group,
    leader_of_a_job,
    member_of_a_group,
    member_of_a_job,
)
from tpu_slices.wire.readers import READERS, Reader
from tpu_slices.wire.workloads import (
    CHIPS,
    COMPLETION_INDEX,
    LABELS,
    Json,
    chips_of,
    is_count,
    shape_of_pod,
    volumes_of,
)

LEADERS = COMPLETION_INDEX
"""The label selector of the pods of Indexed Jobs; Kubernetes labels pods with their index since 1.28."""
UNINDEXED = f"{JOB_NAME},!{COMPLETION_INDEX}"
"""That of the pods of Jobs that are not Indexed."""
NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"
"""The field selector of pods that may use a host; those that have ended stay as long as their Jobs."""
GROUP_LEADERS = leader_worker_sets.NAME
"""The label selector of the pods of LeaderWorkerSets."""
LABELS_KEPT = 2 * LABELS
"""The most labels kept of a pod, the first by key: room for LABELS of its template, and for LABELS beyond those."""
QUEUE = "kueue.x-k8s.io/queue-name"
"""The label that names a JobSet's Kueue queue."""
HOSTS = ACCELERATOR
"""The label selector of nodes with TPU: GKE labels them so, whatever labels people give their pools."""
TAINT: Mapping[str, str] = {"key": JOBSET_TAINT, "value": "true", "effect": "NoSchedule"}
"""JobSet's pods tolerate it, by key and effect."""
MAINTENANCE = "cloud.google.com/active-node-maintenance"
"""GKE's label of a node whose machine is maintained, which is drained and not Ready meanwhile; its value is ONGOING."""
_PROVIDER = re.compile(r"gce://(?P<project>[^/]+)/(?P<zone>[^/]+)/(?P<name>[^/]+)")
LONGEST_LABEL = 63
"""Characters of a label's value. JobSet itself cannot select by a longer namespace and name."""


def hosts_of(pool: Pool) -> str:
    """Return the label selector of the nodes of one pool: by its name, if that is known."""
    if isinstance(pool, LegacyPool):
        return f"{NODE_POOL}={pool.name}"
    if pool.attempt:
        return f"{NODE_POOL}={pool_name(pool.slice_id, pool.attempt)}"
    return f"{SLICE_ID_LABEL}={pool.slice_id},{ATTEMPT_LABEL}={pool.attempt}"


def workload(reader: Reader, obj: Json) -> Workload | None:
    """Return an object as the relay keeps it; None if it requests no TPU, or its pods are not the hosts of slices.

    One that may have been edited under its pods is returned although it asks for nothing. So is one whose templates
    cannot be parsed, without requests: it must not seem deleted.
    """
    try:
        asks = reader.asks_for_tpu(obj) and not reader.not_ours(obj)
        kept = asks or reader.may_have_asked(obj)
    except ValueError:
        asks = kept = True
    return replace(owner_of_pods(reader, obj), asks=asks) if kept else None


def owner_of_pods(reader: Reader, obj: Json) -> Workload:
    """Return an object as the owner of pods that hold chips, whatever its templates request of new ones."""
    requests: tuple[TemplateRequest, ...] = ()
    group = parse_error = None
    try:
        requests, group = reader.requests(obj), reader.declared(obj)
    except ValueError as invalid:
        parse_error = str(invalid)
    return Workload(
        ref=reader.ref(obj),
        state=reader.state(obj),
        requests=requests,
        served=reader.is_served(obj),
        unserved=_why_unserved(reader, obj, requests),
        queue=strings(obj["metadata"], "labels").get(QUEUE, ""),
        notify="" if reader.kind.declares else notify_of(obj),
        parse_error=parse_error,
        group=group,
        finalizers=tuple(obj["metadata"].get("finalizers") or ()) if reader.kind.declares else (),
        created=created_at(obj),
        succeeded=reader.succeeded(obj),
    )


def _why_unserved(reader: Reader, obj: Json, requests: Sequence[TemplateRequest]) -> str:
    try:
        return shortened(reader.why_unserved(obj, requests), ERROR_CHARACTERS)
    except ValueError:  # what cannot be parsed is told by itself, if it matters
        return ""


def leader(obj: Json) -> Leader | None:
    """Return a v1 Pod as a Leader; None if it cannot be the leader pod of a Job, of a JobSet or by itself."""
    return _leader(obj, leader_of_a_job(obj))


def group_leader(obj: Json) -> Leader | None:
    """Return a v1 Pod as a Leader; None if it does not lead the slice of a LeaderWorkerSet's group."""
    return _leader(obj, leader_of_a_group(obj))


def pod_by_itself(obj: Json) -> Workload | None:
    """Return a v1 Pod that is a workload by itself, with its leader; None if it is none, or is not pinned to a key."""
    leads = _leader(obj, itself(obj))
    seen = workload(READERS[OwnerKind.POD], obj) if leads is not None else None
    return replace(seen, leader=leads) if seen is not None else None


def _leader(obj: Json, leads: LeaderOf | None) -> Leader | None:
    if leads is None:
        return None
    return Leader(
        **fields_of_pod(obj, leads),
        asks=replace(leads.asks, labels=leads.asks.labels[:LABELS_KEPT]),
        indexed=COMPLETION_INDEX in strings(obj["metadata"], "labels"),
        hardware=_hardware(obj),
        volumes=volumes_of(obj)[:VOLUMES_PER_FACT],
        waiting=waits(obj) and asks_us(obj),
        ended=has_ended(obj),
        unserved=unserved(obj),
    )


def pod_on_a_host(obj: Json) -> HostPod | None:
    """Return a v1 Pod that is bound to a host as a HostPod; None if it holds no chips, or has ended."""
    metadata, spec = obj["metadata"], obj["spec"]
    if has_ended(obj) or chips_of(obj) == 0:
        return None
    try:
        member = _leader(obj, member_of_a_group(obj) or member_of_a_job(obj) or itself(obj))
    except (KeyError, TypeError, ValueError, AttributeError):  # its labels say nothing that can be read
        member = None
    ends_by = metadata.get("deletionTimestamp")
    return HostPod(
        pod=f"{metadata['namespace']}/{metadata['name']}",
        node=spec["nodeName"],
        member=member,
        ends_by=datetime.fromisoformat(ends_by) if ends_by else None,
    )


def told_by_pod(obj: Json) -> Hashable:
    """Return what of a v1 Pod may change what is told of it as a leader.

    What else is read of a pod's spec cannot change once it has no scheduling gate (Kubernetes' guide "Pod Scheduling
    Readiness"), and does not count before.
    """
    metadata, spec, status = obj["metadata"], obj["spec"], obj.get("status") or {}
    scheduled = condition(obj, "PodScheduled")
    return (
        *(tuple(strings(metadata, key).items()) for key in ("labels", "annotations")),
        *(each["uid"] for each in metadata.get("ownerReferences") or ()),
        "deletionTimestamp" in metadata,
        tuple(strings(spec, "nodeSelector").items()),
        gates_of(obj),
        spec.get("nodeName"),
        status.get("phase"),
        scheduled.get("status"),
        scheduled.get("reason"),
        status_of(obj).told,
    )


def controller_of(metadata: Json) -> Reference | None:
    """Return what controls an object, by its metadata; None if nothing does."""
    references: Sequence[Json] = metadata.get("ownerReferences") or ()
    found = (each for each in references if each.get("controller"))
    return next(
        (
            Reference(each["apiVersion"], each["kind"], metadata["namespace"], each["name"], each["uid"])
            for each in found
        ),
        None,
    )


def host(obj: Json, hosts_in: str = "") -> Host | None:
    """Return a v1 Node as a Host; None unless its pool is ours or TPU Provisioner's.

    `hosts_in`: `projects/P/locations/L` of a self-managed cluster. Its nodes say themselves what labels they have: only
    those count whose machines are instances of the pool's group there.
    """
    metadata = obj["metadata"]
    labels = strings(metadata, "labels")
    pool = _pool(labels)
    if pool is None or (hosts_in and not _is_an_instance_of(obj, pool, labels, hosts_in)):
        return None
    uid = labels.get(OWNER_UID_LABEL)
    unlabeled, closed = missing_labels(obj), closed_for(obj)
    works = unlabeled is None and _is_ready(obj) and _offers_its_chips(obj, labels)
    return Host(
        node=metadata["name"],
        pool=pool,
        workload_uid=WorkloadUid(uid) if uid else None,
        expected=_hosts_of_the_slice(labels),
        ready=_is_ready(obj),
        usable=works and not _is_cordoned(obj),
        sound=works and (not _is_cordoned(obj) or closed is not None),
        chips_missing=_is_ready(obj) and not _offers_its_chips(obj, labels),
        cordoned=_is_cordoned(obj),
        maintained=labels.get(MAINTENANCE) == "ONGOING",
        announced=announced(obj),
        closed_for=closed,
        key=_key(labels),
        uid=metadata["uid"],
        version=metadata["resourceVersion"],
        unlabeled=unlabeled,
    )


def _key(labels: Mapping[str, str]) -> str:
    """Return the key of a host, with the namespace that it is for if that may change."""
    key = labels.get(KEY_LABEL, "")
    return within(labels.get(PARENT_NAMESPACE_LABEL, ""), key) if labels.get(ANY_NAMESPACE_LABEL) == "true" else key


def _is_an_instance_of(node: Json, pool: Pool, labels: Mapping[str, str], hosts_in: str) -> bool:
    """Return whether the providerID of a v1 Node, gce://P/Z/NAME, is that of an instance of a pool's group."""
    _, project, _, location = hosts_in.split("/")
    provider = _PROVIDER.fullmatch(str((node.get("spec") or {}).get("providerID", "")))
    if provider is None or not isinstance(pool, PoolKey):
        return False
    there = (provider["zone"] == location) or provider["zone"].rpartition("-")[0] == location
    group = f"{pool.slice_id}-{pool.attempt}" if pool.attempt else _adopted_group(labels)
    return provider["project"] == project and there and provider["name"].startswith(f"{group}-")


def _adopted_group(labels: Mapping[str, str]) -> str:
    """Return the name of the instance group that TPU operator made for the TPUNodeGroup that labels name."""
    name, namespace = labels.get(PARENT_NAME_LABEL, ""), labels.get(PARENT_NAMESPACE_LABEL, "")
    uid = WorkloadUid(labels.get(OWNER_UID_LABEL, ""))
    return operator_names(Owner(kind=OwnerKind.TPU_NODE_GROUP, namespace=namespace, name=name, uid=uid)).group


def _hardware(pod: Json) -> Hardware:
    return Hardware(chips_of(pod), *shape_of_pod(pod))


def _pool(labels: Mapping[str, str]) -> Pool | None:
    """Return the pool of a node by its name, which GKE writes; else by the pool's labels, which people may replace."""
    named = attempt_named(labels.get(NODE_POOL, ""))
    if named is not None:
        return PoolKey(*named)
    attempt, slice_id = labels.get(ATTEMPT_LABEL, ""), labels.get(SLICE_ID_LABEL)
    if slice_id is None:
        return legacy_pool(labels.get(NODE_POOL, ""), labels)
    return PoolKey(ClaimId(slice_id), int(attempt)) if is_count(attempt) and is_claim_id(slice_id) else None


def _is_ready(node: Json) -> bool:
    return condition(node, "Ready").get("status") == "True" and "deletionTimestamp" not in node["metadata"]


def _offers_its_chips(node: Json, labels: Mapping[str, str]) -> bool:
    offered = str((node.get("status", {}).get("allocatable") or {}).get(CHIPS, ""))
    needed = labels.get(COUNT, "")
    return is_count(offered) and int(offered) >= (int(needed) if is_count(needed) else 1)


def _is_cordoned(node: Json) -> bool:
    return bool((node.get("spec") or {}).get("unschedulable"))


def _hosts_of_the_slice(labels: Mapping[str, str]) -> int | None:
    chips = labels.get(COUNT, "")
    try:
        return Topology.parse(labels.get(TOPOLOGY, "")).chips // int(chips)
    except (ValueError, ZeroDivisionError):
        return None


def missing_labels(node: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the JSON merge patch that labels a v1 Node for its Job; None if it is labeled, or need not or cannot be.

    By JobSet's exclusive placement by node selector, the nodes of a Job's slice are labeled for that Job alone. GKE
    refuses that label on a node pool, so the nodes are labeled once they exist; JobSet leaves that to others
    (kubernetes-sigs/jobset pkg/controllers/jobset_controller.go, constructJob). The taint is part of the node pool, so
    that no other pod is scheduled there first; here it is only restored where it is missing.

    The patch has the resourceVersion that it is based on: it replaces all taints, and must not undo another's change.
    """
    metadata = node["metadata"]
    labels: Mapping[str, str] = metadata.get("labels") or {}
    if labels.get(EXCLUSIVE_NODES_LABEL) != "true":
        return None
    job = f"{labels.get(PARENT_NAMESPACE_LABEL)}_{labels.get(PARENT_NAME_LABEL)}"
    if PARENT_NAMESPACE_LABEL not in labels or PARENT_NAME_LABEL not in labels or len(job) > LONGEST_LABEL:
        return None
    taints: Sequence[Mapping[str, str]] = node["spec"].get("taints") or ()
    tainted = any(TAINT.items() <= taint.items() for taint in taints)
    if tainted and labels.get(NAMESPACED_JOB) == job:
        return None
    others = [taint for taint in taints if (taint["key"], taint["effect"]) != (TAINT["key"], TAINT["effect"])]
    return {
        "metadata": {"resourceVersion": metadata["resourceVersion"], "labels": {NAMESPACED_JOB: job}},
        "spec": {"taints": [*others, dict(TAINT)]},
    }

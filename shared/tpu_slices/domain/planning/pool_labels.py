"""The labels that our node pools and their nodes carry: the Job of the slice, and the proof of our ownership.

Those named `tpu-provisioner-*` and the owner label are TPU Provisioner's (ai-on-gke/tpu-provisioner@6789e2a,
internal/cloud/common.go), so that selectors on them keep working. GKE allows 1,024 characters of labels per
pool (google.container.v1 NodeConfig.labels); ours need about 700, and 1,000 with the longest possible names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from tpu_slices.domain.model.observations import LegacyPool, PoolSeen
from tpu_slices.domain.model.slices import (
    ClaimId,
    ClusterId,
    Owner,
    OwnerKind,
    SliceSpec,
    WorkloadJob,
    WorkloadUid,
    claim_id,
    pool_name,
)
from tpu_slices.domain.planning.host_labels import NAMESPACED_JOB
from tpu_slices.domain.planning.keys import KEY_LABEL

OWNER_LABEL = "google.com/nodepool-manager"
OWNER = "tpu-provisioner"
PARENT_KIND_LABEL = "google.com/tpu-provisioner-parent-kind"
PARENT_NAME_LABEL = "google.com/tpu-provisioner-parent-name"
PARENT_NAMESPACE_LABEL = "google.com/tpu-provisioner-parent-namespace"
JOBSET_LABEL = "google.com/tpu-provisioner-jobset-name"
NAMESPACE_LABEL = "google.com/tpu-provisioner-jobset-namespace"
HASH_LABEL = "google.com/tpu-provisioner-nodepool-hash"

SLICE_ID_LABEL = "google.com/tpu-slice-id"
OWNER_UID_LABEL = "google.com/tpu-slice-owner-uid"
ATTEMPT_LABEL = "google.com/tpu-slice-attempt"
FINGERPRINT_LABEL = "google.com/tpu-slice-fingerprint"
REPLICATED_JOB_LABEL = "google.com/tpu-slice-replicated-job"
JOB_INDEX_LABEL = "google.com/tpu-slice-job-index"
EXCLUSIVE_NODES_LABEL = "google.com/tpu-slice-exclusive-nodes"
"""The relay adds the labels of JobSet's placement by node selector to nodes with this label."""

ANY_NAMESPACE_LABEL = "google.com/tpu-slice-any-namespace"
"""`true` on hosts that may come to other namespaces: the relay says on them for which one they are."""

OF_ONE_SLICE = frozenset({SLICE_ID_LABEL, NAMESPACED_JOB})
"""Node selectors that the hosts of one slice alone meet."""

MOST_CHARACTERS = 1024
"""The limit for keys and values of all labels of a node pool (google.container.v1 NodeConfig.labels)."""

_KINDS = {kind.lower(): kind for kind in OwnerKind if kind is not OwnerKind.JOBSET}
_LONGEST = 63  # of a Kubernetes label's value
_DIGEST = 13  # characters that keep shortened values apart


def labels_of(job: WorkloadJob, attempt: int, spec: SliceSpec) -> dict[str, str]:
    """Return every label of a slice's hosts: the tenant's and ours. The tenant's never replace ours."""
    labels = {
        **dict(spec.node_labels),
        **naming_labels(job, attempt),
        HASH_LABEL: spec.fingerprint,
        FINGERPRINT_LABEL: spec.fingerprint,
    }
    keyed = {**labels, KEY_LABEL: spec.key} if spec.key else labels
    keyed = {**keyed, **_crossing(job)} if spec.crosses else keyed
    return {**keyed, EXCLUSIVE_NODES_LABEL: "true"} if spec.exclusive_nodes else keyed


def labels_of_pool(job: WorkloadJob, attempt: int, spec: SliceSpec) -> dict[str, str]:
    """Return the labels that a slice's pool has, and each host that the vendor makes: for no namespace if it crosses.

    The key is then the slice's own name.
    """
    labels = labels_of(job, attempt, spec)
    return without_namespace(labels) if spec.crosses else labels


def without_namespace(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels without that which says for which namespace hosts are."""
    return {key: value for key, value in labels.items() if key != PARENT_NAMESPACE_LABEL}


def _crossing(job: WorkloadJob) -> dict[str, str]:
    """Return what hosts that may come to other namespaces have beside: in which one their maker is stays known."""
    return {ANY_NAMESPACE_LABEL: "true", NAMESPACE_LABEL: label_value(job.owner.namespace)}


def _parent(job: WorkloadJob) -> dict[str, str]:
    """Return the labels that name the workload; TPU Provisioner's for the Job of a JobSet."""
    namespace = label_value(job.owner.namespace)
    match job.owner.kind:
        case OwnerKind.JOBSET:
            return {
                PARENT_KIND_LABEL: "job",
                PARENT_NAME_LABEL: label_value(job.job_name),
                PARENT_NAMESPACE_LABEL: namespace,
                JOBSET_LABEL: label_value(job.owner.name),
                NAMESPACE_LABEL: namespace,
                REPLICATED_JOB_LABEL: label_value(job.replicated_job),
            }
        case OwnerKind.JOB | OwnerKind.LEADER_WORKER_SET | OwnerKind.TPU_NODE_GROUP | OwnerKind.POD | OwnerKind.SPARE:
            return {
                PARENT_KIND_LABEL: job.owner.kind.lower(),
                PARENT_NAME_LABEL: label_value(job.owner.name),
                PARENT_NAMESPACE_LABEL: namespace,
            }


def _owner(labels: Mapping[str, str]) -> tuple[Owner, str]:
    """Return the workload that `_parent` names, and the replicatedJob; raise KeyError if it names none."""
    if JOBSET_LABEL in labels:
        kind, name, namespace = OwnerKind.JOBSET, labels[JOBSET_LABEL], labels[NAMESPACE_LABEL]
        replicated_job = labels[REPLICATED_JOB_LABEL]
    else:
        kind, replicated_job = _KINDS[labels[PARENT_KIND_LABEL]], ""
        name, namespace = labels[PARENT_NAME_LABEL], labels.get(NAMESPACE_LABEL) or labels[PARENT_NAMESPACE_LABEL]
    return Owner(kind=kind, namespace=namespace, name=name, uid=WorkloadUid(labels[OWNER_UID_LABEL])), replicated_job


def label_value(text: str) -> str:
    """Return a Kubernetes name shortened to a label's 63 characters; names that differ stay different."""
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]
    return f"{text[: _LONGEST - _DIGEST - 1].rstrip('-._')}-{digest}"


def missing_proof(labels: Mapping[str, str], job: WorkloadJob, *, legacy_pool: bool = False) -> str | None:
    """Return why a pool's labels do not prove it to be the Job's, or None if owner, slice id and owner's UID agree.

    An adopted pool has neither our slice id nor the UID: it must be TPU Provisioner's for the same Job.
    """
    return lacking(labels, _proof(job, legacy_pool=legacy_pool)) or None


def _proof(job: WorkloadJob, *, legacy_pool: bool) -> dict[str, str]:
    if legacy_pool:
        of_jobset = {NAMESPACE_LABEL: job.owner.namespace, JOBSET_LABEL: job.owner.name}
        return {OWNER_LABEL: OWNER, **of_jobset, PARENT_NAME_LABEL: job.job_name.lower()}
    return {OWNER_LABEL: OWNER, SLICE_ID_LABEL: claim_id(job), OWNER_UID_LABEL: label_value(job.owner.uid)}


def naming_labels(
    job: WorkloadJob, attempt: int, *, legacy_pool: bool = False, crosses: bool = False
) -> dict[str, str]:
    """Return the labels that name a pool's owner, slice and Job, by which it is found without a record.

    `crosses`: its hosts may come to other namespaces, and those that the vendor makes are for none.
    """
    if legacy_pool:
        return {**_proof(job, legacy_pool=True), PARENT_KIND_LABEL: "job"}
    if crosses:
        return {**without_namespace(naming_labels(job, attempt)), **_crossing(job)}
    return {
        OWNER_LABEL: OWNER,
        **_parent(job),
        SLICE_ID_LABEL: claim_id(job),
        OWNER_UID_LABEL: label_value(job.owner.uid),
        ATTEMPT_LABEL: str(attempt),
        JOB_INDEX_LABEL: str(job.job_index),
    }


def lacking(labels: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    """Return which of the wanted labels is the first that is missing or another; empty: none is."""
    for key, value in wanted.items():
        if key not in labels:
            return f"it has no label {key}."
        if labels[key] != value:
            return f'its label {key} is "{labels[key]}", not "{value}".'
    return ""


def pool_seen(name: str, labels: Mapping[str, str], cluster: ClusterId) -> PoolSeen | None:
    """Return the pool that the labels describe, or that has a name of ours without such labels; None for any other.

    A slice id covers cluster, UID, replicated job and index, so labels that were copied, edited or written for
    another cluster do not match it. The workload's name may be shortened: the slice id shows only its beginning.
    """
    return _described(name, labels, cluster) or PoolSeen.named(name)


def _described(name: str, labels: Mapping[str, str], cluster: ClusterId) -> PoolSeen | None:
    if labels.get(OWNER_LABEL) != OWNER or SLICE_ID_LABEL not in labels:
        return None
    try:
        owner, replicated_job = _owner(labels)
        job = WorkloadJob(
            cluster=cluster,
            owner=owner,
            replicated_job=replicated_job,
            job_index=int(labels[JOB_INDEX_LABEL]),
        )
        attempt = int(labels[ATTEMPT_LABEL])
        expected = pool_name(claim_id(job), attempt)
    except (KeyError, ValueError):
        return None
    if (name, labels[SLICE_ID_LABEL]) != (expected, claim_id(job)):
        return None
    return PoolSeen(name=name, slice_id=ClaimId(labels[SLICE_ID_LABEL]), attempt=attempt, job=job)


def legacy_pool(name: str, labels: Mapping[str, str]) -> LegacyPool | None:
    """Return the pool with the Job that TPU Provisioner made it for, or None if it did not make the pool."""
    if labels.get(OWNER_LABEL) != OWNER or SLICE_ID_LABEL in labels or labels.get(PARENT_KIND_LABEL) != "job":
        return None
    try:
        return LegacyPool(
            name=name,
            namespace=labels[NAMESPACE_LABEL],
            jobset=labels[JOBSET_LABEL],
            job=labels[PARENT_NAME_LABEL],
        )
    except KeyError:
        return None

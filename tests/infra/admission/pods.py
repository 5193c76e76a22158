"""Pods that ask for TPU chips, as the controllers of their kinds make them, before anything else has judged them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tpu_slices.domain.model.facts import EXCLUSIVE, GROUP_EXCLUSIVE
from tpu_slices.domain.planning.host_labels import ACCELERATOR, NODE_POOL, TOPOLOGY

Json = dict[str, Any]

UID = "5f0c1d2e-8a4b-4c6d-9e0f-112233445566"
"""Of the workload."""
JOB_UID = "0aa1b2c3-1111-4222-8333-445566778899"
"""Of a Job of a JobSet, which is made anew when the JobSet restarts."""
GROUP = "e6a61a33965cdc1b5d2bd5672fa0b88b1518a5a7"
"""LeaderWorkerSet's key of the group default/vllm-1."""
SELECTOR: Mapping[str, str] = {ACCELERATOR: "tpu-v6e-slice", TOPOLOGY: "4x4"}
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"


def a_container(name: str = "train", chips: Any = "4", **fields: Any) -> Json:
    return {"name": name, "image": "train:1", "resources": {"limits": {"google.com/tpu": chips}}, **fields}


IDLE: Json = {"name": "idle", "image": "idle:1"}


def a_pod(
    *containers: Json,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    by: tuple[str, str, str] | None = None,
    uid: str = JOB_UID,
    namespace: str = "default",
    **spec: Any,
) -> Json:
    """Return a pod of a slice of 4x4; `by`: API, kind and name of what controls it, and `uid` its UID."""
    metadata: Json = {"generateName": "pod-", "namespace": namespace}
    if labels:
        metadata["labels"] = dict(labels)
    if annotations:
        metadata["annotations"] = dict(annotations)
    if by is not None:
        api, kind, name = by
        metadata["ownerReferences"] = [{"apiVersion": api, "kind": kind, "name": name, "uid": uid, "controller": True}]
    rest = {"restartPolicy": "Never", "automountServiceAccountToken": False, "nodeSelector": dict(SELECTOR), **spec}
    pod = {"containers": list(containers) or [a_container()], **rest}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {key: value for key, value in pod.items() if value is not None},
    }


def of_job(
    *containers: Json, labels: Mapping[str, str | None] | None = None, name: str = "alone", **fields: Any
) -> Json:
    """Return a pod of an Indexed Job by itself."""
    own = {COMPLETION_INDEX: "0", **(labels or {})}
    return a_pod(*containers, labels=_known(own), **{"by": ("batch/v1", "Job", name), "uid": UID, **fields})


def of_jobset(*containers: Json, labels: Mapping[str, str | None] | None = None, **fields: Any) -> Json:
    """Return a pod of the second Job of a JobSet's second replicatedJob, before which there are three others."""
    own = {
        "jobset.sigs.k8s.io/jobset-name": "llama",
        "jobset.sigs.k8s.io/jobset-uid": UID,
        "jobset.sigs.k8s.io/replicatedjob-name": "workers",
        "jobset.sigs.k8s.io/job-index": "1",
        "jobset.sigs.k8s.io/job-global-index": "4",
    }
    return of_job(*containers, labels={**own, **(labels or {})}, name="llama-workers-1", uid=JOB_UID, **fields)


def of_group(*containers: Json, labels: Mapping[str, str | None] | None = None, **fields: Any) -> Json:
    """Return the leader of a LeaderWorkerSet's second group, once LeaderWorkerSet's webhook has labelled it."""
    own: dict[str, str | None] = {
        "leaderworkerset.sigs.k8s.io/name": "vllm",
        "leaderworkerset.sigs.k8s.io/group-index": "1",
        "leaderworkerset.sigs.k8s.io/worker-index": "0",
        "leaderworkerset.sigs.k8s.io/group-key": GROUP,
    }
    return a_pod(*containers, labels=_known({**own, **(labels or {})}), by=("apps/v1", "StatefulSet", "vllm"), **fields)


def _known(labels: Mapping[str, str | None]) -> dict[str, str]:
    """Return the labels without those that are None."""
    return {key: value for key, value in labels.items() if value is not None}


def together(value: str = NODE_POOL) -> dict[str, str]:
    """Return the annotations of a JobSet's exclusive placement."""
    return {EXCLUSIVE: value}


def group_together(value: str = NODE_POOL) -> dict[str, str]:
    return {GROUP_EXCLUSIVE: value}


def requiring(*terms: Json) -> Json:
    """Return the affinity of a pod that requires one of these terms of its node."""
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def term(*expressions: Json) -> Json:
    return {"matchExpressions": list(expressions)}


def within(key: str, *values: str) -> Json:
    return {"key": key, "operator": "In", "values": list(values)}


def terms_of(pod: Json) -> list[Json]:
    """Return what a pod requires of its node, without what is empty."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return [_without_empty(each) for each in required.get("nodeSelectorTerms", ())]


def gates_of(pod: Json) -> tuple[str, ...]:
    return tuple(each["name"] for each in pod["spec"].get("schedulingGates") or ())


def _without_empty(found: Json) -> Json:
    return {
        key: [{field: it for field, it in each.items() if it != []} for each in value]
        for key, value in found.items()
        if value
    }

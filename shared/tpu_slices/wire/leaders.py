"""Which Job or group a pod is one of, its leader or another, or whether it is a workload by itself. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tpu_slices.domain.model.facts import WaitingLeader
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.wire import jobs, jobsets, leader_worker_sets, pods, workloads
from tpu_slices.wire.jobsets import strings
from tpu_slices.wire.workloads import JOBSET_NAME, JOBSET_UID, Json

_JOB = ("batch/v1", "Job")
_STATEFUL_SET = ("apps/v1", "StatefulSet")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderOf:
    """The workload of a pod by kind and name, and the place of its Job or group in it."""

    kind: OwnerKind
    name: str
    uid: str | None
    """From the JobSet controller's label, the reference to the Job, or the pod itself; None if there is none."""
    job: str | None
    """What its controller makes it one of: the Job, or the group; None if no such controller is named."""
    asks: WaitingLeader


def leader_of_a_job(pod: Json) -> LeaderOf | None:
    """Return whose leader a v1 Pod is; None if it leads no Job. Raise ValueError like `workloads.requests_of`."""
    return member_of_a_job(pod) if jobs.is_leader(pod) else None


def leader_of_a_group(pod: Json) -> LeaderOf | None:
    """Return whose leader a v1 Pod is; None if it leads no group. Raise ValueError like `workloads.requests_of`."""
    return member_of_a_group(pod) if leader_worker_sets.is_leader(pod) else None


def itself(pod: Json) -> LeaderOf | None:
    """Return a v1 Pod that is served by itself as its own leader; None for any other."""
    if not pods.key_of(pod):
        return None
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    return LeaderOf(kind=OwnerKind.POD, name=name, uid=uid, job=name, asks=pods.leader_of(pod))


def member_of_a_job(pod: Json) -> LeaderOf | None:
    """Return which Job a v1 Pod is one of, whatever its index; otherwise as `leader_of_a_job`."""
    labels, job = strings(pod["metadata"], "labels"), _controller(pod, _JOB)
    if JOBSET_NAME in labels:
        if not jobsets.is_of_a_job(pod):
            return None
        return LeaderOf(
            kind=OwnerKind.JOBSET,
            name=labels[JOBSET_NAME],
            uid=labels.get(JOBSET_UID) or None,
            job=job["name"] if job else None,
            asks=workloads.leader_of(pod),
        )
    if job is None:
        return None
    return LeaderOf(kind=OwnerKind.JOB, name=job["name"], uid=job["uid"], job=job["name"], asks=jobs.leader_of(pod))


def member_of_a_group(pod: Json) -> LeaderOf | None:
    """Return which group a v1 Pod is one of, whatever its index; otherwise as `leader_of_a_group`.

    A group has no object of its own. Its leader has the group's name, and a StatefulSet of the LeaderWorkerSet's name
    controls it; its workers are controlled by a StatefulSet of the group's name
    (sigs.k8s.io/lws pkg/controllers/leaderworkerset_controller.go, pod_controller.go).
    """
    if not leader_worker_sets.is_of_a_group(pod):
        return None
    labels, made_by = strings(pod["metadata"], "labels"), _controller(pod, _STATEFUL_SET)
    name = labels[leader_worker_sets.NAME]
    group = f"{name}-{labels[leader_worker_sets.GROUP_INDEX]}"
    leads = made_by is not None and made_by["name"] == name and pod["metadata"]["name"] == group
    works = made_by is not None and made_by["name"] == group
    return LeaderOf(
        kind=OwnerKind.LEADER_WORKER_SET,
        name=name,
        uid=None,
        job=group if leads or works else None,
        asks=leader_worker_sets.leader_of(pod),
    )


def _controller(pod: Json, kind: tuple[str, str]) -> Json | None:
    """Return the reference to the object of this API and kind that controls a pod."""
    references: Iterable[Json] = pod["metadata"].get("ownerReferences") or ()
    found = (each for each in references if each.get("controller") and (each["apiVersion"], each["kind"]) == kind)
    return next(found, None)

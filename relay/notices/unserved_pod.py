"""Reads the pods of which `notices.unserved` tells, from Kubernetes' JSON, and from the leaders of JobSets. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from relay.hosts import waiting
from relay.hosts.waiting import asks_us, cannot_be_scheduled
from relay.objects import Leader, Reference, Unserved
from relay.pods.reading import pod_of_a_group, pod_of_a_job
from relay.translate import controller_of, leader
from tpu_slices.domain.model.clusters import PodsOf
from tpu_slices.domain.model.facts import PROVISIONING_REQUESTS
from tpu_slices.domain.model.gangs import GANG
from tpu_slices.domain.model.reasons import OwnerReason
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.domain.model.vendors import GKE, Vendor
from tpu_slices.wire import leader_worker_sets, pods
from tpu_slices.wire.gangs import gates_of
from tpu_slices.wire.jobsets import strings
from tpu_slices.wire.tpu_objects import provisioned_by_gke
from tpu_slices.wire.workloads import COMPLETION_INDEX, JOBSET_NAME, Json


@dataclass(frozen=True, slots=True)
class UnservedPod:
    """A pod that is not scheduled, and requests TPU chips of nobody who is known to provision them."""

    identity: str
    owner: Reference
    """What controls it, or its JobSet or LeaderWorkerSet; itself if nothing does."""
    unserved: Unserved | None = None
    """Why it gets no slice or does not ask for one, whatever its owner is; None: its owner says it."""
    replicated_job: str = ""
    """That of its JobSet which it is of."""
    held: str = ""
    """Its name, if the scheduling gate of gangs holds it by mistake; empty: it does not."""


def unserved(obj: Json, vendor: Vendor = GKE, serve: Collection[PodsOf] = ()) -> UnservedPod | None:
    """Return a v1 Pod as an UnservedPod; None if it is no such pod, one of a JobSet, or GKE provisions its node.

    `serve`: whose pods get a slice each, of which those are told that cannot.
    """
    metadata = obj["metadata"]
    if JOBSET_NAME in strings(metadata, "labels"):
        return None
    if GANG in gates_of(obj) and not _may_be_of_a_gang(obj, serve):
        return UnservedPod(
            metadata["uid"], _owner_of(metadata), Unserved(OwnerReason.NOT_IN_GANG, ""), held=metadata["name"]
        )
    why = waiting.unserved(obj)
    waits = cannot_be_scheduled(obj) and asks_us(obj) if why is None else True
    claims = why is not None and why.reason is OwnerReason.NOT_SERVED
    if not waits or (vendor is GKE and not claims and _is_for_gke(obj)):
        return None
    if why is None and pods.made_by(obj) in serve:
        if pods.key_of(obj):
            return None
        why = Unserved(OwnerReason.NOT_SERVED, pods.not_ours(obj) or pods.UNPINNED)
    return UnservedPod(metadata["uid"], _owner_of(metadata), why)


def unserved_leader(leader: Leader) -> UnservedPod | None:
    """Return a JobSet's leader as an UnservedPod; None if no word on it is to be had from the leader alone."""
    if leader.unserved is None or leader.workload.kind is not OwnerKind.JOBSET:
        return None
    kind, name = leader.workload.kind, leader.workload
    owner = Reference(kind.api_version, kind.value, name.namespace, name.name, leader.workload_uid or "")
    return UnservedPod(leader.identity, owner, leader.unserved, leader.place.replicated_job)


def _may_be_of_a_gang(pod: Json, serve: Collection[PodsOf]) -> bool:
    """Return whether a pod is watched as one of a workload: `relay.gangs` judges it then."""
    if leader_worker_sets.NAME in strings(pod["metadata"], "labels"):
        return pod_of_a_group(pod) is not None
    of_a_job = pod_of_a_job if COMPLETION_INDEX in strings(pod["metadata"], "labels") else leader
    return of_a_job(pod) is not None or (pods.made_by(pod) in serve and bool(pods.key_of(pod)))


def _is_for_gke(pod: Json) -> bool:
    annotations = strings(pod["metadata"], "annotations")
    return provisioned_by_gke(pod) is not None or any(key in annotations for key in PROVISIONING_REQUESTS)


def _owner_of(metadata: Json) -> Reference:
    namespace, name = metadata["namespace"], strings(metadata, "labels").get(leader_worker_sets.NAME)
    if name is not None:
        kind = OwnerKind.LEADER_WORKER_SET
        return Reference(kind.api_version, kind.value, namespace, name, "")
    return controller_of(metadata) or Reference("v1", "Pod", namespace, metadata["name"], metadata["uid"])

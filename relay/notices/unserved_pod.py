"""Reads the pods of which `notices.unserved` tells, from Kubernetes' JSON. Pure."""

from __future__ import annotations

from relay.objects import Reference, UnservedPod
from relay.translate import asks_us, cannot_be_scheduled, controller_of
from tpu_slices.domain.model.facts import PROVISIONING_REQUESTS
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.domain.model.vendors import GKE, Vendor
from tpu_slices.wire import leader_worker_sets
from tpu_slices.wire.device_claims import claimed_chips, why_not_by_claims
from tpu_slices.wire.jobsets import strings
from tpu_slices.wire.tpu_objects import provisioned_by_gke
from tpu_slices.wire.workloads import JOBSET_NAME, JOBSET_UID, Json, opted_out


def unserved(obj: Json, vendor: Vendor = GKE) -> UnservedPod | None:
    """Return a v1 Pod as an UnservedPod; None if it is no such pod, one of a JobSet, or GKE provisions its node.

    One that claims chips as devices is such a pod of whatever it is.
    """
    metadata = obj["metadata"]
    annotations = strings(metadata, "annotations")
    if cannot_be_scheduled(obj) and not opted_out(obj) and (claims := claimed_chips(obj)):
        return UnservedPod(metadata["uid"], _jobset_of(metadata) or _owner_of(metadata), why_not_by_claims(claims))
    if (
        not (cannot_be_scheduled(obj) and asks_us(obj))
        or JOBSET_NAME in strings(metadata, "labels")
        or (vendor is GKE and (provisioned_by_gke(obj) or any(key in annotations for key in PROVISIONING_REQUESTS)))
    ):
        return None
    return UnservedPod(metadata["uid"], _owner_of(metadata))


def _jobset_of(metadata: Json) -> Reference | None:
    labels, kind = strings(metadata, "labels"), OwnerKind.JOBSET
    name, uid = labels.get(JOBSET_NAME), labels.get(JOBSET_UID, "")
    return Reference(kind.api_version, kind.value, metadata["namespace"], name, uid) if name else None


def _owner_of(metadata: Json) -> Reference:
    namespace, name = metadata["namespace"], strings(metadata, "labels").get(leader_worker_sets.NAME)
    if name is not None:
        kind = OwnerKind.LEADER_WORKER_SET
        return Reference(kind.api_version, kind.value, namespace, name, "")
    return controller_of(metadata) or Reference("v1", "Pod", namespace, metadata["name"], metadata["uid"])

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
from tpu_slices.wire.workloads import JOBSET_NAME, Json, opted_out


def unserved(obj: Json, vendor: Vendor = GKE) -> UnservedPod | None:
    """Return a v1 Pod as an UnservedPod; None if it is no such pod, one of a JobSet, or GKE provisions its node."""
    metadata = obj["metadata"]
    annotations = strings(metadata, "annotations")
    if not cannot_be_scheduled(obj) or JOBSET_NAME in strings(metadata, "labels") or opted_out(obj):
        return None
    if claims := claimed_chips(obj):
        return UnservedPod(metadata["uid"], _owner_of(metadata), why_not_by_claims(claims))
    by_gke = provisioned_by_gke(obj) or any(key in annotations for key in PROVISIONING_REQUESTS)
    if not asks_us(obj) or (vendor is GKE and by_gke):
        return None
    return UnservedPod(metadata["uid"], _owner_of(metadata))


def _owner_of(metadata: Json) -> Reference:
    namespace, name = metadata["namespace"], strings(metadata, "labels").get(leader_worker_sets.NAME)
    if name is not None:
        kind = OwnerKind.LEADER_WORKER_SET
        return Reference(kind.api_version, kind.value, namespace, name, "")
    return controller_of(metadata) or Reference("v1", "Pod", namespace, metadata["name"], metadata["uid"])

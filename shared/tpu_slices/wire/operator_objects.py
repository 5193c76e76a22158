"""Reads what TPU operator (gke-labs/tpu-operator) keeps in a cluster: its objects about TPUNodeGroups, and itself.

Only TPU operator and Kubernetes write what is read, but for the spec of a TPUNodeGroup, which `node_groups` bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tpu_slices.domain.model.node_groups import NodeGroup
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.domain.reconciling.group_adoption import OperatorGroup, OperatorPart
from tpu_slices.wire.jobsets import condition
from tpu_slices.wire.node_groups import group_of
from tpu_slices.wire.readers import READERS
from tpu_slices.wire.workloads import Json

GROUP = OwnerKind.TPU_NODE_GROUP
PARTS: Mapping[str, str] = {
    "WorkloadPolicy": "workloadpolicies",
    "InstanceTemplate": "instancetemplates",
    "ManagedInstanceGroup": "managedinstancegroups",
}
"""The kinds of TPU operator's objects about parts of a slice, with their plurals."""
OPERATOR = "tpu-node-group-controller-manager"
"""The name of TPU operator's Deployment."""
OPERATOR_NAMESPACE = "tpu-node-group"


def operator_groups(objects: Iterable[Json]) -> tuple[OperatorGroup, ...]:
    """Return the TPUNodeGroups among objects of the API server, each with the parts that it controls."""
    ours = [each for each in objects if each["apiVersion"] == GROUP.api_version]
    parts: dict[str | None, list[OperatorPart]] = {}
    for each in ours:
        if each["kind"] in PARTS:
            parts.setdefault(_controller(each), []).append(_part(each))
    groups = (each for each in ours if each["kind"] == GROUP)
    return tuple(_group(each, tuple(parts.get(each["metadata"]["uid"], ()))) for each in groups)


def running_operator(objects: Iterable[Json]) -> Iterator[str]:
    """Yield what of TPU operator runs, or may run again: its Deployment with replicas, and its pods."""
    for each in objects:
        metadata = each["metadata"]
        name = f"{metadata.get('namespace')}/{metadata.get('name')}"
        if each["kind"] == "Deployment" and metadata.get("name") == OPERATOR:
            wanted, there = (each.get("spec") or {}).get("replicas", 1), (each.get("status") or {}).get("replicas", 0)
            if wanted or there:
                yield f"Deployment {name} has replicas: {max(wanted, there)}"
        if each["kind"] == "Pod" and str(metadata.get("name")).startswith(f"{OPERATOR}-"):
            yield f"Pod {name} is there"


def shows_operator(objects: Iterable[Json]) -> bool:
    """Return whether TPU operator's Deployment is among the objects."""
    return any(each["kind"] == "Deployment" and each["metadata"].get("name") == OPERATOR for each in objects)


def _group(obj: Json, parts: tuple[OperatorPart, ...]) -> OperatorGroup:
    reader = READERS[GROUP]
    ready = condition(obj, "Ready")
    unready = f"{ready.get('reason', 'no condition')}: {ready.get('message', 'TPU operator has not said so yet')}"
    try:
        declared: NodeGroup | str = group_of(obj)
    except ValueError as why:
        declared = str(why)
    return OperatorGroup(
        ref=reader.ref(obj),
        state=reader.state(obj),
        declared=declared,
        unready="" if ready.get("status") == "True" else unready,
        finalizers=tuple(obj["metadata"].get("finalizers") or ()),
        parts=parts,
    )


def _part(obj: Json) -> OperatorPart:
    metadata, status = obj["metadata"], obj.get("status") or {}
    return OperatorPart(
        kind=obj["kind"],
        name=metadata["name"],
        link=str(status.get("url") or status.get("uri") or ""),
        ready=condition(obj, "Ready").get("status") == "True",
        operation=str(status.get("operationName") or ""),
        deleted="deletionTimestamp" in metadata,
        finalizers=tuple(metadata.get("finalizers") or ()),
    )


def _controller(obj: Json) -> str | None:
    """Return the UID of what controls an object."""
    references: Iterable[Json] = obj["metadata"].get("ownerReferences") or ()
    return next((each["uid"] for each in references if each.get("controller")), None)

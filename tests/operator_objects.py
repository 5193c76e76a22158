"""What the API server returns of TPU operator: a TPUNodeGroup that it made Ready, objects about its parts, itself."""

from __future__ import annotations

import json
from typing import Any

from tests.node_groups import PROJECT, Json, two_hosts
from tpu_slices.domain.model.slices import Owner, OwnerKind, WorkloadUid
from tpu_slices.domain.planning.tpu_operator import FINALIZERS, operator_names
from tpu_slices.wire.operator_objects import OPERATOR, PARTS

_PATHS = {
    "WorkloadPolicy": ("uri", "regions/us-central1/resourcePolicies", "workloadpolicy"),
    "InstanceTemplate": ("uri", "global/instanceTemplates", "instancetemplate"),
    "ManagedInstanceGroup": ("url", "zones/us-central1-c/instanceGroupManagers", "managedinstancegroup"),
}
READY = {
    "type": "Ready",
    "status": "True",
    "reason": "Ready",
    "message": "",
    "lastTransitionTime": "2026-02-28T09:00:00Z",
}


def operators_objects(owner: Owner, manifest: Json | None = None) -> list[Json]:
    """Return a group's object and those about its parts, as they are once it is Ready."""
    written = json.loads(json.dumps(manifest or two_hosts(owner.name)))
    brought = "instanceTemplateURI" in written["spec"]
    needed = {
        "WorkloadPolicy": written["spec"]["nodeCount"] > 1,
        "InstanceTemplate": not brought,
        "ManagedInstanceGroup": True,
    }
    metadata = {
        "namespace": owner.namespace,
        "name": owner.name,
        "uid": owner.uid,
        "generation": 1,
        "resourceVersion": "7",
        "finalizers": [*FINALIZERS],
    }
    nodes = {"ready": written["spec"]["nodeCount"], "reconciling": 0, "failed": 0}
    group = {**written, "metadata": metadata, "status": {"conditions": [READY], "nodeSummary": nodes}}
    names = zip(PARTS, operator_names(owner), strict=True)
    return [group, *(_part(kind, name, owner) for kind, name in names if needed[kind])]


def _part(kind: str, name: str, owner: Owner) -> Json:
    field, path, short = _PATHS[kind]
    reference = {
        "apiVersion": OwnerKind.TPU_NODE_GROUP.api_version,
        "kind": OwnerKind.TPU_NODE_GROUP.value,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    link = f"https://www.googleapis.com/compute/v1/projects/{PROJECT}/{path}/{name}"
    return {
        "apiVersion": OwnerKind.TPU_NODE_GROUP.api_version,
        "kind": kind,
        "metadata": {
            "namespace": owner.namespace,
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": "8",
            "ownerReferences": [reference],
            "finalizers": [f"tpu.google.com/{short}-cleanup"],
        },
        "spec": {"project": PROJECT},
        "status": {"conditions": [{**READY, "reason": "Created"}], field: link},
    }


def changed_object(obj: Json, **changes: Any) -> Json:
    """Return an object whose fields, named as `status__url`, are changed; None removes one."""
    copy: Json = json.loads(json.dumps(obj))
    for name, value in changes.items():
        *path, last = name.split("__")
        section = copy
        for each in path:
            section = section.setdefault(each, {})
        if value is None:
            section.pop(last, None)
        else:
            section[last] = value
    return copy


def an_operator(replicas: int = 0, there: int = 0) -> Json:
    """Return TPU operator's Deployment."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": "tpu-node-group", "name": OPERATOR},
        "spec": {"replicas": replicas},
        "status": {"replicas": there} if there else {},
    }


def its_pod() -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "tpu-node-group", "name": f"{OPERATOR}-6b5c9-x7k2p"},
    }


def a_group_owner(name: str = "trainers", uid: str = "my-uid", namespace: str = "research") -> Owner:
    return Owner(kind=OwnerKind.TPU_NODE_GROUP, namespace=namespace, name=name, uid=WorkloadUid(uid))

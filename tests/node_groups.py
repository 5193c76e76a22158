"""TPUNodeGroups as users of TPU operator write them: its README's two hosts, its tests' single host, and a template."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]

SELF_MANAGED = Path(__file__).parents[1] / "infra" / "kubernetes" / "self-managed"
CRD = SELF_MANAGED / "crd.yaml"
IMAGE = "projects/ubuntu-os-accelerator-images/global/images/ubuntu-accel-2404-amd64-tpu-tpu7x-v20260320"
PROJECT = "demo-project"
TEMPLATE = f"projects/{PROJECT}/global/instanceTemplates/our-hosts"
PLURAL = "tpunodegroups"


def _group(name: str, **spec: Any) -> Json:
    always = {"project": PROJECT, "nodeLocation": "us-central1-c", "acceleratorConnectionMode": "STATIC"}
    return {
        "apiVersion": "tpu.google.com/v1alpha1",
        "kind": "TPUNodeGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**always, **spec},
    }


def two_hosts(name: str = "my-tpu-node-group") -> Json:
    """Return the TPUNodeGroup of the README of TPU operator."""
    return _group(
        name,
        nodeCount=2,
        topology="2x2x2",
        targetSizePolicyMode="BULK",
        instanceConfig={
            "machineType": "tpu7x-standard-4t",
            "provisioningModel": "RESERVATION_BOUND",
            "reservation": "my-tpu-reservation",
            "image": IMAGE,
            "subnetwork": f"projects/{PROJECT}/regions/us-central1/subnetworks/default",
            "bootDiskSizeGB": 100,
        },
        bootstrapKubernetes={"version": "1.31", "controlPlaneIP": "10.128.0.2"},
    )


def one_host(name: str = "single") -> Json:
    """Return a TPUNodeGroup of one host, as in the end-to-end tests of TPU operator."""
    return _group(
        name,
        nodeCount=1,
        topology="2x2x1",
        targetSizePolicyMode="INDIVIDUAL",
        instanceConfig={
            "machineType": "tpu7x-standard-4t",
            "image": IMAGE,
            "bootDiskSizeGB": 250,
            "diskType": "hyperdisk-balanced",
            "subnetwork": "regions/us-central1/subnetworks/default",
            "serviceAccounts": [
                {"email": f"hosts@{PROJECT}.iam.gserviceaccount.com", "scopes": ["https://example.com/scope"]}
            ],
        },
        bootstrapKubernetes={"controlPlaneIP": "10.128.0.2"},
    )


def of_a_template(name: str = "templated") -> Json:
    """Return a TPUNodeGroup of two hosts with an instance template of its user's."""
    return _group(name, nodeCount=2, topology="2x2x2", targetSizePolicyMode="BULK", instanceTemplateURI=TEMPLATE)


SAMPLES: Mapping[str, Json] = {"two hosts": two_hosts(), "one host": one_host(), "a template": of_a_template()}


def changed(group: Json, **changes: Any) -> Json:
    """Return a group whose fields, named as `instanceConfig__reservation`, are changed; None removes one."""
    copy: Json = json.loads(json.dumps(group))
    for name, value in changes.items():
        *path, last = name.split("__")
        section = copy["spec"]
        for each in path:
            section = section.setdefault(each, {})
        if value is None:
            section.pop(last, None)
        else:
            section[last] = value
    return copy


def crd() -> Json:
    loaded: Json = yaml.safe_load(CRD.read_text())
    return loaded

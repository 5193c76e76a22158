"""What TPU Provisioner asks GKE for, for the same pod: ai-on-gke/tpu-provisioner@6789e2a, internal/cloud/gke.go.

Its settings are taken from ours; the labels with its own hash and name are described, not computed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tests.adapters.stories import FLEX_START, RESERVATION, SPOT, Story
from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.model.facts import ADDITIONAL_NETWORKS, COPY_LABELS, SERVICE_ACCOUNT, TemplateRequest

Json = dict[str, Any]

_FAMILIES = {
    "tpu-v4-podslice": "ct4p-hightpu",
    "tpu-v5-lite-podslice": "ct5lp-hightpu",
    "tpu-v5p-slice": "ct5p-hightpu",
    "tpu-v6e-slice": "ct6e-standard",
    "tpu7x": "tpu7x-standard",
}
_COPIED_THOUGH_GOOGLES = {"cloud.google.com/gke-tpu-ici-resiliency", "cloud.google.com/gke-location-hint"}
_NOT_COPIED = ("cloud.google.com/", "google.com/")


def node_pool_of(story: Story) -> Json | None:
    """Return its node pool as the REST API writes it; None: it does not know the accelerator or flex-start."""
    request, settings = story.request, story.settings
    if FLEX_START in dict(request.node_selector):
        return None
    if request.accelerator not in _FAMILIES or request.topology is None:
        return None
    machine = f"{_FAMILIES[request.accelerator]}-{request.chips_per_pod}t"
    hosts = math.ceil(Topology.parse(request.topology).chips / 4)
    return _set(
        {
            "name": "34 characters of the JobSet's name and 5 of the Job's key",
            "initialNodeCount": hosts,
            "locations": [settings.zone],
            "config": _config(story, machine),
            "placementPolicy": _placement(request, machine, hosts),
            "management": {"autoRepair": True},
            "maxPodsConstraint": {"maxPodsPerNode": "15"},
            "upgradeSettings": {"maxSurge": 1},
            "networkConfig": _networks(story),
        }
    )


def _config(story: Story, machine: str) -> Json:
    pools, requested_annotations = story.settings.pools, dict(story.request.requested_annotations)
    image = pools.secondary_boot_disk
    return {
        "machineType": machine,
        "diskType": pools.boot_disk_type,
        "bootDiskKmsKey": pools.boot_disk_kms_key,
        "enableConfidentialStorage": pools.confidential_storage,
        "secondaryBootDisks": image and [{"mode": "CONTAINER_IMAGE_CACHE", "diskImage": image}],
        "serviceAccount": requested_annotations.get(SERVICE_ACCOUNT, pools.service_account),
        "shieldedInstanceConfig": {"enableIntegrityMonitoring": True, "enableSecureBoot": pools.secure_boot},
        "tags": list(pools.network_tags),
        "labels": _labels(story),
        **({} if story.settings.force_on_demand else _capacity(dict(story.request.node_selector))),
    }


def _capacity(selector: Mapping[str, str]) -> Json:
    """Return a reservation without blocks and sub-blocks, and spot with its taint."""
    paid: Json = {}
    if f"{RESERVATION}-name" in selector:
        project = selector.get(f"{RESERVATION}-project")
        name = selector[f"{RESERVATION}-name"]
        paid["reservationAffinity"] = {
            "consumeReservationType": "SPECIFIC_RESERVATION",
            "key": "compute.googleapis.com/reservation-name",
            "values": [f"projects/{project}/reservations/{name}" if project else name],
        }
    if selector.get(SPOT) == "true":
        paid |= {"spot": True, "taints": [{"key": SPOT, "value": "true", "effect": "NO_SCHEDULE"}]}
    return paid


def _placement(request: TemplateRequest, machine: str, hosts: int) -> Json:
    if request.accelerator == "tpu7x":
        return {"policyName": f"tpu-provisioner-{request.topology}"}
    single = machine.endswith("-1t") or machine == "ct6e-standard-8t" or (machine == "ct6e-standard-4t" and hosts == 1)
    return {} if single else {"type": "COMPACT", "tpuTopology": request.topology}


def _labels(story: Story) -> dict[str, str]:
    job, request = story.job, story.request
    copied = (*story.settings.pod_to_node_labels, *dict(request.requested_annotations).get(COPY_LABELS, "").split(","))
    return {
        "google.com/nodepool-manager": "tpu-provisioner",
        "google.com/tpu-provisioner-parent-kind": "job",
        "google.com/tpu-provisioner-parent-name": job.job_name,
        "google.com/tpu-provisioner-parent-namespace": job.owner.namespace,
        "google.com/tpu-provisioner-jobset-name": job.owner.name,
        "google.com/tpu-provisioner-jobset-namespace": job.owner.namespace,
        "google.com/tpu-provisioner-nodepool-hash": "of labels, machine type, spot and reservation",
        **{key: label for key, label in request.labels if key in copied},
        **{
            key: value
            for key, value in request.node_selector
            if key in _COPIED_THOUGH_GOOGLES or not key.startswith(_NOT_COPIED)
        },
    }


def _networks(story: Story) -> Json:
    requested = dict(story.request.requested_annotations).get(ADDITIONAL_NETWORKS, "")
    pairs = [pair.strip() for pair in requested.split(",") if pair.strip()]
    named = pairs or [str(network) for network in story.settings.pools.additional_networks]
    split = [pair.partition(":") for pair in named]
    return {"additionalNodeNetworkConfigs": [{"network": one, "subnetwork": other} for one, _, other in split]}


def _set(message: Json) -> Json:
    """Leave out what is not set, as the REST API does."""
    inner = {key: _set(value) if isinstance(value, dict) else value for key, value in message.items()}
    return {key: value for key, value in inner.items() if value}

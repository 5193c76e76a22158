"""What tenants of self-managed clusters ask for, and the orders that come of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.adapters.stories import RESERVATION, SPOT, Story, asking
from tests.builders import self_managed
from tpu_slices.domain.model.clusters import ComputeSettings, Join, PoolSettings
from tpu_slices.domain.model.facts import TemplateRequest
from tpu_slices.domain.model.slices import InstanceRequest, Network
from tpu_slices.ports.backend import PoolOrder

PATH = "projects/demo-project/locations/us-central1"

ZONE = "us-central1-c"
IMAGE = "projects/ubuntu-os-accelerator-images/global/images/family/ubuntu-accel-2404-amd64-tpu-tpu7x"
COMPUTE = ComputeSettings(
    image=IMAGE, join=Join.KUBEADM, control_plane="10.0.0.2:6443", kubernetes="1.36", subnetwork="default"
)
EVERYTHING = PoolSettings(
    service_account="tpu-nodes@demo-project.iam.gserviceaccount.com",
    boot_disk_gb=250,
    boot_disk_type="hyperdisk-balanced",
    boot_disk_kms_key="projects/demo-project/locations/us-central1/keyRings/tpu/cryptoKeys/disks",
    secure_boot=False,
    integrity_monitoring=False,
    network_tags=("tpu",),
    additional_networks=(Network("vpc-2", "subnet-2"),),
    resource_labels={"cost-centre": "research"},
    compute=ComputeSettings(
        image="projects/demo-project/global/images/tpu-hosts-7",
        subnetwork="projects/network-project/regions/us-central1/subnetworks/tpu",
        scopes=("https://www.googleapis.com/auth/logging.write",),
    ),
)
REQUESTED = InstanceRequest(
    image="projects/demo-project/global/images/mine",
    boot_disk_gb=500,
    boot_disk_type="hyperdisk-balanced",
    subnetwork="regions/us-central1/subnetworks/mine",
    scopes=("https://www.googleapis.com/auth/devstorage.read_only",),
    network_tags=("mine",),
    metadata=(("enable-oslogin", "TRUE"), ("kube-labels", "mine=now")),
    kubernetes="1.35",
    control_plane="10.0.0.7:6443",
)
BROUGHT = InstanceRequest(template="projects/library/regions/us-central1/instanceTemplates/tpu7x-hosts")


def story(request: TemplateRequest, pools: PoolSettings | None = None) -> Story:
    pools = pools or PoolSettings(compute=COMPUTE)
    return Story(request, self_managed(path=PATH, zone=ZONE, pools=pools))


def order(name: str, **changes: Any) -> PoolOrder:
    """Return a story's order, with changes to its spec."""
    made = STORIES[name].order
    assert made.spec is not None
    return replace(made, spec=replace(made.spec, **changes))


TPU7X = asking("tpu7x", "2x2x2", 4)
STORIES: Mapping[str, Story] = {
    "tpu7x-of-several-hosts": story(TPU7X),
    "tpu7x-of-one-host": story(asking("tpu7x", "2x2x1", 4)),
    "v6e-spot": story(asking("tpu-v6e-slice", "4x4", 4, **{SPOT: "true"})),
    "v5p-reserved-by-another-project": story(
        asking(
            "tpu-v5p-slice", "2x2x2", 4, **{f"{RESERVATION}-name": "hall-7", f"{RESERVATION}-project": "other-project"}
        )
    ),
    "every-setting": story(TPU7X, EVERYTHING),
}
ORDERS: Mapping[str, PoolOrder] = {
    **{name: each.order for name, each in STORIES.items()},
    "every-request-of-a-group": order("tpu7x-of-several-hosts", instance=REQUESTED),
    "a-template-that-is-brought": order("tpu7x-of-several-hosts", instance=BROUGHT),
}
ORDER = ORDERS["tpu7x-of-several-hosts"]

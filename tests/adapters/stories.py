"""What tenants ask for, and the orders that come of it: the whole way from a pod template to a node pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.builders import a_job, a_leader, settings
from tpu_slices.domain.model.clusters import Allowed, ClusterSettings, Policy, PoolSettings
from tpu_slices.domain.model.facts import TemplateRequest, Toleration
from tpu_slices.domain.model.slices import Network, SliceSpec, WorkloadJob, claim_id
from tpu_slices.domain.planning.specs import SliceRequest, spec_for
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.ports.backend import PoolOrder

SPOT = "cloud.google.com/gke-spot"
FLEX_START = "cloud.google.com/gke-flex-start"
RESERVATION = "cloud.google.com/reservation"
ANNOTATIONS = "tpu-provisioner.cloud.google.com"


def asking(accelerator: str, topology: str, chips: int, **selectors: str) -> TemplateRequest:
    shape = {"cloud.google.com/gke-tpu-accelerator": accelerator, "cloud.google.com/gke-tpu-topology": topology}
    return TemplateRequest(
        replicated_job="slice",
        replicas=1,
        accelerator=accelerator,
        topology=topology,
        chips_per_pod=chips,
        node_selector=tuple({**shape, **selectors}.items()),
        tolerations=(Toleration(key=SPOT, operator="Exists"),),
        labels=(("team", "vision"),),
    )


@dataclass(frozen=True, slots=True)
class Story:
    """What one tenant asks for in one cluster."""

    request: TemplateRequest
    settings: ClusterSettings
    job: WorkloadJob = field(default_factory=a_job)

    @property
    def outcome(self) -> SliceSpec | Refusal:
        return spec_for(
            SliceRequest(job=self.job, request=self.request, leader=a_leader(), jobset_chips=0), self.settings
        )

    @property
    def order(self) -> PoolOrder:
        """Order the first attempt, as the flows do."""
        spec = self.outcome
        assert isinstance(spec, SliceSpec), spec
        return PoolOrder(
            cluster_path=self.settings.path,
            cluster_gke_id=None,
            slice_id=claim_id(self.job),
            attempt=1,
            job=self.job,
            spec=spec,
            settings=self.settings.pools,
        )


def story(request: TemplateRequest, **set_: Any) -> Story:
    return Story(request, settings(**set_))


def with_annotations(request: TemplateRequest, **requested_annotations: str) -> TemplateRequest:
    return replace(
        request,
        requested_annotations=tuple(
            (f"{ANNOTATIONS}/{name.replace('_', '-')}", value) for name, value in requested_annotations.items()
        ),
    )


V5E = asking("tpu-v5-lite-podslice", "4x4", 4)
KEY = "projects/demo-project/locations/us-central2/keyRings/tpu/cryptoKeys/disks"
EVERYTHING = PoolSettings(
    service_account="tpu-nodes@demo-project.iam.gserviceaccount.com",
    boot_disk_gb=200,
    boot_disk_type="hyperdisk-balanced",
    boot_disk_kms_key=KEY,
    confidential_storage=True,
    secondary_boot_disk="projects/demo-project/global/images/training-images",
    max_pods_per_node=32,
    secure_boot=False,
    network_tags=("tpu",),
    additional_networks=(Network("vpc-2", "subnet-2"),),
    resource_labels={"cost-centre": "research"},
)
OTHER_CHOICES = PoolSettings(
    image_streaming=True,
    auto_upgrade=False,
    secure_boot=False,
    integrity_monitoring=False,
    workload_policy="wired-{topology}",
)

XPK = PoolSettings(
    workload_policy="tpu7x-{cores}-{topology}-placement-policy",
    accelerator_network_profile="auto",
    host_maintenance_interval="PERIODIC",
)

STORIES: Mapping[str, Story] = {
    "v4-of-several-hosts": story(asking("tpu-v4-podslice", "2x2x4", 4)),
    "v5e-of-one-host": story(asking("tpu-v5-lite-podslice", "2x2", 4)),
    "v5e-of-several-hosts": story(V5E),
    "v5e-device": story(asking("tpu-v5-lite-device", "2x4", 8)),
    "v5p-reserved": story(asking("tpu-v5p-slice", "4x4x4", 4, **{f"{RESERVATION}-name": "hall-7"})),
    "v5p-in-a-sub-block-that-another-project-shares": story(
        asking(
            "tpu-v5p-slice",
            "4x4x4",
            4,
            **{
                f"{RESERVATION}-name": "hall-7",
                f"{RESERVATION}-project": "other-project",
                f"{RESERVATION}-blocks": "block-1",
                f"{RESERVATION}-subblocks": "sub-block-2",
            },
        )
    ),
    "v6e-spot": story(asking("tpu-v6e-slice", "4x4", 4, **{SPOT: "true"})),
    "v6e-flex-start": story(
        with_annotations(asking("tpu-v6e-slice", "4x4", 4, **{FLEX_START: "true"}), max_run_duration_seconds="43200")
    ),
    "tpu7x-flex-start": story(asking("tpu7x", "2x2x1", 4, **{FLEX_START: "true"})),
    "v6e-eight-chips-in-one-host": story(asking("tpu-v6e-slice", "2x4", 8)),
    "v6e-eight-chips-in-two-hosts": story(asking("tpu-v6e-slice", "2x4", 4)),
    "tpu7x-of-one-host": story(asking("tpu7x", "2x2x1", 4)),
    "tpu7x-of-several-hosts": story(asking("tpu7x", "2x2x2", 4)),
    "tpu7x-ultranet-by-its-name": story(
        asking("tpu7x", "2x2x2", 4, **{"node.kubernetes.io/instance-type": "tpu7x-ultranet-4t"})
    ),
    "every-setting": story(asking("tpu-v6e-slice", "4x4", 4), pools=EVERYTHING),
    "every-other-choice": story(asking("tpu7x", "2x2x2", 4), pools=OTHER_CHOICES),
    "forced-on-demand": story(asking("tpu-v6e-slice", "4x4", 4, **{SPOT: "true"}), force_on_demand=True),
    "a-tenants-requested-annotations": story(
        with_annotations(
            V5E,
            copy_labels="team",
            node_service_account="vision@demo-project.iam.gserviceaccount.com",
            additional_node_networks="vpc-3:subnet-3",
        ),
        pools=PoolSettings(
            service_account=EVERYTHING.service_account, additional_networks=EVERYTHING.additional_networks
        ),
        policy=Policy(everyone=Allowed(service_accounts=("*",), additional_networks=("*",))),
    ),
    "a-tenants-node-selectors": story(
        asking(
            "tpu-v5-lite-podslice",
            "4x4",
            4,
            **{
                "job-key": "6d8a2f",
                "topology.kubernetes.io/zone": "us-central2-a",
                "cloud.google.com/gke-tpu-ici-resiliency": "false",
                "cloud.google.com/gke-location-hint": "cell-a",
            },
        )
    ),
    "tpu7x-as-xpk-names-it": story(
        asking("tpu7x", "2x2x2", 4, **{"cloud.google.com/placement-policy-name": "tpu7x-16-2x2x2-placement-policy"}),
        pools=XPK,
    ),
    "labels-of-axlearn": story(
        with_annotations(
            replace(V5E, labels=(("cloud.google.com/gke-tpu-auto-restart", "true"), ("job-priority", "5"))),
            copy_labels="cloud.google.com/gke-tpu-auto-restart,job-priority",
        )
    ),
    "exclusive-nodes": story(replace(V5E, exclusive_nodes=True)),
}

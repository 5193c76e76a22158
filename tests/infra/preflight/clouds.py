"""A cloud that lacks nothing, as Google's REST APIs and a cluster's API server tell it; a test takes something away."""

from copy import deepcopy
from typing import Any

from infra.preflight.instances import QUOTA as CPUS
from infra.preflight.project import APIS, CLUSTER_ROLES, CUSTOM_PERMISSIONS, ROLES, Asked
from infra.preflight.quotas import QUOTAS
from tpu_slices.domain.model.clusters import ClusterSettings, PoolSettings
from tpu_slices.domain.model.slices import ClusterId

PROJECT, NUMBER, PATH = "shop", "4711", "projects/shop/locations/us-central2/clusters/b"
NODES, RELAY = "tpu-nodes@shop.iam.gserviceaccount.com", "nodes@shop.iam.gserviceaccount.com"

ASKED = Asked(project=PROJECT, region="us-central1", state_bucket="state", firestore_location="nam5", max_instances=10)
_LINK = "https://container.googleapis.com/v1/projects/shop/locations/us-central2/clusters/b"
POOL: dict[str, Any] = {
    "name": "cpu",
    "status": "RUNNING",
    "initialNodeCount": 1,
    "etag": "c2hvcA==",
    "selfLink": f"{_LINK}/nodePools/cpu",
    "locations": ["us-central2-b"],
    "management": {"autoRepair": True, "autoUpgrade": True},
    "maxPodsConstraint": {"maxPodsPerNode": "110"},
    "networkConfig": {"subnetwork": "projects/net/regions/us-central2/subnetworks/hosts"},
    "podIpv4CidrSize": 24,
    "upgradeSettings": {"maxSurge": 1, "strategy": "SURGE"},
    "config": {
        "machineType": "e2-standard-4",
        "diskSizeGb": 100,
        "bootDisk": {"diskType": "pd-balanced", "sizeGb": "100"},
        "imageType": "COS_CONTAINERD",
        "serviceAccount": RELAY,
        "metadata": {"disable-legacy-endpoints": "true"},
        "resourceLabels": {"goog-gke-node-pool-provisioning-model": "on-demand"},
        "shieldedInstanceConfig": {"enableIntegrityMonitoring": True},
        "windowsNodeConfig": {},
        "workloadMetadataConfig": {"mode": "GKE_METADATA", "nodeMetadata": "GKE_METADATA_SERVER"},
    },
}
"""A pool as GKE answers it: what is 0, false or empty is left out, 64-bit numbers are strings, and it has much that
nobody asked for (recorded in Google's k8s-config-connector)."""
ADDRESSES_OFF: dict[str, Any] = {
    "endpoint": "gke-c0ffee.us-central2.gke.goog",
    "privateClusterConfig": {"enablePrivateNodes": True},
    "controlPlaneEndpointsConfig__ipEndpointsConfig": {"enabled": False},
}
"""What differs in a cluster whose control plane has a name only, which is its `endpoint` then (recorded there)."""
CLUSTER: dict[str, Any] = {
    "id": "c0ffee",
    "name": "b",
    "status": "RUNNING",
    "location": "us-central2",
    "zone": "us-central2",
    "selfLink": _LINK,
    "autopilot": {},
    "releaseChannel": {"channel": "REGULAR"},
    "endpoint": "203.0.113.5",
    "masterAuth": {"clientCertificateConfig": {}, "clusterCaCertificate": "Y2VydGlmaWNhdGU="},
    "workloadIdentityConfig": {"identityNamespace": "shop.svc.id.goog", "workloadPool": "shop.svc.id.goog"},
    "networkConfig": {
        "network": "projects/shop/global/networks/default",
        "subnetwork": "projects/net/regions/us-central2/subnetworks/hosts",
        "defaultEnablePrivateNodes": True,
    },
    "privateClusterConfig": {"privateEndpoint": "10.0.0.2", "publicEndpoint": "203.0.113.5"},
    "controlPlaneEndpointsConfig": {
        "dnsEndpointConfig": {"endpoint": "gke-c0ffee.us-central2.gke.goog", "allowExternalTraffic": True},
        "ipEndpointsConfig": {
            "enabled": True,
            "enablePublicEndpoint": True,
            "privateEndpoint": "10.0.0.2",
            "publicEndpoint": "203.0.113.5",
        },
    },
    "maintenancePolicy": {
        "resourceVersion": "0ddba11",
        "window": {"recurringWindow": {"recurrence": "FREQ=WEEKLY;BYDAY=SA,SU"}},
    },
    "loggingConfig": {"componentConfig": {"enableComponents": ["SYSTEM_COMPONENTS", "WORKLOADS"]}},
    "nodePools": [POOL],
}
NETWORK = "https://www.googleapis.com/compute/v1/projects/net/global/networks/default"
SUBNETWORK: dict[str, Any] = {"name": "hosts", "network": NETWORK, "privateIpGoogleAccess": True}
BUCKET: dict[str, Any] = {
    "versioning": {"enabled": True},
    "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}, "publicAccessPrevention": "enforced"},
}
POLICY: dict[str, Any] = {
    "bindings": [
        {"role": "roles/artifactregistry.reader", "members": [f"serviceAccount:{RELAY}"]},
        {"role": "roles/container.defaultNodeServiceAccount", "members": [f"serviceAccount:{NODES}"]},
    ]
}
SERVICES: dict[str, Any] = {
    "services": [{"config": {"name": f"{api}.googleapis.com"}, "state": "ENABLED"} for api in APIS]
}
PERMISSIONS: dict[str, Any] = {
    "permissions": [
        *(each for roles in (ROLES, CLUSTER_ROLES) for needed in roles.values() for each in needed),
        *CUSTOM_PERMISSIONS,
    ]
}
CHANNELS: dict[str, Any] = {
    "notificationChannels": [
        {
            "name": "projects/shop/notificationChannels/7",
            "type": "pagerduty",
            "userLabels": {"tpu-slice-provisioner": "shop"},
            "enabled": True,
        }
    ]
}
_QUOTAS = "/v1/projects/shop/locations/global/services"
QUOTA_INFOS: dict[str, Any] = {
    f"{_QUOTAS}/run.googleapis.com/quotaInfos/{CPUS.id}": {},
    **{f"{_QUOTAS}/compute.googleapis.com/quotaInfos/{quota.id}": {} for quota in QUOTAS.values()},
}
"""By path: Cloud Quotas knows them all, and tells no limit."""
KUEUE = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
waitForPodsReady:
  timeout: 1h
"""


def config_map(text: str) -> dict[str, Any]:
    return {"data": {"controller_manager_config.yaml": text}}


def changed(whole: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a copy with other fields; `a__b` is the field `b` of `a`. None takes the field away."""
    copy = deepcopy(whole)
    for path, value in fields.items():
        *above, name = path.split("__")
        inner = copy
        for each in above:
            inner = inner.setdefault(each, {})
        if value is None:
            inner.pop(name, None)
        else:
            inner[name] = value
    return copy


def settings(**changes: Any) -> ClusterSettings:
    fields: dict[str, Any] = {
        "cluster": ClusterId("blue"),
        "path": PATH,
        "pools": PoolSettings(service_account=NODES),
        **changes,
    }
    return ClusterSettings(**fields)

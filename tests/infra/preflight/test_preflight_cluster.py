"""What GKE's own description of a cluster means for a deployment: fact, finding, remedy."""

from typing import Any

import pytest

from infra.preflight.findings import Finding, Severity
from infra.preflight.gke import WINDOW, Endpoint, cluster_findings, endpoint, relay_pools
from tests.infra.preflight.clouds import ADDRESSES_OFF, CLUSTER, POOL, changed, settings

IN_CLUSTER = "--cluster b --location us-central2 --project shop --workload-metadata GKE_METADATA"
CLUSTER_UPDATE = "gcloud container clusters update b --location us-central2 --project shop"
CREATE = f"gcloud container node-pools create tpu-slice-relay {IN_CLUSTER} --machine-type e2-standard-2 --num-nodes 1"
UPDATE = f"gcloud container node-pools update cpu {IN_CLUSTER}"
NO_ROOM = "The relay fits no node pool: it needs one of CPU nodes (amd64, without taints) with the GKE metadata server."
TAINT = {"key": "team", "value": "a", "effect": "NO_SCHEDULE"}
NO_WINDOW = (
    "It has neither a maintenance window nor an exclusion: GKE upgrades its control plane at any time, during "
    "which no node pool can be created or deleted, and the pools of others. Those of slices are excluded."
)

LOGGING = f"{CLUSTER_UPDATE} --logging"
NO_LOGS = (
    "It sends no logs of workloads to Cloud Logging: the relay's lines are seen by kubectl alone, and the alert "
    '"A relay logs errors" cannot come.'
)


def sends(*components: str) -> dict[str, Any]:
    return changed(CLUSTER, loggingConfig={"componentConfig": {"enableComponents": [*components]}})


def with_pool(**fields: Any) -> dict[str, Any]:
    return changed(CLUSTER, nodePools=[changed(POOL, **fields)])


def test_a_cluster_with_all_that_is_needed_has_no_finding() -> None:
    assert list(cluster_findings(settings(gke_id="c0ffee"), CLUSTER)) == []


@pytest.mark.parametrize(
    ("cluster", "severity", "message", "remedies"),
    [
        (
            changed(CLUSTER, workloadIdentityConfig=None),
            Severity.ERROR,
            "Workload Identity is off, and the relay has no other identity.",
            (f"{CLUSTER_UPDATE} --workload-pool shop.svc.id.goog",),
        ),
        (
            changed(CLUSTER, autopilot={"enabled": True}),
            Severity.ERROR,
            "It is an Autopilot cluster, in which nobody can create node pools: use a Standard cluster.",
            (),
        ),
        (
            changed(CLUSTER, status="PROVISIONING"),
            Severity.WARNING,
            "GKE says that it is PROVISIONING; the roll-out may fail until it is RUNNING.",
            (),
        ),
        (
            changed(CLUSTER, maintenancePolicy={"resourceVersion": "e3b0c442"}),
            Severity.WARNING,
            NO_WINDOW,
            (f"{CLUSTER_UPDATE} {WINDOW}",),
        ),
        (changed(CLUSTER, loggingConfig=None), Severity.WARNING, NO_LOGS, (f"{LOGGING}=SYSTEM,WORKLOAD",)),
        (sends(), Severity.WARNING, NO_LOGS, (f"{LOGGING}=SYSTEM,WORKLOAD",)),
        (sends("SYSTEM_COMPONENTS"), Severity.WARNING, NO_LOGS, (f"{LOGGING}=SYSTEM,WORKLOAD",)),
        (
            sends("APISERVER", "SYSTEM_COMPONENTS", "NEW"),
            Severity.WARNING,
            NO_LOGS,
            (f"{LOGGING}=SYSTEM,WORKLOAD,API_SERVER",),
        ),
        (changed(CLUSTER, nodePools=[]), Severity.ERROR, NO_ROOM, (CREATE,)),
        (with_pool(config__workloadMetadataConfig=None), Severity.ERROR, NO_ROOM, (UPDATE,)),
        (with_pool(config__taints=[TAINT]), Severity.ERROR, NO_ROOM, (CREATE,)),
        (with_pool(config__machineType="ct5lp-hightpu-4t"), Severity.ERROR, NO_ROOM, (CREATE,)),
        (with_pool(config__machineType="tpu7x-standard-4t"), Severity.ERROR, NO_ROOM, (CREATE,)),
        (with_pool(config__machineType="c4a-standard-4"), Severity.ERROR, NO_ROOM, (CREATE,)),
        (with_pool(config__accelerators=[{"acceleratorCount": "1"}]), Severity.ERROR, NO_ROOM, (CREATE,)),
        (with_pool(config__imageType="WINDOWS_LTSC_CONTAINERD"), Severity.ERROR, NO_ROOM, (CREATE,)),
        (with_pool(initialNodeCount=None), Severity.ERROR, NO_ROOM, (CREATE,)),
        (with_pool(status="STOPPING"), Severity.ERROR, NO_ROOM, (CREATE,)),
    ],
)
def test_what_the_cluster_lacks_is_told_with_its_remedy(
    cluster: dict[str, Any], severity: Severity, message: str, remedies: tuple[str, ...]
) -> None:
    assert list(cluster_findings(settings(), cluster)) == [Finding(severity, message, remedies)]


def test_a_cluster_that_was_made_anew_under_its_name_is_told() -> None:
    [finding] = cluster_findings(settings(gke_id="d00d"), CLUSTER)
    assert finding.severity is Severity.ERROR
    assert finding.remedies == ("gke_id: c0ffee",)


@pytest.mark.parametrize(
    "pool",
    [
        changed(POOL, initialNodeCount=None, autoscaling={"enabled": True}),
        changed(POOL, config__taints=[{**TAINT, "effect": "PREFER_NO_SCHEDULE"}]),
    ],
)
def test_a_pool_that_may_get_nodes_and_keeps_no_pod_off_has_room_for_the_relay(pool: dict[str, Any]) -> None:
    assert relay_pools(changed(CLUSTER, nodePools=[pool])) == [pool]


def test_one_fitting_pool_beside_others_is_enough() -> None:
    others = [changed(POOL, name="tpu", config__machineType="ct6e-standard-4t"), POOL]
    assert list(cluster_findings(settings(), changed(CLUSTER, nodePools=others))) == []


@pytest.mark.parametrize("worker_pool", ["", "projects/shop/locations/us-central1/workerPools/w"])
def test_the_control_plane_is_reached_by_its_name_wherever_it_has_one(worker_pool: str) -> None:
    assert endpoint(settings(), CLUSTER, worker_pool) == Endpoint("https://gke-c0ffee.us-central2.gke.goog")


@pytest.mark.parametrize(
    "off", [{"dnsEndpointConfig": None}, {"dnsEndpointConfig__allowExternalTraffic": False}], ids=["none", "closed"]
)
def test_without_that_name_only_a_build_in_a_private_pool_reaches_it(off: dict[str, Any]) -> None:
    cluster = changed(CLUSTER, **{f"controlPlaneEndpointsConfig__{path}": value for path, value in off.items()})

    by_address = Endpoint("https://10.0.0.2", "Y2VydGlmaWNhdGU=")
    assert endpoint(settings(), cluster, "projects/shop/locations/us-central1/workerPools/w") == by_address
    finding = endpoint(settings(), cluster, "")
    assert isinstance(finding, Finding)
    assert finding.severity is Severity.ERROR
    assert finding.remedies == (f"{CLUSTER_UPDATE} --enable-dns-access",)


@pytest.mark.parametrize("worker_pool", ["", "projects/shop/locations/us-central1/workerPools/w"])
def test_a_control_plane_without_addresses_is_reached_by_its_name_or_by_nobody(worker_pool: str) -> None:
    named = changed(CLUSTER, **ADDRESSES_OFF)
    assert endpoint(settings(), named, worker_pool) == Endpoint("https://gke-c0ffee.us-central2.gke.goog")
    closed = changed(named, controlPlaneEndpointsConfig__dnsEndpointConfig__allowExternalTraffic=False)
    finding = endpoint(settings(), closed, worker_pool)
    assert isinstance(finding, Finding)
    assert finding.message.endswith("Turn it on (IAM decides who may use it): it has no address.")
    assert finding.remedies == (f"{CLUSTER_UPDATE} --enable-dns-access",)

"""What GKE says of a cluster: whether the relay can run in it, and node pools can be made."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from infra.preflight.answers import Body
from infra.preflight.findings import Finding, error, warning
from infra.preflight.place import Place
from tpu_slices.domain.model.clusters import ClusterSettings

METADATA_SERVER = "GKE_METADATA"
_NO_CPU_POOL = ("ct", "tpu")
_ARM = ("t2a-", "c4a-", "n4a-")
_KEEPS_PODS_OFF = {"NO_SCHEDULE", "NO_EXECUTE"}
_GOING = {"ERROR", "STOPPING"}
WINDOW = (
    "--maintenance-window-start 2026-01-03T00:00:00Z --maintenance-window-end 2026-01-03T06:00:00Z "
    "--maintenance-window-recurrence 'FREQ=WEEKLY;BYDAY=SA,SU'"
)
"""Six hours twice a week: GKE demands at least 48 hours in 32 days (concepts/maintenance-windows-and-exclusions)."""
LOGGED: Mapping[str, str] = MappingProxyType(
    {
        "SYSTEM_COMPONENTS": "SYSTEM",
        "WORKLOADS": "WORKLOAD",
        "APISERVER": "API_SERVER",
        "SCHEDULER": "SCHEDULER",
        "CONTROLLER_MANAGER": "CONTROLLER_MANAGER",
        "ADDON_MANAGER": "ADDON_MANAGER",
        "KCP_SSHD": "KCP_SSHD",
        "KCP_CONNECTION": "KCP_CONNECTION",
        "KCP_HPA": "KCP_HPA",
    }
)
"""What a cluster may send logs of, as GKE's API calls it and as gcloud does (`clusters update --logging`)."""
ROOM = "--machine-type e2-standard-2 --num-nodes 1"
"""A pool of its own for the relay, which asks for 0.1 CPU and 256 MiB."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """How the API server is reached."""

    url: str
    authority: str | None = None
    """The certificate of its authority, base64; None: one that everybody trusts."""


def cluster_findings(settings: ClusterSettings, cluster: Body) -> Iterator[Finding]:
    place = Place.of(settings.path)
    if settings.gke_id is not None and settings.gke_id != cluster.get("id"):
        yield error(
            f"gke_id in the settings is {settings.gke_id}, GKE's id of the cluster is {cluster.get('id')}: "
            "it was re-created, or the path is another cluster's.",
            f"gke_id: {cluster.get('id')}",
        )
    if cluster.get("autopilot", {}).get("enabled"):
        yield error("It is an Autopilot cluster, in which nobody can create node pools: use a Standard cluster.")
        return
    if cluster.get("status") not in {"RUNNING", "RECONCILING"}:
        yield warning(f"GKE says that it is {cluster.get('status')}; the roll-out may fail until it is RUNNING.")
    pool = f"{place.project}.svc.id.goog"
    if cluster.get("workloadIdentityConfig", {}).get("workloadPool") != pool:
        yield error(
            "Workload Identity is off, and the relay has no other identity.",
            f"gcloud container clusters update {place.name} {place.flags} --workload-pool {pool}",
        )
    if not relay_pools(cluster):
        yield _no_room(place, cluster)
    if not cluster.get("maintenancePolicy", {}).get("window"):
        yield warning(
            "It has neither a maintenance window nor an exclusion: GKE upgrades its control plane at any time, during "
            "which no node pool can be created or deleted, and the pools of others. Those of slices are excluded.",
            f"gcloud container clusters update {place.name} {place.flags} {WINDOW}",
        )
    yield from _unlogged(place, cluster)


def _unlogged(place: Place, cluster: Body) -> Iterator[Finding]:
    """Yield that the logs of pods go nowhere, with what is sent so far and those as the remedy.

    `loggingConfig.componentConfig.enableComponents` names what is sent (google.container.v1 LoggingComponentConfig).
    """
    sent = cluster.get("loggingConfig", {}).get("componentConfig", {}).get("enableComponents", ())
    if "WORKLOADS" in sent:
        return
    wanted = ("SYSTEM_COMPONENTS", "WORKLOADS", *sent)
    components = ",".join(dict.fromkeys(LOGGED[each] for each in wanted if each in LOGGED))
    yield warning(
        "It sends no logs of workloads to Cloud Logging: the relay's lines are seen by kubectl alone, and the alert "
        '"A relay logs errors" cannot come.',
        f"gcloud container clusters update {place.name} {place.flags} --logging={components}",
    )


def _no_room(place: Place, cluster: Body) -> Finding:
    in_cluster = f"--cluster {place.name} {place.flags} --workload-metadata {METADATA_SERVER}"
    remedies = [
        f"gcloud container node-pools update {pool['name']} {in_cluster}"
        for pool in cluster.get("nodePools", ())
        if _takes_pods(pool)
    ]
    return error(
        "The relay fits no node pool: it needs one of CPU nodes (amd64, without taints) with the GKE metadata server.",
        *(remedies or [f"gcloud container node-pools create tpu-slice-relay {in_cluster} {ROOM}"]),
    )


def relay_pools(cluster: Body) -> list[Body]:
    """Return the node pools that the relay's pod may come to."""
    return [
        pool
        for pool in cluster.get("nodePools", ())
        if _takes_pods(pool) and pool.get("config", {}).get("workloadMetadataConfig", {}).get("mode") == METADATA_SERVER
    ]


def _takes_pods(pool: Body) -> bool:
    config: Body = pool.get("config", {})
    machine = config.get("machineType", "")
    return (
        pool.get("status") not in _GOING
        and (bool(pool.get("initialNodeCount")) or bool(pool.get("autoscaling", {}).get("enabled")))
        and not machine.startswith(_NO_CPU_POOL + _ARM)
        and not config.get("accelerators")
        and not config.get("imageType", "").upper().startswith("WINDOWS")
        and not any(taint.get("effect") in _KEEPS_PODS_OFF for taint in config.get("taints", ()))
    )


def endpoint(settings: ClusterSettings, cluster: Body, worker_pool: str) -> Endpoint | Finding:
    """Return how the build reaches the API server: by its DNS name, else from a private pool by its address.

    One without addresses has `ipEndpointsConfig: {"enabled": false}`, and its name as `endpoint` (recorded in Google's
    k8s-config-connector).
    """
    place = Place.of(settings.path)
    endpoints: Body = cluster.get("controlPlaneEndpointsConfig", {})
    by_name: Body = endpoints.get("dnsEndpointConfig", {})
    by_address: Body = endpoints.get("ipEndpointsConfig", {})
    if by_name.get("endpoint") and by_name.get("allowExternalTraffic"):
        return Endpoint(f"https://{by_name['endpoint']}")
    has_addresses = by_address.get("enabled", True)
    if worker_pool and has_addresses:
        private = by_address.get("privateEndpoint")
        private = private or cluster.get("privateClusterConfig", {}).get("privateEndpoint")
        authority = cluster.get("masterAuth", {}).get("clusterCaCertificate")
        return Endpoint(f"https://{private or cluster.get('endpoint')}", authority)
    otherwise = ", or submit the build to a private pool in its network (--worker-pool, and _WORKER_POOL)"
    return error(
        "The build cannot reach the control plane: its DNS endpoint is off. Turn it on (IAM decides who may use it)"
        f"{otherwise if has_addresses else ': it has no address'}.",
        f"gcloud container clusters update {place.name} {place.flags} --enable-dns-access",
    )

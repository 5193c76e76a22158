"""Resource names and links in GKE's format."""

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from tpu_standins.cloud.names import suffix

_CLUSTER = re.compile(r"projects/([^/]+)/locations/([^/]+)/clusters/([^/]+)")
_POOL = re.compile(r"(projects/[^/]+/locations/[^/]+/clusters/[^/]+)/nodePools/([^/]+)")
_OPERATION = re.compile(r"(projects/[^/]+/locations/[^/]+)/operations/([^/]+)")
_LOCATION = re.compile(r"projects/([^/]+)/locations/([^/]+)")
_IN_A_ZONE = re.compile(r"/locations(?=/[^/]+-[a-z](/|$))")
_SHARED_BY_CLUSTER_AND_POOL = 32


@dataclass(frozen=True, slots=True)
class ClusterPath:
    project: str
    location: str
    name: str

    def __str__(self) -> str:
        return f"projects/{self.project}/locations/{self.location}/clusters/{self.name}"

    @property
    def region(self) -> str:
        """Return `us-central2` for the regional `us-central2` and for the zonal `us-central2-b`."""
        return self.location[:-2] if re.fullmatch(r".+-[a-z]", self.location) else self.location


def parse_cluster(path: str) -> ClusterPath | None:
    found = _CLUSTER.fullmatch(path)
    return ClusterPath(*found.groups()) if found else None


def parse_pool(path: str) -> tuple[str, str] | None:
    """Return cluster path and pool name, or None if it is not a node pool's path."""
    found = _POOL.fullmatch(path)
    return (found[1], found[2]) if found else None


def parse_operation(path: str) -> tuple[str, str] | None:
    """Return `projects/P/locations/L` and the operation's name, or None if it is not an operation's path."""
    found = _OPERATION.fullmatch(path)
    return (found[1], found[2]) if found else None


def parse_location(path: str) -> tuple[str, str] | None:
    """Return project and location; the location may be `-`, for all [py-gke ListOperationsRequest.parent]."""
    found = _LOCATION.fullmatch(path)
    return (found[1], found[2]) if found else None


def pool_path(cluster: str, name: str) -> str:
    return f"{cluster}/nodePools/{name}"


def policy_path(cluster: ClusterPath, name: str) -> str:
    """Return the path of a Compute Engine resource policy in the cluster's project and region."""
    return f"projects/{cluster.project}/regions/{cluster.region}/resourcePolicies/{name}"


def as_written(path: str) -> str:
    """Return a path as GKE itself writes it: what is in a zone has `zones/` where the call had `locations/` [kcc]."""
    return _IN_A_ZONE.sub("/zones", path, count=1)


def link(path: str, project: int | str) -> str:
    """Return a link. GKE writes the project's number in those of operations, its id in those of pools and clusters.

    [kcc]; the number also in gcloud's output in kubeflow/pipelines#673.
    """
    _, _, rest = as_written(path).split("/", 2)
    return f"https://container.googleapis.com/v1/projects/{project}/{rest}"


def group_link(project: str, zone: str, stem: str) -> str:
    """Return the link of a managed instance group, as in NodePool.instance_group_urls (tf#10366)."""
    return f"https://www.googleapis.com/compute/v1/projects/{project}/zones/{zone}/instanceGroupManagers/{stem}-grp"


def operation_name(now: float, token: str) -> str:
    """Return `operation-<start in epoch milliseconds>-<uuid>` [khi]."""
    return f"operation-{int(now * 1000)}-{token}"


def timestamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def instance_stem(cluster: str, pool: str, token: str) -> str:
    """Return a name such as `gke-akka-multi-node-3479-default-pool-97da88a9` (akka/akka-core#32992).

    Cluster and pool share 32 characters [ctk]. Which of them is truncated is our choice: the cluster, to no fewer than
    8 characters, then the pool.
    """
    kept = cluster[: max(8, _SHARED_BY_CLUSTER_AND_POOL - len(pool))]
    rest = pool[: _SHARED_BY_CLUSTER_AND_POOL - len(kept)]
    digest = hashlib.sha256(f"{cluster}/{pool}/{token}".encode()).hexdigest()[:8]
    return f"gke-{kept.rstrip('-')}-{rest.rstrip('-')}-{digest}"


def instance_names(stem: str, count: int) -> tuple[str, ...]:
    """Return `STEM-8gmv`, ...: different for each index, since 7919 is coprime to 36 ** 4."""
    first = int(hashlib.sha256(stem.encode()).hexdigest(), 16)
    return tuple(f"{stem}-{suffix(first, index, 7919)}" for index in range(count))

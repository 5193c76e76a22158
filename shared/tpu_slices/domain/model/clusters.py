"""What people set for a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType

from tpu_slices.domain.model.observations import FailureKind
from tpu_slices.domain.model.slices import CapacityKind, ClusterId, Network


@dataclass(frozen=True, slots=True)
class Backoff:
    """When to try again: `initial`, then twice as long each time, at most `maximum`."""

    initial: timedelta
    maximum: timedelta

    def after(self, failures: int) -> timedelta:
        """Give the pause after that many failures in a row (1 or more)."""
        doublings = min(failures - 1, 20)
        return min(self.initial * (1 << doublings), self.maximum)


def _seconds(initial: float, maximum: float) -> Backoff:
    return Backoff(timedelta(seconds=initial), timedelta(seconds=maximum))


_RETRIES: Mapping[FailureKind, Backoff] = MappingProxyType(
    {
        FailureKind.STOCKOUT: _seconds(60, 900),
        FailureKind.QUOTA: _seconds(300, 1800),
        FailureKind.RESERVATION: _seconds(120, 900),
        FailureKind.IP_SPACE: _seconds(300, 1800),
        FailureKind.RATE: _seconds(5, 60),
        FailureKind.BUSY: _seconds(10, 120),
        FailureKind.UNKNOWN: _seconds(60, 900),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How patient the decisions are. Every duration has a default that fits a real cluster."""

    demand_ttl: timedelta = timedelta(minutes=15)
    """A slice is only bought while its want was confirmed this recently; the relay repeats every 5 minutes."""
    act_window: timedelta = timedelta(seconds=60)
    """A decision is acted on within this time after it was saved, or looked at anew."""
    create_timeout: timedelta = timedelta(minutes=20)
    """How long a pool may stay in creation although no operation runs for it any more."""
    requeue_after: timedelta = timedelta(minutes=1)
    """When to look at something that changes without telling us."""
    resync_after: timedelta = timedelta(minutes=10)
    """When to look at something whose end somebody else tells us: the log sink, the sweep, the relay."""
    delete_retry_after: timedelta = timedelta(seconds=20)
    """When to look whether a pool is gone, and to order its deletion again where GKE shows no sign of it."""
    blocked_retry_after: timedelta = timedelta(hours=1)
    """When what needs a person is tried again by itself: a permission that was granted changes nothing we can see."""
    gone_ttl: timedelta = timedelta(days=30)
    """How long the record of a slice that is gone can be read."""
    backoff: Mapping[FailureKind, Backoff] = field(default_factory=lambda: _RETRIES)
    """When a failed attempt is followed by the next, by the kind of its failure."""
    operations: int = 5
    """The most node pool operations in flight (GKE documented 5 per cluster, its own autoscaler uses 9)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSettings:
    """What every node pool of a cluster gets; pinned on a slice's record at its first create."""

    service_account: str | None = None
    """The nodes' service account; None: GKE's default."""
    boot_disk_gb: int = 100
    boot_disk_type: str | None = None
    """None: the accelerator's default."""
    boot_disk_kms_key: str | None = None
    """`projects/P/locations/L/keyRings/R/cryptoKeys/K`."""
    confidential_storage: bool = False
    secondary_boot_disk: str | None = None
    """A disk image with container images: `projects/P/global/images/I`."""
    image_streaming: bool = False
    """On anyway where there is a secondary boot disk: GKE takes one only with it."""
    max_pods_per_node: int = 15
    auto_upgrade: bool = True
    """GKE refuses False in a cluster that is in a release channel."""
    secure_boot: bool = True
    integrity_monitoring: bool = True
    network_tags: tuple[str, ...] = ()
    additional_networks: tuple[Network, ...] = ()
    workload_policy: str = "tpu-provisioner-{topology}"
    """Name of the Compute Engine workload policy for slices that need one; `{topology}` is filled in."""
    resource_labels: Mapping[str, str] = field(default_factory=dict)
    """Labels for billing reports, beside those of cluster, namespace, JobSet and slice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What the tenants of a namespace may ask for. Patterns may contain `*`."""

    capacity: tuple[CapacityKind, ...] = tuple(CapacityKind)
    reservations: tuple[str, ...] = ("*",)
    """`R`, or `projects/P/reservations/R` for another project's."""
    service_accounts: tuple[str, ...] = ()
    """Whom a pod may ask its hosts to act as; the settings' own is always allowed."""
    additional_networks: tuple[str, ...] = ()
    """`NETWORK:SUBNETWORK`; the settings' own are always allowed."""
    copied_labels: tuple[str, ...] = ("*",)
    """Keys of pod labels that a pod may ask to be copied to its hosts."""
    chips_per_slice: int | None = None
    chips_per_jobset: int | None = None
    chips_per_namespace: int | None = None
    """Of all slices of the namespace that are bought or being bought."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What tenants may ask for, and how much."""

    everyone: Allowed = Allowed()
    namespaces: Mapping[str, Allowed] = field(default_factory=dict)
    """Whole, instead of `everyone`'s, for the namespaces named."""
    chips_per_cluster: int | None = None

    def allowed(self, namespace: str) -> Allowed:
        return self.namespaces.get(namespace, self.everyone)

    def counts(self, namespace: str) -> bool:
        """Say whether it matters for this namespace how many chips are held."""
        return self.chips_per_cluster is not None or self.allowed(namespace).chips_per_namespace is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """The document `clusters/{cluster}`."""

    cluster: ClusterId
    version: str = ""
    """Which edition of the document this is: what was blocked under another one gets another chance."""
    path: str
    """`projects/P/locations/L/clusters/C`."""
    gke_id: str | None = None
    """GKE's own id of the cluster: one that is made anew under the same name is another cluster. None: not checked."""
    zone: str | None = None
    """Where slices are made when neither the pod nor its reservation says so."""
    reservation_zones: Mapping[str, str] = field(default_factory=dict)
    """The zone of a reservation, by its name or `projects/P/reservations/R`."""
    pod_to_node_labels: tuple[str, ...] = ()
    """Keys of pod labels that every pod's hosts get."""
    force_on_demand: bool = False
    """Spot and reservations are not bought, whatever pods select."""
    hosts_per_slice: int = 1000
    """More are refused: GKE documents 1,000 nodes per pool and zone."""
    pools: PoolSettings = PoolSettings()
    policy: Policy = Policy()
    limits: Limits = Limits()
    paused: str | None = None
    """Why nothing is created or deleted at the moment; set beside the document (`pauses/{cluster}`)."""

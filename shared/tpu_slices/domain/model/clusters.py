"""The settings of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

from tpu_slices.domain.catalogue.accelerators import Accelerators, accelerators_with
from tpu_slices.domain.catalogue.rows import Cells
from tpu_slices.domain.model.capacity import Advice, Ladder, NamespaceSettings, Place, Spare, Warm
from tpu_slices.domain.model.gangs import Gangs
from tpu_slices.domain.model.notifications import Rules
from tpu_slices.domain.model.observations import Cause, FailureKind
from tpu_slices.domain.model.slices import CapacityKind, ClusterId, Network
from tpu_slices.domain.model.vendors import COMPUTE_ENGINE, GKE, Vendor


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff: `initial`, doubled with each failure, capped at `maximum`."""

    initial: timedelta
    maximum: timedelta

    def after(self, failures: int) -> timedelta:
        """Return the pause after that many consecutive failures (1 or more)."""
        doublings = min(failures - 1, 20)
        return min(self.initial * (1 << doublings), self.maximum)


def _seconds(initial: float, maximum: float) -> Backoff:
    return Backoff(timedelta(seconds=initial), timedelta(seconds=maximum))


_RETRIES: Mapping[FailureKind, Backoff] = MappingProxyType(
    {
        FailureKind.STOCKOUT: _seconds(60, 900),
        FailureKind.QUOTA: _seconds(300, 1800),
        FailureKind.EXHAUSTED: _seconds(60, 900),
        FailureKind.RESERVATION: _seconds(60, 300),
        FailureKind.RESERVATION_AWAITED: _seconds(60, 300),
        FailureKind.IP_SPACE: _seconds(300, 1800),
        FailureKind.RATE: _seconds(5, 60),
        FailureKind.BUSY: _seconds(10, 600),
        FailureKind.HOSTS: _seconds(300, 3600),
        FailureKind.UNKNOWN: _seconds(60, 900),
    }
)

_PATIENCE: Mapping[Cause, timedelta] = MappingProxyType(
    {
        Cause.UPGRADE: timedelta(hours=6),
        Cause.REPAIR: timedelta(hours=2),
        Cause.WORK: timedelta(hours=6),
        Cause.MAINTENANCE: timedelta(hours=6),
        Cause.PREEMPTED: timedelta(hours=6),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Timeouts, intervals and the operation limit. The defaults fit a real cluster."""

    demand_ttl: timedelta = timedelta(minutes=15)
    """A slice is only bought if its demand was confirmed this recently; the relay does so within 5 minutes."""
    act_window: timedelta = timedelta(seconds=60)
    """A saved decision is only acted on within this time; after it, the slice is reconciled again."""
    create_timeout: timedelta = timedelta(minutes=20)
    """How long a pool may remain in creation although no operation runs for it any more."""
    hosts_timeout: timedelta = timedelta(minutes=30)
    """How long a created pool may lack usable hosts before it is replaced, if nobody is on it, nor known to bring them.

    One of flex-start may be empty for as long as a leader waits for it.
    """
    patience: Mapping[Cause, timedelta] = field(default_factory=lambda: _PATIENCE)
    """How long hosts may be away that the vendor is known to bring back, by the cause."""
    restart_grace: timedelta = timedelta(minutes=10)
    """How long hosts are kept for a live Job whose leader left them: the time that a restart takes."""
    idle_after: timedelta = timedelta(minutes=30)
    """How long a ready slice is kept that nobody uses."""
    not_running_after: timedelta | None = None
    """How long a slice is kept on which some pods of its Job do not run; None: as long as its Job is there."""
    gang_hold_for: timedelta = timedelta(hours=1)
    """How long slices of a gang are held that stand while others cannot be made; while these are being made it does not
    count."""
    gang_hold_at_most: timedelta = timedelta(hours=4)
    """How long they are held at most, whatever becomes of the others."""
    gang_yield_after: timedelta = timedelta(minutes=5)
    """How long a gang keeps slices from one that waits longer and lacks such."""
    gang_backfill: bool = False
    """Whether single claims may be tried where a gang that came before them holds slices and lacks others."""
    requeue_after: timedelta = timedelta(minutes=1)
    """When a slice is reconciled again if nothing announces the change that it waits for."""
    resync_after: timedelta = timedelta(minutes=10)
    """When a slice is reconciled again if the log sink, the sweep or the relay normally announces the change."""
    evict_within: timedelta = timedelta(minutes=10)
    """How long pods are evicted from the hosts of a deleted TPUNodeGroup; then these go, whoever is on them."""
    delete_retry_after: timedelta = timedelta(seconds=20)
    """When a pool's deletion is checked, and requested again if GKE shows no sign of it."""
    blocked_retry_after: timedelta = timedelta(hours=1)
    """When a blocked slice is retried without a settings change: a granted permission is not visible to us."""
    gone_ttl: timedelta = timedelta(days=30)
    """How long the record of a GONE slice is kept."""
    backoff: Mapping[FailureKind, Backoff] = field(default_factory=lambda: _RETRIES)
    """The pause before the next attempt, by the kind of the failure."""
    operations: int = 5
    """The most node pool operations in flight, as long as GKE refuses none.

    GKE documented 5 per cluster (terraform-provider-google#15205), its own autoscaler uses 9.
    """

    @property
    def orders_arrive_within(self) -> timedelta:
        """How long after its decision an order may take effect: it is sent within `act_window`, and takes no longer."""
        return 2 * self.act_window

    def order_may_arrive(self, requested_at: datetime | None, now: datetime) -> bool:
        """Return whether a request to create or to delete a pool may still take effect."""
        return requested_at is not None and now < requested_at + self.orders_arrive_within


class Join(StrEnum):
    """How hosts on Compute Engine join a self-managed cluster."""

    KUBEADM = "KUBEADM"  # by our startup script, with a bootstrap token
    NONE = "NONE"  # the image, or somebody else, sees to it


class PodsOf(StrEnum):
    """Whose pods get a slice each, one by one, where the settings say so: in the words of the setting `serve`."""

    POD = "Pod"  # those that nothing controls
    DEPLOYMENT = "Deployment"  # whose ReplicaSets control them
    STATEFUL_SET = "StatefulSet"


class Upgrades(StrEnum):
    """Whether GKE may upgrade a node pool under the Jobs that run on it."""

    EXCLUDED = "EXCLUDED"  # not before its version's end of support
    GKE = "GKE"  # whenever GKE would


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeSettings:
    """How the hosts of a self-managed cluster are made on Compute Engine."""

    image: str
    """`projects/P/global/images/I` or `projects/P/global/images/family/F`."""
    subnetwork: str = "default"
    """`S`, `regions/R/subnetworks/S`, or with `projects/P/` before it."""
    join: Join = Join.NONE
    control_plane: str | None = None
    """HOST:PORT of the API server as hosts reach it; set with KUBEADM."""
    kubernetes: str | None = None
    """The minor version of kubelet and kubeadm, such as 1.36; set with KUBEADM."""
    scopes: tuple[str, ...] = ("https://www.googleapis.com/auth/cloud-platform",)
    """OAuth scopes of the hosts' service account; IAM says what it may do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSettings:
    """The settings of every node pool of a cluster; pinned on a slice's record at its first create."""

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
    """Always on with a secondary boot disk: GKE requires it."""
    max_pods_per_node: int = 15
    auto_upgrade: bool = True
    """GKE rejects False in a cluster that is enrolled in a release channel."""
    upgrades: Upgrades = Upgrades.EXCLUDED
    """With `auto_upgrade`: a node pool is made anew as a whole when it is upgraded, its Jobs are interrupted."""
    gvnic: bool = True
    """Google Virtual NIC on hosts whose machine type does not bring it."""
    secure_boot: bool = True
    integrity_monitoring: bool = True
    network_tags: tuple[str, ...] = ()
    additional_networks: tuple[Network, ...] = ()
    workload_policy: str = "tpu-provisioner-{topology}"
    """The Compute Engine workload policy for slices that need one; `{topology}`, `{chips}` and `{cores}` are replaced.
    """
    accelerator_network_profile: str | None = None
    """`auto`: GKE gives hosts of the accelerators that it knows their networks, unless there are additional ones."""
    host_maintenance_interval: str | None = None
    """PERIODIC or AS_NEEDED; None: GKE's default."""
    resource_labels: Mapping[str, str] = field(default_factory=dict)
    """Labels for billing reports, in addition to those for cluster, namespace, JobSet and slice."""
    compute: ComputeSettings | None = None
    """None: the pools are node pools of GKE."""

    @property
    def vendor(self) -> Vendor:
        return GKE if self.compute is None else COMPUTE_ENGINE


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What the tenants of a namespace may request. Patterns may contain `*`."""

    zones: tuple[str, ...] = ("*",)
    accelerators: tuple[str, ...] = ("*",)
    """GKE's names, such as tpu-v6e-slice."""
    capacity: tuple[CapacityKind, ...] = tuple(CapacityKind)
    reservations: tuple[str, ...] = ("*",)
    """`R`, or `projects/P/reservations/R` for another project's."""
    service_accounts: tuple[str, ...] = ()
    """Node service accounts that a pod may request; the one in the settings is always allowed."""
    additional_networks: tuple[str, ...] = ()
    """`NETWORK:SUBNETWORK`; those in the settings are always allowed."""
    copied_labels: tuple[str, ...] = ("*",)
    """Keys of pod labels that a pod may have copied to its hosts."""
    workload_policies: tuple[str, ...] = ()
    """Workload policies that a pod may select; the one in the settings is always allowed."""
    instance_templates: tuple[str, ...] = ()
    """Instance templates that a TPUNodeGroup may name, which say what account its hosts have."""
    chips_per_slice: int | None = None
    chips_per_jobset: int | None = None
    chips_per_namespace: int | None = None
    """The most chips that all slices of the namespace hold together, bought or being bought."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What tenants may request, and how many chips."""

    everyone: Allowed = Allowed()
    namespaces: Mapping[str, Allowed] = field(default_factory=dict)
    """Replaces `everyone` as a whole for the namespaces named."""
    chips_per_cluster: int | None = None

    def allowed(self, namespace: str) -> Allowed:
        return self.namespaces.get(namespace, self.everyone)

    def counts(self, namespace: str) -> bool:
        """Return whether a limit on held chips applies to this namespace."""
        return bool(self.limits(namespace))

    def limits(self, namespace: str) -> Mapping[str, int]:
        """Return the most chips that slices hold together, by the setting that says so, as far as it applies."""
        most = {
            "chips_per_namespace": self.allowed(namespace).chips_per_namespace,
            "chips_per_cluster": self.chips_per_cluster,
        }
        return {setting: chips for setting, chips in most.items() if chips is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueSettings:
    """What an operator adds to the catalogue or corrects in it: rows as those of its files."""

    machines: tuple[Cells, ...] = ()
    """A row corrects that of the same machine type."""
    prices: tuple[Cells, ...] = ()
    """A row replaces that of the same accelerator, region and kind."""
    zones: tuple[Cells, ...] = ()
    """A row replaces that of the same accelerator and zone."""

    @property
    def sections(self) -> tuple[tuple[str, tuple[Cells, ...]], ...]:
        return ("machines", self.machines), ("prices", self.prices), ("zones", self.zones)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """The document `clusters/{cluster}`."""

    cluster: ClusterId
    version: str = ""
    """The document's version: a slice that was blocked under another version is retried."""
    path: str
    """`projects/P/locations/L/clusters/C`; of a self-managed cluster `projects/P/locations/L`, where its hosts are."""
    gke_id: str | None = None
    """GKE's id of the cluster: a cluster re-created under the same name has another one. None: not checked."""
    zone: str | None = None
    """The zone of slices for which neither the pod nor its reservation names one."""
    zones: tuple[str, ...] = ()
    """The zones that the cluster can have node pools in; empty: any zone of its region."""
    reservation_zones: Mapping[str, str] = field(default_factory=dict)
    """The zone of a reservation, by its name or `projects/P/reservations/R`."""
    pod_to_node_labels: tuple[str, ...] = ()
    """Keys of pod labels that are copied to the hosts of every pod."""
    force_on_demand: bool = False
    """Neither spot nor reservations nor flex-start hosts are bought, whatever pods select."""
    max_run_duration: timedelta = timedelta(days=7)
    """How long flex-start hosts run for a pod that does not say it; GKE takes 10 minutes to 7 days."""
    serve: tuple[PodsOf, ...] = ()
    """Whose pods get a slice each beside the workloads that do everywhere."""
    gangs: Gangs = Gangs.NONE
    """Which workloads are gangs that do not say so themselves: the build gives it to the admission policy."""
    hosts_per_slice: int = 1000
    """Larger slices are refused: GKE documents 1,000 nodes per pool and zone."""
    pools: PoolSettings = PoolSettings()
    policy: Policy = Policy()
    limits: Limits = Limits()
    catalogue: CatalogueSettings = CatalogueSettings()
    places: Mapping[str, Place] = field(default_factory=dict)
    ladders: Mapping[str, Ladder] = field(default_factory=dict)
    ladder: str | None = None
    """The ladder of workloads that name none, unless their namespace has one."""
    advice: Advice = Advice.OFF
    """Whether `slices plan` asks when a booking could be."""
    notifications: Mapping[str, Rules] = field(default_factory=dict)
    """By namespace, whom its workloads may have notified outside the cluster; of others nothing is told there."""
    warm: Warm | None = None
    """Whether slices that are let go are kept for a time; None: they are deleted."""
    spares: tuple[Spare, ...] = ()
    """Which slices are made before anybody needs them."""
    spares_most_usd_an_hour: float | None = None
    """Of all spares together, by list price; None: no limit."""
    namespaces: Mapping[str, NamespaceSettings] = field(default_factory=dict)
    """What is otherwise for the workloads of these namespaces."""
    paused: str | None = None
    """Why the cluster is paused (nothing is created or deleted); stored in `pauses/{cluster}`. None: not paused."""
    retired: str | None = None
    """Why the cluster is retired (nothing is created any more); stored in `pauses/{cluster}`. None: it is not."""

    @property
    def accelerators(self) -> Accelerators:
        """The accelerators that the cluster's slices may consist of."""
        return accelerators_with(self.catalogue.machines)

    def warm_in(self, namespace: str) -> tuple[Warm | None, str]:
        """Return how long slices of a namespace are kept, and whose setting that is: empty, the cluster's."""
        own = self.namespaces.get(namespace)
        return (own.warm, namespace) if own is not None and own.warm is not None else (self.warm, "")

    @property
    def keeps_warm(self) -> bool:
        """Whether slices of any namespace are kept warm."""
        own = (each.warm for each in self.namespaces.values())
        return any(warm is not None for warm in (self.warm, *own))

    @property
    def hands_across(self) -> bool:
        """Whether slices of any namespace may come to others."""
        warm = (self.warm, *(each.warm for each in self.namespaces.values()))
        return any(each is not None and each.is_for_all for each in warm)

    def spares_in(self, namespace: str) -> bool:
        """Return whether spares are made for a namespace."""
        return any(namespace in each.namespaces for each in self.spares)

    @property
    def self_managed(self) -> bool:
        """Whether its slices are groups of instances on Compute Engine, rather than node pools of GKE."""
        return self.pools.compute is not None

    @property
    def vendor(self) -> Vendor:
        return self.pools.vendor

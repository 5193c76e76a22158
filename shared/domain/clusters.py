"""What people set for a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType

from shared.domain.observations import FailureKind
from shared.domain.slices import ClusterId


@dataclass(frozen=True, slots=True)
class Backoff:
    """When to try again: `first`, then twice as long each time, at most `longest`."""

    first: timedelta
    longest: timedelta

    def after(self, failures: int) -> timedelta:
        """Give the pause after that many failures in a row (1 or more)."""
        doublings = min(failures - 1, 20)
        return min(self.first * (1 << doublings), self.longest)


def _seconds(first: float, longest: float) -> Backoff:
    return Backoff(timedelta(seconds=first), timedelta(seconds=longest))


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

    want_ttl: timedelta = timedelta(minutes=15)
    """A slice is only bought while its want was confirmed this recently; the relay repeats every 5 minutes."""
    act_window: timedelta = timedelta(seconds=60)
    """A decision is acted on within this time after it was saved, or looked at anew."""
    create_patience: timedelta = timedelta(minutes=20)
    """How long a pool may stay in creation although no operation runs for it any more."""
    look_again: timedelta = timedelta(minutes=1)
    """When to look at something that changes without telling us."""
    backstop: timedelta = timedelta(minutes=10)
    """When to look at something whose end somebody else tells us: the log sink, the sweep, the relay."""
    delete_again: timedelta = timedelta(seconds=20)
    """When to look whether a pool is gone, and to order its deletion again where GKE shows no sign of it."""
    blocked_again: timedelta = timedelta(hours=1)
    """When what needs a person is tried again by itself: a permission that was granted changes nothing we can see."""
    gone_ttl: timedelta = timedelta(days=30)
    """How long the record of a slice that is gone can be read."""
    retries: Mapping[FailureKind, Backoff] = field(default_factory=lambda: _RETRIES)
    """When a failed attempt is followed by the next, by the kind of its failure."""
    operations: int = 5
    """The most node pool operations in flight (GKE documented 5 per cluster, its own autoscaler uses 9)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSettings:
    """What every node pool of a cluster gets; pinned on a slice's record at its first create."""

    service_account: str | None = None
    """The nodes' service account; None: GKE's default."""
    boot_disk_gb: int = 100
    max_pods_per_node: int = 15
    auto_upgrade: bool = True
    """GKE refuses False in a cluster that is in a release channel."""
    network_tags: tuple[str, ...] = ()


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
    pools: PoolSettings = PoolSettings()
    limits: Limits = Limits()

"""What runs the slices of a cluster, and the words by which people know it there. Pure.

Texts are written once, with `{vendor}`, `{vendor.pool}` and so on where what runs the slices has a word of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """The words of one of them; as text its name."""

    name: str
    pool: str
    """What holds the hosts of a slice."""
    limit: str
    """Why not every slice is created or deleted at once."""
    slowest: str
    """What may make a creation take longer than it usually does."""
    gives_up_after: timedelta | None
    """How long it goes on trying to create what holds the hosts, before it tells of a stockout; None: without end."""
    repair: str
    """How hosts come back that were lost."""
    addresses: str
    """What hosts may lack addresses of, and what is to be made larger then."""
    beside: str
    """What else makes hosts, for pods that get no slice."""
    labels: str
    """What says on a pool whose it is."""
    scope: str
    """What operations exclude each other on."""

    def __str__(self) -> str:
        return self.name

    @property
    def a_pool(self) -> str:
        """What holds the hosts of a slice, with its article, as a sentence begins."""
        return f"{'An' if self.pool[0] in 'aeiou' else 'A'} {self.pool}"


GKE = Vendor(
    name="GKE",
    pool="node pool",
    limit="GKE limits the concurrent operations on a cluster",
    slowest="GKE may take half an hour to report a stockout",
    gives_up_after=timedelta(minutes=36),
    repair="GKE repairs hosts",
    addresses="pod IP range",
    beside="use a TPU node pool with autoscaling, node auto-provisioning or a ComputeClass of GKE",
    labels="the labels",
    scope="the cluster",
)
COMPUTE_ENGINE = Vendor(
    name="Compute Engine",
    pool="instance group",
    limit="the cluster's settings limit how many slices are created and deleted at once",
    slowest="its workload policy and its instance template come first",
    gives_up_after=None,
    repair="The instance group repairs a host that is a slice by itself; a slice of several is replaced as a whole, "
    "once no Job is on it",
    addresses="subnetwork",
    beside="create a TPUNodeGroup, and select its hosts with cloud.google.com/tpu-node-group-name",
    labels="the description",
    scope="what the slice consists of",
)

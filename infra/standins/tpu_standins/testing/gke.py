"""A control plane to test: a stepped clock, a demo cluster, and requests that GKE would accept."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any

from google.cloud import container_v1 as gke

from tpu_standins.cloud.hosts import Manifest
from tpu_standins.cloud.nodes import NodesUnavailableError, RememberedNodes, with_labels_alone
from tpu_standins.cloud.timed import Entry, Outside
from tpu_standins.gke.control_plane import ControlPlane
from tpu_standins.gke.paths import ClusterPath
from tpu_standins.gke.rules import Refusal
from tpu_standins.gke.state import Cluster, Fault, Kind, Pace, State
from tpu_standins.testing.clock import SteppedClock

DEMO = "projects/demo-project/locations/us-central2/clusters/demo"
PACE = Pace(pending=0.5, create=4, join=1, ready=1, chips=1, delete=2, repair=4, stockout=6, quota=1, join_limit=60)

Policy = gke.NodePool.PlacementPolicy
ANYWHERE = gke.NodePoolAutoscaling.LocationPolicy.ANY


def a_cluster(**changes: Any) -> Cluster:
    given: dict[str, Any] = {
        "path": ClusterPath("demo-project", "us-central2", "demo"),
        "id": "c0ffee",
        "zones": ("us-central2-b",),
        **changes,
    }
    return Cluster(**given)


def a_state(cluster: Cluster | None = None, **changes: Any) -> State:
    clusters = {DEMO: cluster or a_cluster()}
    given: dict[str, Any] = {"clusters": clusters, "pace": PACE, **changes}
    return State(**given)


def a_pool(name: str = "pool", **changes: Any) -> gke.NodePool:
    """Return a node pool request: a v4 slice of two hosts."""
    config = {"machine_type": "ct4p-hightpu-4t", **changes.pop("config", {})}
    given = {
        "name": name,
        "initial_node_count": 2,
        "locations": ["us-central2-b"],
        "placement_policy": Policy(type_=Policy.Type.COMPACT, tpu_topology="2x2x2"),
        **changes,
    }
    return gke.NodePool(config=gke.NodeConfig(**config), **given)


def of_flex_start(name: str = "pool", **changes: Any) -> gke.NodePool:
    """Return a node pool request: a v6e slice of four hosts, which GKE adds when it has them."""
    config = {
        "machine_type": "ct6e-standard-4t",
        "flex_start": True,
        "max_run_duration": timedelta(hours=1),
        "reservation_affinity": {"consume_reservation_type": gke.ReservationAffinity.Type.NO_RESERVATION},
        **changes.pop("config", {}),
    }
    given = {
        "initial_node_count": 0,
        "autoscaling": gke.NodePoolAutoscaling(enabled=True, max_node_count=4, location_policy=ANYWHERE),
        "management": gke.NodeManagement(auto_upgrade=True, auto_repair=False),
        "upgrade_settings": gke.NodePool.UpgradeSettings(strategy=gke.NodePoolUpdateStrategy.SHORT_LIVED),
        "placement_policy": Policy(type_=Policy.Type.COMPACT, tpu_topology="4x4"),
        **changes,
    }
    return a_pool(name, config=config, **given)


def a_single_host(name: str = "pool", **changes: Any) -> gke.NodePool:
    return a_pool(name, initial_node_count=1, placement_policy=None, **changes)


def pool_path(name: str = "pool") -> str:
    return f"{DEMO}/nodePools/{name}"


class UnreliableNodes(RememberedNodes):
    """Nodes in memory that can be made to fail; `said` lists the calls, including failed ones."""

    def __init__(self) -> None:
        super().__init__()
        self.down = False
        self.said: list[str] = []

    def standing(self) -> Mapping[str, str]:
        if self.down:
            raise NodesUnavailableError("connection refused")
        return super().standing()

    def register(self, node: Manifest) -> None:
        self._say("register", node["metadata"]["name"])
        super().register(node)

    def update(self, node: Manifest) -> None:
        self._say("update", node["metadata"]["name"])
        self.nodes[node["metadata"]["name"]] = with_labels_alone(node)

    def drain(self, name: str) -> None:
        self._say("drain", name)

    def remove(self, name: str) -> None:
        self._say("remove", name)
        super().remove(name)

    def _say(self, what: str, name: str) -> None:
        self.said.append(f"{what} {name}")
        if self.down:
            raise NodesUnavailableError("connection refused")


@dataclass
class World:
    """Calls a control plane whose clock advances only in `after`."""

    state: State = field(default_factory=a_state)
    clock: SteppedClock = field(default_factory=SteppedClock)
    nodes: UnreliableNodes = field(default_factory=UnreliableNodes)
    published: list[Entry] = field(default_factory=list)
    plane: ControlPlane = field(init=False)

    def __post_init__(self) -> None:
        self.plane = ControlPlane(self.state, Outside(self.clock, counting_tokens(), self.published.append), self.nodes)

    def after(self, seconds: float) -> None:
        """Advance the clock in steps, as the control plane's thread would."""
        end = self.clock.now + seconds
        while True:
            wait = self.plane.tick()
            if wait > 0 and self.clock.now >= end:
                return
            self.clock.now = min(end, self.clock.now + wait)

    def create(self, pool: gke.NodePool | None = None) -> gke.Operation:
        answer = self.ask("CreateNodePool", gke.CreateNodePoolRequest(parent=DEMO, node_pool=pool or a_pool()))
        assert isinstance(answer, gke.Operation), answer
        return answer

    def delete(self, name: str = "pool") -> gke.Operation:
        answer = self.ask("DeleteNodePool", gke.DeleteNodePoolRequest(name=pool_path(name)))
        assert isinstance(answer, gke.Operation), answer
        return answer

    def update(self, name: str = "pool", **changes: Any) -> gke.Operation:
        answer = self.ask("UpdateNodePool", gke.UpdateNodePoolRequest(name=pool_path(name), **changes))
        assert isinstance(answer, gke.Operation), answer
        return answer

    def update_refused(self, name: str = "pool", **changes: Any) -> Refusal:
        return self.refused("UpdateNodePool", gke.UpdateNodePoolRequest(name=pool_path(name), **changes))

    def pool(self, name: str = "pool") -> gke.NodePool:
        answer = self.ask("GetNodePool", gke.GetNodePoolRequest(name=pool_path(name)))
        assert isinstance(answer, gke.NodePool), answer
        return answer

    def operation(self, name: str) -> gke.Operation:
        path = f"projects/demo-project/locations/us-central2/operations/{name}"
        answer = self.ask("GetOperation", gke.GetOperationRequest(name=path))
        assert isinstance(answer, gke.Operation), answer
        return answer

    def cancel_refused(self, operation: str) -> Refusal:
        path = f"projects/demo-project/locations/us-central2/operations/{operation}"
        return self.refused("CancelOperation", gke.CancelOperationRequest(name=path))

    def cancel(self, operation: str) -> None:
        path = f"projects/demo-project/locations/us-central2/operations/{operation}"
        answer = self.ask("CancelOperation", gke.CancelOperationRequest(name=path))
        assert not isinstance(answer, Refusal), answer

    def refused(self, method: str, request: Any) -> Refusal:
        answer = self.ask(method, request)
        assert isinstance(answer, Refusal), answer
        return answer

    def create_refused(self, pool: gke.NodePool | None = None) -> Refusal:
        return self.refused("CreateNodePool", gke.CreateNodePoolRequest(parent=DEMO, node_pool=pool or a_pool()))

    def delete_refused(self, name: str = "pool") -> Refusal:
        return self.refused("DeleteNodePool", gke.DeleteNodePoolRequest(name=pool_path(name)))

    def ask(self, method: str, request: Any) -> Any:
        return self.plane.answer(method, request)

    def conditions(self) -> Mapping[str, str]:
        """Return the status of the Ready condition by Node name."""
        return {name: node["status"]["conditions"][0]["status"] for name, node in self.nodes.nodes.items()}

    def chips(self) -> list[str]:
        return [node["status"]["allocatable"]["google.com/tpu"] for node in self.nodes.nodes.values()]


def a_world_with(kind: Kind, **changes: Any) -> World:
    return World(a_state(faults=(Fault(kind=kind, **changes),)))


def counting_tokens() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"00000000-0000-4000-8000-{next(numbers):012d}"

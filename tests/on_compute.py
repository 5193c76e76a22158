"""The whole system whose slices are on the local Compute Engine: the real adapter, over Google's clients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial

from tests.contracts.local_compute import LocalCompute
from tests.functions.test_handlers import an_event
from tests.world import World
from tpu_slices.app import handlers
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import PoolName
from tpu_slices.flows.orders import order_of
from tpu_slices.wire.messages import Message
from tpu_slices_simulator import objects
from tpu_slices_simulator.cluster import NOT_READY
from tpu_slices_simulator.live import LiveWorkload
from tpu_slices_simulator.system import MINUTE, STEP
from tpu_standins.compute.vms import RunningVm, labels_of

_READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


class OnCompute(World):
    """Its operations end, and its hosts join, when a test says so, or by themselves while `lives`."""

    def __init__(self, of_cluster: ClusterSettings | None = None) -> None:
        self.place = LocalCompute()
        super().__init__(of_cluster=of_cluster or self.place.cluster)
        self.deps = replace(self.deps, backend=self.place.backend)

    def step_ends(self, pool: PoolName) -> None:
        """Let the operation that runs on a pool end, and the log sink tell it."""
        self.place.finish(pool)
        self.place.wait(timedelta(seconds=1))
        self._log_sink_tells()

    def tokens(self, pool: PoolName) -> int:
        """Return how many hosts have a bootstrap token, a moment later."""
        self.place.wait(timedelta(seconds=5))
        return sum("kubeadm-join-token" in each for each in self.place.metadata(pool))

    def hosts_join(self, jobset: LiveWorkload) -> None:
        record = self.record(jobset)
        self.cluster.has_nodes(order_of(record, self.settings))
        self.steps()
        self.steps()

    def lives(self, *, minutes: int = 10, until: Callable[[], bool] = lambda: False) -> None:
        """Let minutes pass: operations end, the log sink tells it, machines boot and join, or go."""
        for _ in range(minutes):
            for _ in range(MINUTE // (2 * STEP)):
                self.steps()
                self.place.wait(2 * STEP)
                self._log_sink_tells()
                self.machines_join()
                if until():
                    return
            self.sweeps()

    def machines_join(self, *, at_most: int = 1_000) -> None:
        """Let machines that run be nodes, at most so many new ones; those of machines that are gone are not Ready."""
        running = self.place.running()
        new = [each for each in running.values() if each.path.name not in self.cluster.nodes and _can_join(each)]
        for vm in new[:at_most]:
            raw = objects.node(vm.path.name, labels_of(vm.metadata["kube-labels"]), str(vm.machine.chips))
            raw["spec"]["providerID"] = vm.provider_id
            self.cluster.joins(raw)
        names = {path.name for path in running}
        for node in list(self.cluster.nodes.values()):
            ready = node.raw["status"]["conditions"][0]["status"] == "True"
            if ready is not (node.name in names):
                self.cluster.changes_node(node, _READY if node.name in names else NOT_READY)

    def _log_sink_tells(self) -> None:
        """Let what it tells be handled; what cannot be is redelivered later than the sweep looks."""
        for entry in self.place.told():
            event = an_event("cloud-operations", Message(entry, {}))
            self._survive(partial(handlers.handle_reconcile, event, self.deps))


def _can_join(vm: RunningVm) -> bool:
    """Return whether a slice's machine joins by itself, or was given what its startup script waits for."""
    waits = "kubeadm-control-plane" in vm.metadata and "kubeadm-join-token" not in vm.metadata
    return "kube-labels" in vm.metadata and not waits

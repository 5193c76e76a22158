"""The backends under contract, each with a cluster and the same buttons."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from google.cloud.container_v1 import ClusterManagerClient

from infra.local.gke import lifecycle
from infra.local.gke.server import Server
from infra.local.gke.state import Fault, Kind
from tests.builders import NOW, settings
from tests.fakes.backend import FakeBackend
from tests.fakes.clock import FakeClock
from tests.local.gke.world import World as Gke
from tests.local.gke.world import a_cluster, a_pool, counting_tokens
from tpu_slices.adapters.gke import GkeBackend, client
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.observations import Failure, FailureKind, LegacyPool
from tpu_slices.domain.model.slices import PoolName
from tpu_slices.ports.backend import Backend

LIMIT = 5
"""Concurrent operations that either cluster accepts."""


class Place(Protocol):
    """A cluster to make slices in."""

    @property
    def backend(self) -> Backend: ...

    @property
    def cluster(self) -> ClusterSettings: ...

    @property
    def gke_id(self) -> str: ...

    def finish(self, pool: PoolName) -> None:
        """Let the operation that runs on a pool end."""

    def run_out(self, pool: PoolName) -> None:
        """Let the zone be out of hosts for a pool that will be ordered."""

    def repair(self, pool: PoolName) -> None:
        """Let GKE work on a pool."""

    def vanish(self, pool: PoolName) -> None:
        """Remove a pool without an operation."""

    def squat(self, pool: PoolName) -> None:
        """Let somebody else have a pool of that name."""

    def hold_legacy_pool(self, pool: LegacyPool) -> None:
        """Let TPU Provisioner have made a pool."""

    def lose_next_answer(self) -> None:
        """Let the next creation be carried out, and its answer be lost."""

    def break_down(self) -> None:
        """Let every further call fail."""


class InMemory:
    """The fake."""

    gke_id = "c0ffee"

    def __init__(self) -> None:
        self.backend = FakeBackend(FakeClock(NOW), cluster_gke_id=self.gke_id, operation_limit=LIMIT)
        self.cluster = settings(gke_id=self.gke_id)
        self._short: set[PoolName] = set()

    def finish(self, pool: PoolName) -> None:
        if pool in self._short:
            self._short.remove(pool)
            self.backend.fail(pool, Failure(FailureKind.STOCKOUT, "[GCE_STOCKOUT]"))
        else:
            self.backend.finish(pool)

    def run_out(self, pool: PoolName) -> None:
        self._short.add(pool)

    def repair(self, pool: PoolName) -> None:
        self.backend.repair(pool)

    def vanish(self, pool: PoolName) -> None:
        self.backend.vanish(pool)

    def squat(self, pool: PoolName) -> None:
        self.backend.steal(pool)

    def hold_legacy_pool(self, pool: LegacyPool) -> None:
        self.backend.hold_legacy_pool(pool)

    def lose_next_answer(self) -> None:
        self.backend.lose_next_answer()

    def break_down(self) -> None:
        self.backend.hide()


class LocalGke:
    """The adapter, over Google's client and gRPC, against the local GKE."""

    gke_id = a_cluster().id

    def __init__(self, gke: Gke, google: ClusterManagerClient) -> None:
        self.backend = GkeBackend(google)
        self.cluster = settings(gke_id=self.gke_id)
        self._gke = gke

    def finish(self, pool: PoolName) -> None:
        state, _ = self._gke.plane.look()
        assert state.running_on(self._path(pool)), f"no operation runs on {pool}"
        self._gke.after(3600)

    def run_out(self, pool: PoolName) -> None:
        self._order(Fault(kind=Kind.STOCKOUT, pools=pool))

    def repair(self, pool: PoolName) -> None:
        self._gke.plane.change(lambda state, moment: lifecycle.begin_repair(state, self._path(pool), moment)[0])

    def vanish(self, pool: PoolName) -> None:
        self._gke.plane.change(lambda state, _: state.without_pool(self._path(pool)))

    def squat(self, pool: PoolName) -> None:
        self._gke.create(a_pool(pool))
        self._gke.after(3600)

    def hold_legacy_pool(self, pool: LegacyPool) -> None:
        labels = {
            "google.com/nodepool-manager": "tpu-provisioner",
            "google.com/tpu-provisioner-parent-kind": "job",
            "google.com/tpu-provisioner-parent-name": pool.job,
            "google.com/tpu-provisioner-parent-namespace": pool.namespace,
            "google.com/tpu-provisioner-jobset-name": pool.jobset,
            "google.com/tpu-provisioner-jobset-namespace": pool.namespace,
            "google.com/tpu-provisioner-nodepool-hash": "7f4c8d",
        }
        self._gke.create(a_pool(pool.name, config={"labels": labels}))
        self._gke.after(3600)

    def lose_next_answer(self) -> None:
        self._order(Fault(kind=Kind.LOST_ANSWER))

    def break_down(self) -> None:
        self._order(Fault(kind=Kind.INTERNAL, method="*", times=None))

    def _order(self, fault: Fault) -> None:
        self._gke.plane.change(lambda state, _: replace(state, faults=(*state.faults, fault)))

    def _path(self, pool: PoolName) -> str:
        return f"{self.cluster.path}/nodePools/{pool}"


@contextmanager
def local_gke() -> Iterator[LocalGke]:
    """Serve a local GKE whose clock only the test advances."""
    gke = Gke()
    server = Server(gke.plane, counting_tokens())
    try:
        with client(f"127.0.0.1:{server.port}") as google:
            yield LocalGke(gke, google)
    finally:
        server.stop()

"""The adapter under contract, on the local GKE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from google.cloud.container_v1 import ClusterManagerClient, NodeLabels, NodePool, Operation, ResourceLabels

from tests.builders import settings
from tpu_slices.adapters.gke.backend import GkeBackend, client
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.slices import PoolName
from tpu_slices_simulator.fakes.troubles import Trouble, Verb
from tpu_standins.cloud.hosts import Manifest
from tpu_standins.cloud.timed import Moment
from tpu_standins.gke import faults, lifecycle
from tpu_standins.gke.paths import ClusterPath
from tpu_standins.gke.server import Server
from tpu_standins.gke.state import Fault, Kind, State
from tpu_standins.testing.clock import NOON, SteppedClock
from tpu_standins.testing.gke import World as Gke
from tpu_standins.testing.gke import a_cluster, a_pool, a_state, counting_tokens

_METHODS = {
    Verb.CREATE: "CreateNodePool",
    Verb.DELETE: "DeleteNodePool",
    Verb.CANCEL: "CancelOperation",
    Verb.RELABEL: "UpdateNodePool",
}
_KINDS = {
    Trouble.FORBIDDEN: Kind.PERMISSION,
    Trouble.UNAVAILABLE: Kind.UNAVAILABLE,
    Trouble.ANSWER_LOST: Kind.LOST_ANSWER,
}


class LocalGke:
    """The adapter, over Google's client and gRPC, against the local GKE."""

    gke_id = a_cluster().id

    def __init__(self, gke: Gke, google: ClusterManagerClient, path: str) -> None:
        self.backend = GkeBackend(google)
        self.cluster = settings(gke_id=self.gke_id, path=path)
        self._gke = gke

    def finish(self, pool: PoolName) -> None:
        state, _ = self._gke.plane.look()
        assert state.running_on(self._path(pool)), f"no operation runs on {pool}"
        self._gke.after(3600)

    def run_out(self, pool: PoolName, *, conditions_only: bool = False) -> None:
        self._order(Fault(kind=Kind.STOCKOUT, pools=pool, conditions_only=conditions_only))

    def take_cancellations(self) -> None:
        kinds = frozenset({Operation.Type.CREATE_NODE_POOL})
        self._gke.plane.change(lambda state, _: replace(state, cancellable=kinds))

    def repair(self, pool: PoolName) -> None:
        self._gke.plane.change(lambda state, moment: lifecycle.begin_repair(state, self._path(pool), moment)[0])

    def upgrade(self, pool: PoolName) -> None:
        self._gke.plane.change(lambda state, moment: lifecycle.begin_upgrade(state, self._path(pool), moment)[0])

    def vanish(self, pool: PoolName) -> None:
        self._gke.plane.change(lambda state, _: state.without_pool(self._path(pool)))

    def squat(self, pool: PoolName) -> None:
        self._gke.create(a_pool(pool))
        self._gke.after(3600)

    def replace_labels(self, pool: PoolName) -> None:
        self._gke.update(pool, labels=NodeLabels(labels={"team": "a"}))
        self._gke.after(60)

    def replace_billing_labels(self, pool: PoolName) -> None:
        self._gke.update(pool, resource_labels=ResourceLabels(labels={"team": "a"}))
        self._gke.after(60)

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._gke.clock.now, UTC)

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

    def let_deletion_fail(self, pool: PoolName, *, usable: bool) -> None:
        self._order(Fault(kind=Kind.DELETE_FAILS, method="DeleteNodePool", pools=pool, usable=usable))

    def wreck(self, pool: PoolName) -> None:
        worn = faults.not_deleted(usable=False)

        def broken(state: State, _: Moment) -> State:
            found = state.pools[self._path(pool)]
            status = NodePool.Status.RUNNING_WITH_ERROR
            return state.with_pool(replace(found, status=status, failure=replace(worn, message="", detail="Worn.")))

        self._gke.plane.change(broken)

    def let_creation_end_late(self, pool: PoolName) -> None:
        self._order(Fault(kind=Kind.SLOW_END, pools=pool, seconds=600))

    def join_hosts(self, pool: PoolName) -> None:
        self._gke.after(60)
        state, _ = self._gke.plane.look()
        assert len(state.nodes) == len(state.hosts_of(self._path(pool)))

    def forget_operation(self, pool: PoolName) -> None:
        def ended(state: State, moment: Moment) -> State:
            found = state.running_on(self._path(pool))
            assert found is not None
            return state.with_operation(replace(found, ended=moment.now))

        self._gke.plane.change(ended)

    def forget_ended_operations(self) -> None:
        def forgotten(state: State, _: Moment) -> State:
            running = {path: each for path, each in state.operations.items() if each.ended is None}
            return replace(state, operations=running)

        self._gke.plane.change(forgotten)

    def lose_next_answer(self) -> None:
        self._order(Fault(kind=Kind.LOST_ANSWER, method="*"))

    def trouble(self, trouble: Trouble, *verbs: Verb, lasts: timedelta | None = None, calls: int | None = None) -> None:
        _, now = self._gke.plane.look()
        until = None if lasts is None else now + lasts.total_seconds()
        for method in [_METHODS[verb] for verb in verbs] or ["*"]:
            self._order(Fault(kind=_KINDS[trouble], method=method, times=calls, until=until))

    def calm_down(self) -> None:
        self._gke.plane.change(lambda state, _: replace(state, faults=()))

    def wait(self, time: timedelta) -> None:
        self._gke.after(time.total_seconds())

    def break_down(self) -> None:
        self._order(Fault(kind=Kind.INTERNAL, method="*", times=None))

    def _order(self, fault: Fault) -> None:
        self._gke.plane.change(lambda state, _: replace(state, faults=(*state.faults, fault)))

    def _path(self, pool: PoolName) -> str:
        return f"{self.cluster.path}/nodePools/{pool}"

    def nodes(self) -> Mapping[str, Manifest]:
        """Return the Nodes that there are, by name."""
        return self._gke.nodes.nodes


@contextmanager
def local_gke(starts: float = NOON, location: str = "us-central2") -> Iterator[LocalGke]:
    """Serve a local GKE whose clock only the test advances, with one cluster in that region or zone."""
    path = ClusterPath("demo-project", location, "demo")
    state = a_state(clusters={str(path): a_cluster(path=path)})
    gke = Gke(state, clock=SteppedClock(starts))
    server = Server(gke.plane, counting_tokens())
    try:
        with client(f"127.0.0.1:{server.port}") as google:
            yield LocalGke(gke, google, str(path))
    finally:
        server.stop()

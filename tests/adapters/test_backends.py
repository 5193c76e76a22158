"""Which backend has the slices of a cluster, and when that of Compute Engine is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.adapters.compute_stories import ORDER as OF_COMPUTE
from tests.adapters.recordings import ORDER as OF_GKE
from tests.builders import NOW, self_managed, settings
from tpu_slices.adapters.backends import Backends
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.ports.backend import Backend, PoolOrder
from tpu_slices_simulator.fakes.backend import FakeBackend
from tpu_slices_simulator.fakes.clock import FakeClock

ROOT = Path(__file__).parents[2]
OTHER = replace(OF_COMPUTE, attempt=2)


def _fake() -> FakeBackend:
    return FakeBackend(FakeClock(NOW))


class Both:
    """Both backends, in memory, behind one."""

    def __init__(self) -> None:
        self.gke, self.compute = FakeBackend(FakeClock(NOW)), FakeBackend(FakeClock(NOW))
        self.made = 0
        self.backend = Backends(lambda: self.gke, self._make)

    def _make(self) -> Backend:
        self.made += 1
        return self.compute


def test_a_slice_is_made_where_its_clusters_slices_are() -> None:
    both = Both()
    for order in (OF_GKE, OF_COMPUTE, OTHER):
        both.backend.create(order)
    assert (list(both.gke.pools), list(both.compute.pools)) == ([OF_GKE.name], [OF_COMPUTE.name, OTHER.name])


@pytest.mark.parametrize(
    "ask",
    [Backends.look, Backends.create, Backends.delete, Backends.delete_remains, Backends.cancel],
    ids=lambda method: method.__name__,
)
def test_every_order_goes_to_the_backend_of_its_cluster(ask: Callable[[Backends, PoolOrder], object]) -> None:
    both = Both()
    both.gke.hide()
    answer = ask(both.backend, OF_COMPUTE)
    assert answer == ask(Backends(_fake, _fake), OF_COMPUTE)
    assert both.made == 1


def test_a_token_goes_to_the_backend_of_its_cluster() -> None:
    both = Both()
    both.backend.create(OF_COMPUTE)
    both.backend.join(OF_COMPUTE, None)
    both.backend.join(OF_GKE, None)
    assert (both.gke.joins, both.compute.joins) == ([], [(OF_COMPUTE.name, None)])


@pytest.mark.parametrize(
    "ask", [Backends.inventory, Backends.legacy_pools, Backends.pool_operations], ids=lambda method: method.__name__
)
def test_every_list_is_that_of_the_clusters_backend(ask: Callable[[Backends, ClusterSettings], object]) -> None:
    both = Both()
    both.gke.hide()
    assert not ask(both.backend, self_managed())
    assert both.made == 1


def test_the_backend_of_compute_engine_is_made_once_and_not_for_clusters_of_gke() -> None:
    both = Both()
    both.backend.look(OF_GKE)
    both.backend.inventory(settings())
    assert both.made == 0
    for _ in range(2):
        both.backend.look(OF_COMPUTE)
    assert both.made == 1


COLD_START = """
import sys
from tests.builders import settings
from tpu_slices.adapters.gke.backend import GkeBackend
from tpu_slices.app.settings import Settings
from tpu_slices.app.wiring import build_reconcile_deps
GkeBackend.inventory = lambda *_: ()
deps = build_reconcile_deps(Settings(project="p", gke_emulator="127.0.0.1:9", compute_emulator="127.0.0.1:9"))
deps.backend.inventory(settings())
print(sum(name.startswith("google.cloud.compute") for name in sys.modules))
"""


@pytest.mark.slow
def test_no_module_of_compute_engines_client_is_loaded_before_a_self_managed_cluster_is_met() -> None:
    emulators = {"FIRESTORE_EMULATOR_HOST": "127.0.0.1:9", "PUBSUB_EMULATOR_HOST": "127.0.0.1:9"}
    found = subprocess.run(
        [sys.executable, "-c", COLD_START],
        cwd=ROOT,
        env={**os.environ, **emulators},
        check=True,
        capture_output=True,
        text=True,
    )
    assert found.stdout == "0\n"
    assert find_spec("google.cloud.compute_v1") is not None

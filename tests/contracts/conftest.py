"""The stores and backends under contract."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from google.cloud.firestore import Client

from tests.contracts.backends import InMemory, Place
from tests.contracts.local_gke import local_gke
from tests.contracts.stores import REAL, Bench, FirestoreConsole
from tests.patience import patient_adapters
from tpu_slices.adapters.firestore import FirestoreStore
from tpu_slices_simulator.fakes.store import FakeStore


@pytest.fixture(autouse=True, scope="module")
def patience() -> Iterator[None]:
    """Let the adapters wait for what is local as long as tests do."""
    with patient_adapters():
        yield


@pytest.fixture
def client(firestore_emulator: str, project_id: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", firestore_emulator)
    client = Client(project=project_id)
    yield client
    client.close()  # type: ignore[no-untyped-call]  # the client's own gap


@pytest.fixture(params=["fake", pytest.param("firestore", marks=REAL)])
def bench(request: pytest.FixtureRequest) -> Bench:
    if request.param == "fake":
        fake = FakeStore()
        return Bench(fake, fake)
    client = request.getfixturevalue("client")
    return Bench(FirestoreStore(client, page=2), FirestoreConsole(client))


@pytest.fixture(params=["memory", pytest.param("gke", marks=REAL)])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    if request.param == "memory":
        yield InMemory()
    else:
        with local_gke() as found:
            yield found

"""A reconcile process that is killed by SIGKILL after its decision is saved and before GKE answers."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from google.cloud import firestore

from infra.local import messaging
from infra.local.addresses import Addresses, port_of
from infra.local.functions import function
from tests.builders import CLUSTER, a_job, leaders_wait, settings
from tests.patience import patient_adapters
from tpu_slices.adapters.firestore import FirestoreStore
from tpu_slices.adapters.gke.backend import GkeBackend, client
from tpu_slices.adapters.pubsub import PubSubPublisher, connect_publisher, publish
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import claim_id
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.wire.cluster_settings import encode_settings
from tpu_slices.wire.messages import encode_fact
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.ports import free_ports
from tpu_standins.prerequisites import Tools
from tpu_standins.processes import Child, Processes, Program, Says
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.real]
ROOT = Path(__file__).parents[2]


ASKED_AGAIN = 20
"""After how many looks a request is published again: one that was refused too often is not delivered any more."""


def eventually(look: Callable[[], SliceRecord | None], true: Callable[[SliceRecord], bool]) -> SliceRecord:
    def found() -> SliceRecord | None:
        record = look()
        return record if record is not None and true(record) else None

    record = until(found, lambda: f"another record than {look()}")
    assert record is not None
    return record


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    with patient_adapters():
        yield


@pytest.fixture
def addresses(pubsub_emulator: str, firestore_emulator: str, project_id: str, tmp_path: Path) -> Addresses:
    table = messaging.read().of_cluster(CLUSTER)
    gke, buttons, proxy, proxy_buttons, *rest = free_ports(4 + len(table.functions))
    return Addresses(
        project=project_id,
        location="us-central2",
        cluster_id=CLUSTER,
        pubsub=pubsub_emulator,
        firestore=firestore_emulator,
        gke=f"127.0.0.1:{gke}",
        proxy_port=proxy,
        proxy_buttons=f"http://127.0.0.1:{proxy_buttons}",
        buttons=f"http://127.0.0.1:{buttons}",
        functions={name: f"http://127.0.0.1:{port}" for name, port in zip(table.functions, rest, strict=True)},
        folder=tmp_path,
    )


@pytest.fixture
def store(addresses: Addresses, monkeypatch: pytest.MonkeyPatch) -> FirestoreStore:
    for name, value in addresses.environment().items():
        monkeypatch.setenv(name, value)
    database = firestore.Client(project=addresses.project)
    known = encode_settings(settings(path=addresses.cluster_path))
    database.collection("clusters").document(CLUSTER).set(dict(known))
    return FirestoreStore(database)


@pytest.fixture
def processes(tools: Tools, tmp_path: Path) -> Iterator[Processes]:
    with Processes(setpriv=tools.setpriv, logs=tmp_path / "logs", environment=os.environ) as started:
        yield started


@pytest.fixture
def a_gke_that_never_answers(addresses: Addresses) -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", port_of(addresses.gke))) as silent:
        yield silent


def local_gke(addresses: Addresses) -> Program:
    return Program(
        name="gke",
        command=(
            *(sys.executable, "-m", "tpu_standins.gke", "--port", str(port_of(addresses.gke))),
            *("--buttons-port", str(port_of(addresses.buttons)), "--cluster", addresses.cluster_path),
        ),
        ready=Says(r"listening on .*"),
        folder=ROOT,
        environment={"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
    )


def kill(child: Child) -> None:
    """Send SIGKILL to the process and its workers: no handler runs."""
    os.killpg(child.process.pid, 9)
    assert child.ended(PATIENCE_SECONDS)


def test_the_next_process_creates_the_pool_once(
    addresses: Addresses, store: FirestoreStore, processes: Processes, a_gke_that_never_answers: socket.socket
) -> None:
    messaging.create(messaging.read().of_cluster(CLUSTER), addresses)
    receive, reconcile = processes.start(*(function(each, ROOT, addresses) for each in ("receive", "reconcile")))
    processes.wait_until_ready(receive, reconcile)
    id_ = claim_id(a_job())

    def record() -> SliceRecord | None:
        found = store.having(CLUSTER, [id_]).get(id_)
        return found.value if found else None

    publish(
        connect_publisher(), addresses.topic_path(f"facts-{CLUSTER}"), [encode_fact(leaders_wait())], PATIENCE_SECONDS
    )
    remembered = eventually(record, lambda slice_: slice_.phase is Phase.PROVISIONING)
    assert (remembered.current.operation, remembered.attempt) == (None, 1)
    kill(reconcile)
    a_gke_that_never_answers.close()

    processes.wait_until_ready(*processes.start(local_gke(addresses), function("reconcile", ROOT, addresses)))
    looks = count()

    def record_asked_for() -> SliceRecord | None:
        if next(looks) % ASKED_AGAIN == ASKED_AGAIN - 1:
            PubSubPublisher(connect_publisher(), addresses.project).request_reconcile(CLUSTER, [id_])
        return record()

    acted = eventually(record_asked_for, lambda slice_: slice_.current.operation is not None)
    pools = GkeBackend(client(addresses.gke)).inventory(settings(path=addresses.cluster_path))
    assert [(pool.name, pool.attempt) for pool in pools] == [(acted.pool, 1)]
    assert [slot.value.slice_id for slot in store.slots(CLUSTER)] == [id_]

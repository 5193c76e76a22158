"""What reconciling a settled slice takes on the emulator of Firestore, and that it does not grow with the records.

It reads settings, slice and workload, and asks a GKE in memory. Its floor is the same three reads alone.
"""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.bench.measures import Measure, measure
from tests.builders import CLUSTER, NOW, a_job, a_jobset, a_record, settings, some_hosts
from tpu_slices.adapters.firestore import FirestoreStore, connect
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows.reconcile import reconcile
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.store import Change
from tpu_slices.wire.cluster_settings import encode_settings
from tpu_slices_simulator.fakes.backend import FakeBackend
from tpu_slices_simulator.fakes.clock import FakeClock
from tpu_slices_simulator.fakes.publisher import FakePublisher
from tpu_slices_simulator.fakes.reservations import FakeReservations
from tpu_standins import emulators, prerequisites
from tpu_standins.ports import free_ports
from tpu_standins.processes import Processes

ROUNDS = 100
STORED = (10, 100, 1000)


def rows() -> Iterator[Measure]:
    """Yield the milliseconds of one reconciliation, with few and many slices on record."""
    with emulated():
        _measured(STORED[0])  # a young JVM is slow: not counted
        for size in STORED:
            yield measure(f"reconcile a settled slice of {size}", "ms", *_measured(size))


@contextmanager
def emulated() -> Iterator[None]:
    """Let Firestore's emulator run, and clients connect to it."""
    tools = prerequisites.require(prerequisites.find(os.environ))
    with (
        tempfile.TemporaryDirectory() as scratch,
        Processes(setpriv=tools.setpriv, logs=Path(scratch) / "logs", environment=os.environ) as processes,
        pytest.MonkeyPatch.context() as environment,
    ):
        (port,) = free_ports(1)
        processes.wait_until_ready(*processes.start(emulators.firestore(tools, port, Path(scratch))))
        environment.setenv("FIRESTORE_EMULATOR_HOST", f"127.0.0.1:{port}")
        yield


def _measured(size: int) -> tuple[list[float], list[float]]:
    deps = _deps_with(size)
    record = _ready(0)

    def three_reads() -> None:
        deps.store.settings(CLUSTER)
        deps.store.slices(CLUSTER, [record.id])
        deps.store.workloads(CLUSTER, [record.owner.uid])

    return _times(lambda: reconcile(CLUSTER, record.name, deps)), _times(three_reads)


def _times(step: Callable[[], object]) -> list[float]:
    step()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        step()
        times.append((time.perf_counter() - start) * 1e3)
    return times


def _deps_with(size: int) -> ReconcileDeps:
    client = connect(f"bench-{uuid.uuid4().hex[:8]}")
    client.collection("clusters").document(CLUSTER).set(dict(encode_settings(settings())))
    store = FirestoreStore(client)
    for index in range(size):
        record = _ready(index)
        jobset = a_jobset(uid=record.owner.uid, demand={record.maker: NOW})
        store.commit(Change(None, record), Change(None, jobset))
    clock = FakeClock(NOW)
    backend = FakeBackend(clock)
    reservations = FakeReservations(backend, clock)
    deps = ReconcileDeps(
        store=store, backend=backend, publisher=FakePublisher(), clock=clock, reservations=reservations
    )
    backend.create(order_of(_ready(0)))
    backend.finish(_ready(0).pool)
    return deps


def order_of(record: SliceRecord) -> PoolOrder:
    return PoolOrder(
        cluster_path=settings().path,
        cluster_gke_id=None,
        slice_id=record.maker,
        attempt=record.attempt,
        job=record.job,
        spec=record.spec,
        settings=settings().pools,
    )


def _ready(index: int) -> SliceRecord:
    job = a_job(uid=WorkloadUid(f"uid-{index}"))
    return a_record(
        job=job,
        phase=Phase.READY,
        reason=Reason.READY,
        create_requested_at=NOW,
        hosts=some_hosts(),
        next_reconcile_at=None,
    )

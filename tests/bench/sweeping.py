"""What a sweep takes whose inventory check is due, of clusters with few and many slices: the records on the emulator.

The floor reads the same documents by Google's client alone. Slices are READY, 50 of each JobSet; GKE is simulated.
"""

from __future__ import annotations

import tracemalloc
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from google.cloud.firestore import Client

from tests.bench.measures import Measure, cpu_seconds, measure
from tests.bench.reconciling import emulated, order_of
from tests.builders import CLUSTER, NOW, a_job, a_jobset, a_record, settings, some_hosts
from tpu_slices.adapters.firestore import FirestoreStore, connect
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.domain.records.heartbeats import RelayHeartbeat
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows.sweep import sweep
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.store import Change
from tpu_slices.wire.cluster_settings import encode_settings
from tpu_slices_simulator.fakes.backend import FakeBackend
from tpu_slices_simulator.fakes.clock import FakeClock
from tpu_slices_simulator.fakes.publisher import FakePublisher
from tpu_slices_simulator.fakes.reservations import FakeReservations

STORED = (100, 1_000, 5_000)
EACH = 50
"""Slices of a JobSet."""
AT_ONCE = 200
RUNS = 3
MIB = 1 << 20


def rows() -> Iterator[Measure]:
    """Yield the seconds of a processor that such a sweep takes, and the memory that it needs at once."""
    with emulated():
        for size in STORED:
            client = connect(f"bench-{uuid.uuid4().hex[:8]}")
            step = _checking(client, size)
            read = partial(_read, client)
            taken, floor = cpu_seconds(step, RUNS), cpu_seconds(read, RUNS)
            yield measure(f"sweep that checks {size:,} READY slices: a processor", "s", taken, floor)
            yield measure("the same: memory at once", "MiB", [_peak(step)], [_peak(read)])


def _checking(client: Client, size: int) -> Callable[[], object]:
    """Return a sweep of a cluster with so many slices, whose inventory check is due."""
    client.collection("clusters").document(CLUSTER).set(dict(encode_settings(settings())))
    store, clock, backend = FirestoreStore(client), FakeClock(NOW), FakeBackend(FakeClock(NOW))
    records = [_ready(index) for index in range(size)]
    for first in range(0, size, AT_ONCE):
        store.commit(*(Change(None, record) for record in records[first : first + AT_ONCE]))
    for first in range(0, size, EACH):
        own = records[first : first + EACH]
        store.commit(Change(None, a_jobset(owner=own[0].owner, demand=dict.fromkeys(it.maker for it in own))))
    for record in records:
        backend.create(order_of(record))
        backend.finish(record.pool)
    reservations = FakeReservations(backend, clock)
    deps = ReconcileDeps(
        store=store, backend=backend, publisher=FakePublisher(), clock=clock, reservations=reservations
    )

    def step() -> object:
        stored = store.heartbeat(CLUSTER)
        due = replace(stored.value if stored else RelayHeartbeat.of(CLUSTER), next_inventory_check_at=NOW)
        store.commit(Change(stored, due))
        found = sweep(CLUSTER, deps)
        assert found.checked is not None, "the inventory was not checked"
        return found

    return step


def _read(client: Client) -> int:
    """Read every slice by Google's client, page by page."""
    asked = client.collection("slices").order_by("__name__").limit(300)
    page, count = list(asked.stream()), 0
    while page:
        count += len([each.to_dict() for each in page])
        page = list(asked.start_after(page[-1]).stream())
    return count


def _peak(step: Callable[[], object]) -> float:
    tracemalloc.start()
    try:
        step()
        return tracemalloc.get_traced_memory()[1] / MIB
    finally:
        tracemalloc.stop()


def _ready(index: int) -> SliceRecord:
    job = a_job(uid=WorkloadUid(f"uid-{index // EACH}"), job_index=index % EACH)
    made = {"create_requested_at": NOW, "hosts": some_hosts(), "next_reconcile_at": None}
    return a_record(job=job, phase=Phase.READY, reason=Reason.READY, **made)

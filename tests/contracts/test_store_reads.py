"""The meter of `tests/bench` counts the documents that the store on Firestore reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

import pytest
from google.cloud.firestore import Client

from tests.bench.counted.counters import READS, Counts
from tests.bench.counted.metered import MeteredStore
from tests.builders import CLUSTER, NOW, a_job, a_jobset, settings
from tests.contracts.stores import REAL, a_limiter, a_slot, slices
from tpu_slices.adapters.firestore import FirestoreStore
from tpu_slices.adapters.firestore_documents import Snapshot
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import ClaimId, SliceId, WorkloadUid
from tpu_slices.domain.records.limiters import CapacityPool
from tpu_slices.domain.records.queues import FIRST_QUEUES
from tpu_slices.domain.records.workloads import ReportQueue
from tpu_slices.ports.store import Change, Names, Record, SliceStore
from tpu_slices_simulator.fakes.store import FakeStore

pytestmark = REAL

OWNER = a_job().owner.uid
QUEUE = ReportQueue(CLUSTER, namespace="research", first=True)
TOGETHER = Names(
    settings=True,
    slices=[SliceId("tpu-none-0-aaaaaaaaaaaaa-1")],
    claims=[ClaimId("tpu-none-0-aaaaaaaaaaaaa")],
    workloads=[WorkloadUid("uid-0")],
    heartbeat=True,
    limiter=True,
    brake=True,
    slots=True,
)
CALLS: dict[str, Callable[[SliceStore], object]] = {
    "together": lambda store: store.together(CLUSTER, TOGETHER),
    "settings": lambda store: store.settings(CLUSTER),
    "settings_at": lambda store: store.settings_at(settings().path),
    "no settings_at": lambda store: store.settings_at("projects/none"),
    "clusters": lambda store: store.clusters(),
    "workloads": lambda store: store.workloads(CLUSTER, [WorkloadUid("uid-0"), WorkloadUid("uid-9")]),
    "slices": lambda store: store.slices(CLUSTER, [SliceId("tpu-none-0-aaaaaaaaaaaaa-1")]),
    "having": lambda store: store.having(CLUSTER, [ClaimId(f"tpu-none-{index}-aaaaaaaaaaaaa") for index in range(40)]),
    "having none": lambda store: store.having(CLUSTER, []),
    "no slices": lambda store: store.slices(CLUSTER, []),
    "hearing": lambda store: store.hearing(CLUSTER, OWNER),
    "hearing, a part": lambda store: store.hearing(CLUSTER, OWNER, 2),
    "alike": lambda store: [*store.alike(CLUSTER, OWNER, 2)],
    "alike, all": lambda store: [*store.alike(CLUSTER, OWNER, 20)],
    "told_alike": lambda store: store.told_alike(CLUSTER, OWNER, (Phase.QUEUED, Reason.REQUESTED), 2),
    "awaiting_chips": lambda store: store.awaiting_chips(CLUSTER, "", 10),
    "clusters_with_slices": lambda store: store.clusters_with_slices(),
    "slice_count": lambda store: store.slice_count(CLUSTER),
    "due_slices": lambda store: store.due_slices(CLUSTER, NOW, 10),
    "due_slices of a namespace": lambda store: store.due_slices(CLUSTER, NOW, 10, "research"),
    "due_namespaces": lambda store: store.due_namespaces(CLUSTER, NOW, 10),
    "one of due_namespaces": lambda store: store.due_namespaces(CLUSTER, NOW, 1),
    "report_queues": lambda store: store.report_queues(CLUSTER, NOW - timedelta(hours=1)),
    "due_reports": lambda store: store.due_reports(QUEUE, NOW, 10),
    "digests": lambda store: store.digests(CLUSTER),
    "mirror_digest": lambda store: store.mirror_digest(CLUSTER),
    "demand_digests": lambda store: store.demand_digests(CLUSTER),
    "changed_workloads": lambda store: store.changed_workloads(CLUSTER, NOW - timedelta(hours=1), 10),
    "queued_slices": lambda store: store.queued_slices(CLUSTER, 10),
    "awaits_slot": lambda store: store.awaits_slot(CLUSTER),
    "deletions_awaiting_slot": lambda store: store.deletions_awaiting_slot(CLUSTER, 10),
    "creations_awaiting_slot": lambda store: store.creations_awaiting_slot(CLUSTER, *FIRST_QUEUES, 10),
    "creations_in_queue": lambda store: store.creations_in_queue(CLUSTER, "research", "", 10),
    "creations_in_pool": lambda store: store.creations_in_pool(CLUSTER, CapacityPool("none"), 10),
    "live_workloads": lambda store: list(store.live_workloads(CLUSTER)),
    "live_standings": lambda store: list(store.live_standings(CLUSTER)),
    "kept_slices": lambda store: list(store.kept_slices(CLUSTER)),
    "every_slice": lambda store: list(store.every_slice(CLUSTER)),
    "slots": lambda store: store.slots(CLUSTER),
    "limiter": lambda store: store.limiter(CLUSTER),
    "budget": lambda store: store.budget(CLUSTER),
    "chips_bought": lambda store: store.chips_bought(CLUSTER),
    "chips_bought of a namespace": lambda store: store.chips_bought(CLUSTER, "research"),
    "chips_held": lambda store: store.chips_held(CLUSTER),
    "phase_count": lambda store: store.phase_count(CLUSTER, Phase.READY),
    "reason_count": lambda store: store.reason_count(CLUSTER, [Reason.HELD]),
    "oldest_since": lambda store: store.oldest_since(CLUSTER, [Reason.DELETION_REFUSED]),
    "for_reasons": lambda store: store.for_reasons(CLUSTER, [Reason.DELETION_REFUSED], 5),
    "paid_longest": lambda store: store.paid_longest(CLUSTER),
    "wanting": lambda store: store.wanting("demo research v1-abc", 5),
    "offered": lambda store: store.offered("demo research v1-abc", 5),
    "wanting of any": lambda store: store.wanting("demo v1-abc", 5, of_any=True),
    "offered to any": lambda store: store.offered("demo v1-abc", 5, to_any=True),
    "brake": lambda store: store.brake(CLUSTER),
    "unconfirmed_ends": lambda store: store.unconfirmed_ends(CLUSTER, NOW),
    "unconfirmed_ends of a namespace": lambda store: store.unconfirmed_ends(CLUSTER, NOW, "research"),
    "ready_count": lambda store: store.ready_count(CLUSTER, 7),
    "ready_count of a namespace": lambda store: store.ready_count(CLUSTER, 7, "research"),
    "heartbeat": lambda store: store.heartbeat(CLUSTER),
}


class CountingStore(FirestoreStore):
    """Counts what the server answered: documents, those that are not there, and empty answers."""

    billed = 0

    def _read(self, answers: Callable[..., Iterable[Snapshot]]) -> list[Snapshot]:
        found = super()._read(answers)
        self.billed += max(len(found), 1)
        return found

    def _aggregated(self, asked: Any) -> Mapping[str, int]:
        self.billed += 1
        return super()._aggregated(asked)


@pytest.mark.parametrize("stored", [0, 3], ids=["nothing stored", "three of each"])
def test_every_call_of_the_store_is_metered_with_what_firestore_is_asked_for(client: Client, stored: int) -> None:
    real, fake, counts = CountingStore(client), FakeStore(), Counts()
    metered: Any = MeteredStore(fake, counts, [])
    workloads = [a_jobset(uid=WorkloadUid(f"uid-{index}"), next_report_at=NOW) for index in range(stored)]
    slots = [a_slot(index) for index in range(stored)]
    records: list[Record] = [*slices(stored), *workloads, *slots, *[a_limiter()][:stored]]
    for store in (real, fake):
        for record in records:
            store.commit(Change(None, record))
    billed: dict[str, tuple[int, int]] = {}
    for name, call in CALLS.items():
        real.billed, counts[READS] = 0, 0
        call(real)
        call(metered)
        billed[name] = (real.billed, counts[READS])
    assert {name: both for name, both in billed.items() if both[0] != both[1]} == {}


def test_every_call_that_reads_is_metered() -> None:
    named = {name for name in vars(SliceStore) if not name.startswith("_")} - {"commit", "reject"}
    assert named <= CALLS.keys()

"""Both stores, each with a console as operators have it: past the port."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import pytest
from google.cloud.firestore import Client

from tests.builders import CLUSTER, NOW, a_job, a_record
from tpu_slices.domain.model.slices import ClaimId, ClusterId
from tpu_slices.domain.records.awaited import PoolOperation
from tpu_slices.domain.records.limiters import CapacityPool, ConcurrencyLimiter, Slot
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.ports.store import Change, Record, SliceStore, Stored
from tpu_slices.wire.documents import Fields, Key, key_of

ELSEWHERE = ClusterId("elsewhere")
REAL = [pytest.mark.emulators, pytest.mark.enable_socket]


class Console(Protocol):
    """What operators see and edit, past the port."""

    def put_document(self, place: Key, fields: Fields) -> None: ...

    def document(self, place: Key) -> Fields | None: ...


@dataclass(frozen=True, slots=True)
class FirestoreConsole:
    client: Client

    def put_document(self, place: Key, fields: Fields) -> None:
        self.client.document(place.collection, place.id).set(fields)

    def document(self, place: Key) -> Fields | None:
        return self.client.document(place.collection, place.id).get().to_dict()


@dataclass(frozen=True, slots=True)
class Bench:
    store: SliceStore
    console: Console

    def create(self, *records: Record) -> None:
        self.store.commit(*(Change(None, record) for record in records))

    def edit(self, record: Record, **fields: Any) -> None:
        """Change fields of a record's document, as an operator would."""
        place = key_of(record)
        self.console.put_document(place, {**(self.console.document(place) or {}), **fields})

    def jobset(self, record: WorkloadRecord) -> Stored[WorkloadRecord]:
        return self.store.workloads(record.cluster, [record.owner.uid])[record.owner.uid]

    def slice(self, record: SliceRecord) -> Stored[SliceRecord]:
        return self.store.slices(record.cluster, [record.id])[record.id]


def a_slot(number: int = 0, **changes: Any) -> Slot:
    fields: dict[str, Any] = {
        "cluster": CLUSTER,
        "number": number,
        "slice_id": ClaimId(f"tpu-other-{number}-aaaaaaaaaaaaa"),
        "namespace": "research",
        "operation": PoolOperation.CREATE,
        "attempt": 1,
        "capacity_pool": CapacityPool("us-central2-b/tpu-v4-podslice/ON_DEMAND"),
        "taken_at": NOW,
    }
    return Slot(**{**fields, **changes})


def a_limiter(**changes: Any) -> ConcurrencyLimiter:
    return ConcurrencyLimiter(**{"cluster": CLUSTER, "limit": 5, "changed_at": NOW, "shortages": {}, **changes})


def slices(count: int, **changes: Any) -> list[SliceRecord]:
    """Return slices of Jobs 0, 1, … in the order of their documents' names."""
    records = [a_record(job=a_job(job_index=index), **changes) for index in range(count)]
    return sorted(records, key=lambda record: record.id)

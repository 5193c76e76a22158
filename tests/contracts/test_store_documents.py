"""The documents and errors of every `SliceStore`: the fake, and the real one on the Firestore emulator."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from google.cloud.firestore import Client

from tests.builders import CLUSTER, NOW, a_jobset, a_record, settings
from tests.contracts.stores import ELSEWHERE, Bench
from tpu_slices.adapters.firestore import FirestoreStore
from tpu_slices.domain.records.heartbeats import RelayHeartbeat
from tpu_slices.domain.records.limiters import Budget, ConcurrencyLimiter
from tpu_slices.domain.records.rejected import RejectedMessage
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.store import Change, Record
from tpu_slices.wire.cluster_settings import encode_settings, settings_key
from tpu_slices.wire.documents import encode, key_of, rejection_key


def test_settings_are_read_as_written_and_every_edit_has_another_version(bench: Bench) -> None:
    assert bench.store.settings(CLUSTER) is None
    assert bench.store.clusters() == ()

    bench.console.put_document(settings_key(CLUSTER), encode_settings(settings()))
    bench.console.put_document(settings_key(ELSEWHERE), {"path": "elsewhere"})
    first = bench.store.settings(CLUSTER)
    bench.console.put_document(settings_key(CLUSTER), encode_settings(settings(zone="us-central2-c")))
    second = bench.store.settings(CLUSTER)

    assert first is not None
    assert second is not None
    assert first == settings(version=first.version)
    assert second == settings(version=second.version, zone="us-central2-c")
    assert first.version != second.version
    assert bench.store.clusters() == (CLUSTER, ELSEWHERE)
    with pytest.raises(Permanent, match="path: Invalid value: 'elsewhere'"):
        bench.store.settings(ELSEWHERE)


def test_a_message_that_is_rejected_twice_has_one_document(bench: Bench) -> None:
    rejection = RejectedMessage(
        message_id="projects/p:1", source="facts-demo", rejected_at=NOW, error="no kind", data="{}"
    )
    bench.store.reject(rejection)
    bench.store.reject(replace(rejection, error="still no kind"))

    document = bench.console.document(rejection_key(rejection))
    assert document is not None
    assert document["error"] == "still no kind"
    assert document["expire_at"] > NOW


def test_a_document_that_lacks_a_field_is_written_whole(bench: Bench) -> None:
    """An older version wrote it, or somebody took the field away: a query would not find it by that field."""
    bench.create(a_record())
    whole = bench.console.document(key_of(a_record())) or {}
    lacking = {name: whole[name] for name in whole if name != "slot_awaited"}
    bench.console.put_document(key_of(a_record()), lacking)
    stored = bench.slice(a_record())
    bench.store.commit(Change(stored, replace(stored.value, note="seen")))
    assert bench.console.document(key_of(a_record())) == {**whole, "note": "seen"}


def test_a_record_that_is_written_as_it_was_stays_as_it_was(bench: Bench) -> None:
    """A heartbeat that comes late changes nothing, and Firestore takes no update without a field."""
    heartbeat = RelayHeartbeat(cluster=CLUSTER, received_at=NOW, count=3)
    bench.create(heartbeat)
    stored = bench.store.heartbeat(CLUSTER)
    assert stored is not None
    bench.store.commit(Change(stored, stored.value))
    again = bench.store.heartbeat(CLUSTER)
    assert again is not None
    assert again.value == heartbeat


def test_documents_hold_native_times_and_maps(bench: Bench) -> None:
    bench.create(a_record(), a_jobset())

    document = bench.console.document(key_of(a_record())) or {}
    demand = (bench.console.document(key_of(a_jobset())) or {})["demand"]

    assert document == encode(a_record())
    assert isinstance(document["next_reconcile_at"], datetime)
    assert isinstance(document["spec"], dict)
    assert all(isinstance(at, datetime) for at in demand.values())


SINGLE = [
    RelayHeartbeat(cluster=CLUSTER, received_at=NOW, count=3),
    ConcurrencyLimiter(cluster=CLUSTER, limit=2, changed_at=NOW, shortages={}),
    Budget(cluster=CLUSTER, creations=9, changed_at=NOW),
]


@pytest.mark.parametrize("record", SINGLE, ids=lambda record: type(record).__name__)
def test_a_record_of_which_a_cluster_has_one_is_new_if_it_cannot_be_read(bench: Bench, record: Record) -> None:
    bench.create(record)
    bench.edit(record, schema=99)
    read = {RelayHeartbeat: bench.store.heartbeat, ConcurrencyLimiter: bench.store.limiter, Budget: bench.store.budget}

    found: Any = read[type(record)](CLUSTER)
    assert (type(found.value), found.value.cluster) == (type(record), CLUSTER)
    assert found.value != record
    bench.store.commit(Change(found, record))
    written: Any = read[type(record)](CLUSTER)
    assert written.value == record


@pytest.mark.emulators
@pytest.mark.enable_socket
def test_times_are_read_as_datetimes_of_the_standard_library(client: Client) -> None:
    store = FirestoreStore(client)
    store.commit(Change(None, a_jobset()))
    jobset = store.workloads(CLUSTER, [a_jobset().owner.uid])[a_jobset().owner.uid].value

    assert type(jobset.last_seen_at) is datetime
    assert [type(at) for at in jobset.demand.values()] == [datetime]


@pytest.mark.emulators
@pytest.mark.enable_socket
def test_a_record_too_large_to_store_is_a_permanent_error(client: Client) -> None:
    with pytest.raises(Permanent, match="Firestore"):
        FirestoreStore(client).commit(Change(None, a_record(note="x" * 1_100_000)))


@pytest.mark.enable_socket
@pytest.mark.slow
def test_an_unreachable_firestore_is_a_temporary_error_within_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", "127.0.0.1:1")
    client = Client(project="nobody")
    store = FirestoreStore(client, timeout=0.3)

    for call in (
        lambda: store.settings(CLUSTER),
        lambda: store.due_slices(CLUSTER, NOW, 1),
        lambda: next(store.live_workloads(CLUSTER)),
        lambda: store.commit(Change(None, a_record())),
    ):
        with pytest.raises(Temporary, match="Firestore"):
            call()
    client.close()  # type: ignore[no-untyped-call]  # the client's own gap

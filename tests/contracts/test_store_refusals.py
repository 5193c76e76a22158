"""What no `SliceStore` stores, and what it makes of times: the fake, and the real one on the Firestore emulator."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from google.api_core.exceptions import InvalidArgument
from google.cloud.firestore import Client

from tests.builders import CLUSTER, NOW, a_job, a_jobset, a_record, a_spec, settings
from tests.contracts.stores import REAL, Bench
from tpu_slices.adapters.firestore_settings import FirestoreSettings
from tpu_slices.domain.model.slices import ClaimId, ClusterId, WorkloadUid
from tpu_slices.ports.errors import Permanent
from tpu_slices.ports.settings_store import SettingsStore
from tpu_slices.ports.store import Change
from tpu_slices.wire.documents import Key
from tpu_slices_simulator.fakes.firestore_rules import NAME_BYTES
from tpu_slices_simulator.fakes.settings import FakeSettings
from tpu_slices_simulator.fakes.store import FakeStore

HALF = "\ud800"
"""One half of a surrogate pair, which UTF-8 cannot hold."""
PLACE = Key("things", "one")


def deep(levels: int) -> dict[str, Any]:
    """Return maps in maps."""
    return {"in": deep(levels - 1)} if levels else {}


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(a_record(note="x" * 1_100_000), id="a megabyte"),
        pytest.param(a_record(note="é" * 530_000), id="a megabyte of bytes"),
        pytest.param(a_record(failures=2**63), id="64 bits and a sign"),
        pytest.param(a_record(failures=-(2**63) - 1), id="64 bits below zero"),
        pytest.param(a_record(note=HALF), id="no text"),
        pytest.param(a_jobset(demand={ClaimId(HALF): NOW}), id="a name that is no text"),
        pytest.param(a_record(spec=a_spec(node_labels=(("__x__", "1"),))), id="a reserved name"),
        pytest.param(a_record(spec=a_spec(node_labels=(("", "1"),))), id="an empty name"),
        pytest.param(a_record(spec=a_spec(node_labels=(("k" * (NAME_BYTES + 1), "1"),))), id="a long name"),
        pytest.param(a_jobset(uid=WorkloadUid("a/b")), id="a slash in an ID"),
        pytest.param(a_jobset(uid=WorkloadUid("a/b/c")), id="the ID of a document in a document"),
        pytest.param(a_jobset(uid=WorkloadUid("u" * NAME_BYTES)), id="a long ID"),
        pytest.param(a_jobset(uid=WorkloadUid(HALF)), id="an ID that is no text"),
    ],
)
def test_a_record_that_cannot_be_stored_is_a_permanent_error(bench: Bench, record: Any) -> None:
    with pytest.raises(Permanent):
        bench.store.commit(Change(None, a_record(job=a_job(job_index=7))), Change(None, record))
    assert list(bench.store.every_slice(CLUSTER)) == []
    assert list(bench.store.live_workloads(CLUSTER)) == []


@pytest.mark.parametrize("changes", [{"note": "x" * 1_100_000}, {"failures": 2**63}, {"note": HALF}])
def test_a_record_is_not_changed_to_one_that_cannot_be_stored(bench: Bench, changes: dict[str, Any]) -> None:
    bench.create(a_record())
    with pytest.raises(Permanent):
        bench.store.commit(Change(bench.slice(a_record()), a_record(**changes)))
    assert bench.slice(a_record()).value == a_record()


@pytest.mark.parametrize("name", ["a/b", "a/b/c", "", HALF, "x" * (NAME_BYTES + 1)])
def test_a_name_that_no_document_can_have_is_not_looked_for(bench: Bench, name: str) -> None:
    with pytest.raises(Permanent):
        bench.store.workloads(ClusterId(name), [WorkloadUid(name or "/")])
    with pytest.raises(Permanent):
        bench.store.settings(ClusterId(name))


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"a": [[1]]}, id="an array in an array"),
        pytest.param({"a": [{"b": [[1]]}]}, id="an array in an array in a map"),
        pytest.param({"a": deep(20)}, id="maps nested too deep"),
        pytest.param({"": 1}, id="an empty name"),
        pytest.param({"__x__": 1}, id="a reserved name"),
        pytest.param({"x" * (NAME_BYTES + 1): 1}, id="a long name"),
        pytest.param({"a": {"__x__": 1}}, id="a reserved name in a map"),
        pytest.param({"a": {1: 1}}, id="a number as a name"),
        pytest.param({"a": [1] * 140_000}, id="a megabyte of numbers"),
        pytest.param({"a": 2**63}, id="64 bits and a sign"),
        pytest.param({"a": HALF}, id="no text"),
        pytest.param({"a": timedelta(seconds=1)}, id="a type that it has not"),
    ],
)
def test_a_document_that_cannot_be_stored_is_not_written(bench: Bench, fields: dict[str, Any]) -> None:
    with pytest.raises((Permanent, InvalidArgument, ValueError, TypeError)):
        bench.console.put_document(PLACE, fields)
    assert bench.console.document(PLACE) is None


def test_a_document_at_the_limits_is_stored(bench: Bench) -> None:
    fields = {"a": deep(19), "x" * NAME_BYTES: 2**63 - 1, "__": -(2**63), "t": "é" * 500_000, "n": "\0", "x.`y/": [{}]}
    bench.console.put_document(PLACE, fields)
    assert bench.console.document(PLACE) == fields


def test_a_time_is_read_in_utc_whatever_its_zone_was(bench: Bench) -> None:
    noon = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
    for written in (noon, noon.astimezone(timezone(timedelta(hours=5))), noon.replace(tzinfo=None)):
        bench.console.put_document(PLACE, {"at": [written]})
        (read,) = (bench.console.document(PLACE) or {})["at"]
        assert read == noon
        assert read.utcoffset() == timedelta(0)


def test_a_commit_may_have_more_than_five_hundred_writes(bench: Bench) -> None:
    bench.create(*(a_jobset(uid=WorkloadUid(f"uid-{number}"), demand={}) for number in range(501)))
    assert len(bench.store.workloads(CLUSTER, [WorkloadUid("uid-0"), WorkloadUid("uid-500")])) == 2


@pytest.mark.parametrize("id_", ["", ".", "..", "a/b", "__x__", "__a\nb__", "x" * (NAME_BYTES + 1), "é" * 751, HALF])
def test_an_id_that_no_document_can_have_is_none(id_: str) -> None:
    with pytest.raises(Permanent, match="Firestore accepts no document of this ID"):
        Key("things", id_)


@pytest.mark.emulators
@pytest.mark.enable_socket
@pytest.mark.parametrize("id_", ["", ".", "..", "a/b", "__x__", "__a\nb__", "x" * (NAME_BYTES + 1), "é" * 751, HALF])
def test_firestore_accepts_no_such_id_either(client: Client, id_: str) -> None:
    with pytest.raises((InvalidArgument, ValueError)):
        client.document("things", id_).set({"a": 1})


@pytest.mark.parametrize("id_", ["x" * NAME_BYTES, "é" * 750, "_x_", "__x", "a.b", "...", "a b", "%2F"])
def test_every_other_id_is_accepted(bench: Bench, id_: str) -> None:
    bench.console.put_document(Key("things", id_), {"a": 1})
    assert bench.console.document(Key("things", id_)) == {"a": 1}


@pytest.fixture(params=["fake", pytest.param("firestore", marks=REAL)])
def written(request: pytest.FixtureRequest) -> SettingsStore:
    if request.param == "fake":
        return FakeSettings(FakeStore())
    return FirestoreSettings(request.getfixturevalue("client"))


@pytest.mark.parametrize("note", ["x" * 1_100_000, HALF])
def test_settings_that_cannot_be_stored_are_a_permanent_error(written: SettingsStore, note: str) -> None:
    with pytest.raises(Permanent):
        written.write(CLUSTER, {"path": settings().path, "note": note}, None)
    assert written.read(CLUSTER).document is None

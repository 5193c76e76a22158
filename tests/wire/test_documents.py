from __future__ import annotations

from dataclasses import fields, replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import NOW, a_job, a_jobset, a_record
from tests.properties import at_most
from tests.wire.values import values_of
from tpu_slices.domain.model.slices import LAST_ATTEMPT
from tpu_slices.domain.records.heartbeats import RelayHeartbeat
from tpu_slices.domain.records.limiters import Budget, ConcurrencyLimiter, Slot
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.domain.reporting.reports import report
from tpu_slices.domain.reporting.waits import QueueState
from tpu_slices.ports.errors import Permanent
from tpu_slices.ports.store import Record
from tpu_slices.wire.documents import SCHEMA, decode, encode, encode_change, key_of

KINDS = (WorkloadRecord, SliceRecord, Slot, ConcurrencyLimiter, Budget, RelayHeartbeat)
NATIVE = (str, int, bool, datetime, dict, list, type(None))


def parts_of(value: Any) -> list[Any]:
    """Return every value in a document, at any depth."""
    match value:
        case dict():
            return [value, *value, *(part for member in value.values() for part in parts_of(member))]
        case list():
            return [value, *(part for member in value for part in parts_of(member))]
        case _:
            return [value]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@at_most(25)
@given(data=st.data())
def test_every_record_is_decoded_unchanged(kind: type[Record], data: st.DataObject) -> None:
    record = data.draw(values_of(kind))

    assert decode(kind, encode(record)) == record


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@at_most(25)
@given(data=st.data())
def test_a_change_on_top_of_what_is_there_is_the_whole_document(kind: type[Record], data: st.DataObject) -> None:
    record, other = data.draw(values_of(kind)), data.draw(values_of(kind))
    changed = data.draw(st.sets(st.sampled_from([field.name for field in fields(kind)])))
    after = replace(record, **{name: getattr(other, name) for name in changed})

    assert {**encode(record), **encode_change(record, after)} == encode(after)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_a_document_holds_only_what_firestore_can_hold(kind: type[Record], data: st.DataObject) -> None:
    parts = parts_of(encode(data.draw(values_of(kind))))

    assert {type(part) for part in parts} <= set(NATIVE)
    assert not [part for part in parts if isinstance(part, list) and any(isinstance(member, list) for member in part)]


def test_every_documents_key_has_its_cluster_and_id() -> None:
    assert str(key_of(a_jobset())) == "workloads/demo.uid-llama"
    assert str(key_of(a_record())) == "slices/demo.tpu-llama-slice-0-oahqlz77blgqd-1"
    assert (
        str(key_of(ConcurrencyLimiter(cluster=a_job().cluster, limit=5, changed_at=NOW, shortages={})))
        == "limiters/demo"
    )
    assert str(key_of(RelayHeartbeat(cluster=a_job().cluster, received_at=NOW))) == "heartbeats/demo"


def test_a_slice_whose_attempts_are_used_up_can_still_be_written() -> None:
    record = a_record(attempt=LAST_ATTEMPT + 1)

    assert encode(record)["pool"] is None
    assert decode(SliceRecord, encode(record)) == record


def test_an_older_document_without_the_later_fields_has_their_defaults() -> None:
    document = encode(a_record())
    del document["announced_count"], document["claim"]["rebuild_allowed"], document["claim"]["earlier"]

    assert decode(SliceRecord, document) == a_record()


def test_unknown_fields_are_ignored() -> None:
    document = encode(a_record())
    document["colour"] = "blue"
    document["spec"]["rack"] = 7

    assert decode(SliceRecord, document) == a_record()


@pytest.mark.parametrize("schema", [SCHEMA + 1, 0, None, "1", True])
def test_a_document_of_another_schema_is_an_error(schema: object) -> None:
    with pytest.raises(Permanent, match=r"schema: .* deploy the newer provisioner"):
        decode(SliceRecord, {**encode(a_record()), "schema": schema})


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ({"phase": "REDY"}, "phase: "),
        ({"spec": {**encode(a_record())["spec"], "topology": "4by4"}}, '"4by4" is not a topology'),
        ({"spec": {**encode(a_record())["spec"], "node_labels": "none"}}, "spec.node_labels: "),
        ({"spec": "none"}, "spec: "),
        ({"transitions": [{"at": NOW}]}, r"transitions\.0\.phase: "),
        ({"hold": "perhaps"}, "hold: "),
    ],
)
def test_a_mistake_in_the_console_is_named_by_its_field(mistake: dict[str, Any], message: str) -> None:
    with pytest.raises(Permanent, match=f"SliceRecord: .*{message}"):
        decode(SliceRecord, {**encode(a_record()), **mistake})


def test_an_unreadable_report_is_left_out_and_the_jobset_is_read_all_the_same() -> None:
    made = report(a_jobset(), [a_record()], QueueState(), NOW)
    document = encode(a_jobset(report=made, queue="team-a"))
    edited = {**document, "report": {**document["report"], "reason": "SlicesDreaming"}}
    read = decode(WorkloadRecord, edited)
    assert (read.report, read.queue) == (None, "team-a")
    assert decode(WorkloadRecord, document).report == made

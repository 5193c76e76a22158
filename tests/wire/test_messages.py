import json
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from traceback import format_exception
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import a_jobset_ref
from tests.wire.values import claim_ids, values_of
from tpu_slices.domain.model.facts import (
    Fact,
    Heartbeat,
    SlicesWanted,
    TemplateRequest,
    WaitingLeader,
    WorkloadChanged,
    WorkloadState,
)
from tpu_slices.domain.model.notifications import Notification
from tpu_slices.domain.model.questions import AnyQuestion
from tpu_slices.domain.model.slices import ClaimId, ClusterId, WorkloadUid
from tpu_slices.domain.records.transitions import Transition
from tpu_slices.ports.errors import Permanent
from tpu_slices.ports.publisher import (
    MirrorChanged,
    MirrorConfirmed,
    MirrorListed,
    NodeGroupUpdate,
    SliceUpdate,
    WorkloadUpdate,
)
from tpu_slices.wire.messages import (
    MOST_BYTES,
    VERSION,
    EchoRequest,
    JoinRequest,
    Message,
    ReconcileRequest,
    bytes_of,
    decode_fact,
    decode_notification,
    decode_reconcile_request,
    decode_update,
    encode_echo_request,
    encode_fact,
    encode_join_request,
    encode_mirror,
    encode_node_group,
    encode_notification,
    encode_question,
    encode_reconcile_request,
    encode_report,
    encode_update,
)

DEMO = ClusterId("demo")
EVENTS = Path(__file__).parents[1] / "events"
FACTS = [
    "slices_wanted",
    "slice_declared",
    "workload_changed",
    "hosts_changed",
    "heartbeat",
    "listed",
    "answer",
    "echo",
    "join/token",
]

facts: st.SearchStrategy[Fact] = values_of(Fact)
questions: st.SearchStrategy[AnyQuestion] = values_of(AnyQuestion)
TIMES = st.datetimes(timezones=st.just(UTC))
transitions = st.builds(Transition, at=TIMES)


def golden(name: str) -> Message:
    event = json.loads((EVENTS / f"{name}.json").read_text())
    return Message(json.dumps(event["data"]).encode(), event["attributes"])


def same_bytes(ours: Message, recorded: Message) -> bool:
    return (json.loads(ours.data), dict(ours.attributes)) == (json.loads(recorded.data), dict(recorded.attributes))


def with_data(message: Message, **changes: Any) -> bytes:
    return json.dumps({**json.loads(message.data), **changes}).encode()


@given(facts)
def test_a_fact_is_decoded_unchanged(fact: Fact) -> None:
    message = encode_fact(fact)
    assert decode_fact(message.data, message.attributes) == fact


@given(st.builds(SliceUpdate, transition=transitions))
def test_an_update_is_decoded_unchanged(update: SliceUpdate) -> None:
    message = encode_update(DEMO, update)
    assert decode_update(message.data, message.attributes) == update
    assert message.attributes["cluster"] == DEMO


@given(st.builds(NodeGroupUpdate, at=st.datetimes(timezones=st.just(UTC))))
def test_the_status_of_a_node_group_is_decoded_unchanged(update: NodeGroupUpdate) -> None:
    message = encode_node_group(DEMO, update)
    assert decode_update(message.data, message.attributes) == update
    assert message.attributes["cluster"] == DEMO


@given(values_of(Notification))
def test_a_notification_is_decoded_unchanged(notification: Notification) -> None:
    message = encode_notification(notification)
    assert decode_notification(message.data, message.attributes) == notification
    assert (message.attributes["cluster"], message.attributes["target"]) == (notification.cluster, notification.target)


@given(questions)
def test_a_question_is_decoded_unchanged(question: AnyQuestion) -> None:
    message = encode_question(DEMO, question)
    assert decode_update(message.data, message.attributes) == question
    assert message.attributes["cluster"] == DEMO


@given(claim_ids, st.none() | st.uuids().map(str).map(WorkloadUid))
def test_a_reconcile_request_is_decoded_unchanged(slice_: ClaimId, waiting: WorkloadUid | None) -> None:
    message = encode_reconcile_request(DEMO, slice_, waiting)
    assert decode_reconcile_request(message.data, message.attributes) == ReconcileRequest(DEMO, slice_, waiting=waiting)


@pytest.mark.parametrize("name", FACTS)
def test_the_recorded_form_of_a_fact_is_read_and_written(name: str) -> None:
    recorded = golden(name)
    fact = decode_fact(recorded.data, recorded.attributes)
    assert same_bytes(encode_fact(fact), recorded)


def test_the_recorded_form_of_a_reconcile_request_is_read_and_written() -> None:
    recorded = golden("reconcile_request")
    request = decode_reconcile_request(recorded.data, recorded.attributes)
    assert isinstance(request, ReconcileRequest)
    assert same_bytes(encode_reconcile_request(request.cluster, request.slice_id), recorded)


def test_the_recorded_form_of_an_echo_request_is_read_and_written() -> None:
    recorded = golden("echo_request")
    request = decode_reconcile_request(recorded.data, recorded.attributes)
    assert isinstance(request, EchoRequest)
    assert same_bytes(encode_echo_request(request.cluster, request.asked_at), recorded)


def test_the_recorded_form_of_a_join_request_is_read_and_written() -> None:
    recorded = golden("join/request")
    request = decode_reconcile_request(recorded.data, recorded.attributes)
    assert isinstance(request, JoinRequest)
    assert same_bytes(encode_join_request(request.cluster, request.token), recorded)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"token": "MARKER"}, "JoinToken: token: must be a bootstrap token"),
        ({"token": ["MARKER"]}, "JoinToken: token: Input should be a valid string"),
        ({"ca_hashes": []}, "JoinToken: ca_hashes: must be 1 to 20 of the form sha256:HASH"),
        ({"ca_hashes": ["MARKER"]}, "JoinToken: ca_hashes: must be 1 to 20 of the form sha256:HASH"),
    ],
)
def test_a_token_that_is_none_is_refused_without_it(changes: dict[str, Any], told: str) -> None:
    recorded = golden("join/token")
    with pytest.raises(Permanent) as refused:
        decode_fact(with_data(recorded, **changes), recorded.attributes)
    assert str(refused.value) == told
    assert "MARKER" not in "".join(format_exception(refused.value))


@pytest.mark.parametrize(
    "name",
    [
        "slice_update",
        "node_group_update",
        "workload_update",
        "question",
        "list_question",
        "hosts_question",
        "nodes_expected",
        "nodes_gone",
        "repeat_question",
        "echo_question",
        "join/question",
        "join/ended",
        "mirror/changed",
        "mirror/listed",
        "mirror/confirmed",
    ],
)
def test_the_recorded_form_of_a_message_to_the_relay_is_read_and_written(name: str) -> None:
    recorded = golden(name)
    match decode_update(recorded.data, recorded.attributes):
        case SliceUpdate() as update:
            assert same_bytes(encode_update(DEMO, update), recorded)
        case WorkloadUpdate() as report:
            assert same_bytes(encode_report(DEMO, report), recorded)
        case NodeGroupUpdate() as status:
            assert same_bytes(encode_node_group(DEMO, status), recorded)
        case MirrorChanged() | MirrorListed() | MirrorConfirmed() as told:
            assert same_bytes(encode_mirror(DEMO, told), recorded)
        case question:
            assert same_bytes(encode_question(DEMO, question), recorded)


def test_an_unknown_field_is_ignored() -> None:
    recorded = golden("hosts_changed")
    data = with_data(recorded, colour="blue")
    assert decode_fact(data, recorded.attributes) == decode_fact(recorded.data, recorded.attributes)


@pytest.mark.parametrize(
    ("attributes", "data", "message"),
    [
        ({"kind": "Greeting", "version": VERSION}, b"{}", 'kind: "Greeting" is not one of SlicesWanted, '),
        ({"version": VERSION}, b"{}", 'kind: "" is not one of'),
        ({"kind": "Heartbeat", "version": "9"}, b"{}", f'version: "9" is not supported, only "{VERSION}"'),
        ({"kind": "Heartbeat"}, b"{}", 'version: "" is not supported'),
        ({"kind": "Heartbeat", "version": VERSION}, b"{", "Heartbeat: data: Invalid JSON"),
        ({"kind": "Heartbeat", "version": VERSION}, b"\xff", "Heartbeat: data: Invalid JSON"),
        ({"kind": "Heartbeat", "version": VERSION}, b"[]", "Heartbeat: data: "),
        ({"kind": "Heartbeat", "version": VERSION}, b"{}", "Heartbeat: count: Field required$"),
        (
            {"kind": "Heartbeat", "version": VERSION},
            b'{"count": "1", "digests": {}}',
            "Heartbeat: count: Input should be",
        ),
        (
            {"kind": "Heartbeat", "version": VERSION},
            b" " * (MOST_BYTES + 1),
            "data: 1000001 bytes: a message may have at most",
        ),
    ],
)
def test_a_malformed_message_is_an_error_that_names_the_field(
    attributes: dict[str, str], data: bytes, message: str
) -> None:
    with pytest.raises(Permanent, match=message):
        decode_fact(data, attributes)


def test_a_nested_field_is_named_with_its_path() -> None:
    recorded = golden("slices_wanted")
    data = with_data(recorded, waiting=[{"replicated_job": "workers", "job_index": "0"}])
    with pytest.raises(Permanent, match=r"SlicesWanted: waiting\.0\.job_index: "):
        decode_fact(data, recorded.attributes)


def test_demand_from_an_older_relay_is_read() -> None:
    recorded = golden("slices_wanted")
    recorded_data = json.loads(recorded.data)
    (request,) = recorded_data["requests"]
    since_then = (
        "affinity",
        "tolerations",
        "cpu_milli",
        "memory_bytes",
        "labels",
        "requested_annotations",
        "exclusive_nodes",
        "volumes",
        "ephemeral_bytes",
        "unoffered",
        "parallelism",
        "completions",
        "exclusive_topology",
        "slicing",
        "first_job",
        "pod_rules",
    )
    former = {key: value for key, value in request.items() if key not in since_then}
    leaders = [{key: leader[key] for key in ("replicated_job", "job_index")} for leader in recorded_data["waiting"]]
    assert set(former) < set(request)
    fact = decode_fact(with_data(recorded, requests=[former], waiting=leaders), recorded.attributes)
    assert isinstance(fact, SlicesWanted)
    former["node_selector"] = tuple(map(tuple, former["node_selector"]))
    assert fact.requests == (TemplateRequest(**former),)
    assert fact.waiting == tuple(WaitingLeader(**leader) for leader in leaders)


def test_a_heartbeat_of_an_older_relay_compares_nothing() -> None:
    recorded = golden("heartbeat")
    data = json.dumps({"count": 1, "digest": "0f3a5c7e9b1d2f40", "hosts_digest": 190417361045281, "first": True})
    assert decode_fact(data.encode(), recorded.attributes) == Heartbeat(count=1, digests={}, first=True)


def test_bytes_of_a_part_are_what_it_adds_to_a_message() -> None:
    recorded = golden("slices_wanted")
    fact = decode_fact(recorded.data, recorded.attributes)
    assert isinstance(fact, SlicesWanted)
    more = replace(fact, requests=(*fact.requests, fact.requests[0]), waiting=(*fact.waiting, fact.waiting[0]))
    added = bytes_of(fact.requests[0]) + bytes_of(fact.waiting[0]) + len(",,")
    assert len(encode_fact(more).data) == len(encode_fact(fact).data) + added


def test_an_unknown_state_is_an_error() -> None:
    recorded = golden("workload_changed")
    with pytest.raises(Permanent, match=r"WorkloadChanged: state: Input should be 'ACTIVE'"):
        decode_fact(with_data(recorded, state="DREAMING"), recorded.attributes)


def test_a_message_too_large_to_be_read_cannot_be_written() -> None:
    with pytest.raises(ValueError, match=r"WorkloadChanged has .* at most 1000000"):
        encode_fact(WorkloadChanged(workload=a_jobset_ref(), state=WorkloadState.ACTIVE, queue="q" * MOST_BYTES))

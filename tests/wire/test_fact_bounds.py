"""What a message may say at most: whatever a forged one says beyond that is refused by its field, and never stored."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.messages import LEADERS_BYTES, parts_of
from tests.builders import a_jobset_ref, a_leader, a_request, leaders_wait
from tests.wire.test_messages import golden
from tests.world import World
from tpu_slices.app import handlers
from tpu_slices.app.handlers import Event
from tpu_slices.domain.model.facts import Answer, WorkloadState
from tpu_slices.domain.model.slices import SLICES_PER_WORKLOAD
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.bounds import KEYS_PER_PART, LEADERS_PER_FACT
from tpu_slices.wire.messages import VERSION, Message, decode_fact, decode_reconcile_request, encode_fact

A_TEMPLATE = {"replicated_job": "s", "replicas": 1, "accelerator": None, "topology": None, "chips_per_pod": 4}
BEYOND: list[tuple[str, str, object]] = [
    ("slices_wanted", "workload.owner.name", "n" * 900_000),
    ("slices_wanted", "workload.owner.name", ""),
    ("slices_wanted", "workload.owner.name", "a/b"),
    ("slices_wanted", "workload.owner.namespace", "n" * 64),
    ("slices_wanted", "workload.owner.namespace", "../default"),
    ("slices_wanted", "workload.owner.uid", "a/b"),
    ("slices_wanted", "workload.owner.uid", "__x__"),
    ("slices_wanted", "workload.owner.uid", "."),
    ("slices_wanted", "workload.owner.uid", ""),
    ("slices_wanted", "workload.owner.uid", "u" * 64),
    ("slices_wanted", "workload.generation", -1),
    ("slices_wanted", "workload.generation", 2**63),
    ("slices_wanted", "workload.resource_version", "1" * 254),
    ("slices_wanted", "requests.0.replicated_job", "w" * 64),
    ("slices_wanted", "requests.0.replicas", -1),
    ("slices_wanted", "requests.0.replicas", 1 << 31),
    ("slices_wanted", "requests", [{**A_TEMPLATE, "replicas": SLICES_PER_WORKLOAD + 1}]),
    ("slices_wanted", "requests.0.chips_per_pod", -4),
    ("slices_wanted", "requests.0.chips_per_pod", 2**63),
    ("slices_wanted", "requests.0.cpu_milli", 10**30),
    ("slices_wanted", "requests.0.topology", "4" * 16_385),
    ("slices_wanted", "requests.0.node_selector", [["key", "v" * 16_385]]),
    ("slices_wanted", "requests.0.volumes.0.name", "c" * 254),
    ("slices_wanted", "requests.0.volumes", [{"name": "data", "zones": []}] * 51),
    ("slices_wanted", "waiting.0.replicated_job", "w" * 64),
    ("slices_wanted", "waiting.0.job_index", -1),
    ("slices_wanted", "waiting.0.job_index", 10**9),
    ("slices_wanted", "waiting", [{"replicated_job": "slice", "job_index": 0}] * 9_000),
    ("slices_wanted", "requests", [A_TEMPLATE] * 501),
    ("workload_changed", "queue", "q" * 254),
    ("workload_changed", "notify", "n" * 254),
    ("workload_changed", "template_error", "e" * 1_001),
    ("workload_changed", "unserved", "e" * 1_001),
    ("hosts_changed", "slice_id", "tpu-llama-0-aaaaaaaaaaaaa/x/y"),
    ("hosts_changed", "slice_id", "llama"),
    ("hosts_changed", "slice_id", "tpu-" + "a" * 100_000 + "-aaaaaaaaaaaaa"),
    ("hosts_changed", "attempt", -1),
    ("hosts_changed", "usable", 2**64),
    ("hosts_changed", "joined", -1),
    ("hosts_changed", "sequence", 2**63),
    ("hosts_changed", "occupants.0.pod_uid", "p" * 900_000),
    ("hosts_changed", "occupants.0.replicated_job", "j" * 64),
    ("hosts_changed", "closed", -1),
    ("hosts_changed", "answers", -1),
    ("hosts_changed", "answers", 2**63),
    ("hosts_changed", "highest", -1),
    ("hosts_changed", "highest", 2**63),
    ("heartbeat", "count", -1),
    ("heartbeat", "digests", {"WORKLOADS": -1}),
    ("heartbeat", "digests", {"HOSTS": 2**63}),
    ("listed", "digests", {f"u-{number}": 1 for number in range(KEYS_PER_PART + 1)}),
    ("listed", "digests", {"u" * 64: 1}),
    ("listed", "digests", {"a/b": 1}),
    ("listed", "digests", {"u-1": -1}),
    ("listed", "digests", {"u-1": 2**63}),
    ("listed", "after", "a/b"),
    ("listed", "up_to", ""),
    ("listed", "part", 1_000),
    ("listed", "parts", 0),
    ("listed", "asked_at", "2026-11-01T12:00:00"),
    ("listed", "asked_at", "9999-12-31T23:59:59Z"),
    ("listed", "sequence", 2**63),
]


def altered(name: str, path: str, value: object) -> Message:
    """Return the recorded message with this value at the path."""
    message = golden(name)
    document = json.loads(message.data)
    *way, last = (int(part) if part.isdigit() else part for part in path.split("."))
    inner: Any = document
    for part in way:
        inner = inner[part]
    inner[last] = value
    return Message(json.dumps(document).encode(), message.attributes)


def an_event(message: Message, id_: str = "17") -> Event:
    body = {
        "data": base64.b64encode(message.data).decode(),
        "attributes": dict(message.attributes),
        "messageId": id_,
        "publishTime": "2026-03-01T12:00:00Z",
    }
    return Event(id_, "//pubsub.googleapis.com/projects/p/topics/facts-demo", {"message": body})


@pytest.mark.parametrize(("name", "path", "value"), BEYOND, ids=lambda value: str(value)[:30])
def test_a_fact_beyond_its_bounds_is_kept_aside_and_acknowledged(name: str, path: str, value: object) -> None:
    world = World()
    before = world.store.places()
    handlers.handle_receive(an_event(altered(name, path, value)), world.deps)
    (rejection,) = world.store.rejections.values()
    assert rejection.error.startswith(f"{golden(name).attributes['kind']}: {path}")
    assert "must be" in rejection.error
    assert [str(key) for key in world.store.places() - before] == ["rejected/17"]


def test_a_jobset_of_more_slices_than_a_record_can_hold_is_refused_whatever_its_parts_are() -> None:
    half = SLICES_PER_WORKLOAD // 2
    requests = [a_request(replicas=half, replicated_job=name) for name in ("a", "b")]
    message = encode_fact(leaders_wait(requests=tuple(requests)))
    decode_fact(message.data, message.attributes)
    message = encode_fact(leaders_wait(requests=(*requests, a_request(replicas=1))))
    with pytest.raises(Permanent, match=f"requests: must be of at most {SLICES_PER_WORKLOAD} slices"):
        decode_fact(message.data, message.attributes)


def test_what_the_relay_says_in_one_part_is_within_the_bounds() -> None:
    leaders = [a_leader(index, labels=(("k" * 300, "v" * 3 * index),)) for index in range(999)]
    parts = list(parts_of(leaders))
    assert max(map(len, parts)) == LEADERS_PER_FACT
    for part in parts:
        message = encode_fact(leaders_wait(waiting=part))
        assert len(message.data) < LEADERS_BYTES + 2_000
        assert decode_fact(message.data, message.attributes) == leaders_wait(waiting=part)


@pytest.mark.parametrize(("field", "value"), [("slice_id", "a/b"), ("cluster", "demo/x"), ("cluster", "__x__")])
def test_a_reconcile_request_for_no_slice_is_refused(field: str, value: str) -> None:
    message = altered("reconcile_request", field, value)
    with pytest.raises(Permanent, match=f"ReconcileRequest: {field}: must be"):
        decode_reconcile_request(message.data, message.attributes)


def test_an_answer_about_a_jobset_that_is_gone_is_within_the_bounds() -> None:
    gone = Answer(workload=a_jobset_ref(generation=0, resource_version=""), state=WorkloadState.MISSING)
    message = encode_fact(gone)
    assert decode_fact(message.data, message.attributes) == gone


@pytest.mark.parametrize("id_", ["", ".", "..", "/", "a/b/c", "__x__", "__", "1" * 5_000, "é" * 800, "\ud800", "1\n"])
def test_a_message_that_is_kept_aside_has_a_document_of_its_own_whatever_its_id_is(id_: str) -> None:
    world = World()
    for each in (id_, f"{id_}2"):
        nothing = Message(b"{", golden("heartbeat").attributes)
        handlers.handle_receive(an_event(nothing, each), world.deps)
    rejected = [key for key in world.store.places() if key.collection == "rejected"]
    assert len(rejected) == len({key.id for key in rejected}) == 2


def test_of_a_message_that_is_kept_aside_only_the_beginning_is_stored() -> None:
    world = World()
    message = Message(b"\xff" * 900_000, {"kind": "k" * 900_000, "version": VERSION})
    event = an_event(message, "9" * 900_000)
    handlers.handle_receive(Event(event.id, f"{event.source}{'s' * 900_000}", event.data), world.deps)
    (key,) = (key for key in world.store.places() if key.collection == "rejected")
    assert world.store.size(key) < 20_000


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=50)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=9), inner, max_size=3)),
    max_leaves=8,
)


@pytest.mark.slow
@given(
    name=st.sampled_from(sorted({name for name, *_ in BEYOND})),
    path=st.sampled_from(sorted({path for _, path, _ in BEYOND})),
    value=JSON,
    id_=st.text(max_size=30),
)
def test_no_message_is_answered_with_an_error_that_brings_it_back(
    name: str, path: str, value: object, id_: str
) -> None:
    world = World()
    try:
        message = altered(name, path, value)
    except (KeyError, IndexError):  # the path is another fact's
        message = Message(json.dumps(value).encode(), golden(name).attributes)
    handlers.handle_receive(an_event(message, id_), world.deps)

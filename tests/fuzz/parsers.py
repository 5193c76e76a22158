"""Every parser of what others write, with valid examples of it, and what must hold whatever is written instead.

| parser            | written by                       | it must                                           |
|-------------------|----------------------------------|---------------------------------------------------|
| fact              | the relay, or who forges one     | be refused by a field, or be received             |
| reconcile request | functions                        | be refused by a field, or be worked on            |
| announcement      | functions, to the relay          | be refused by a field, or be read                 |
| push body         | Pub/Sub                          | be refused, or be a message                       |
| audit log entry   | Google's log sink                | be refused by a field, or tell of an operation    |
| settings          | people, builds                   | be refused by a field, or be the same when stored |
| record            | functions, people in the console | be refused by a field, or be worked on and stored |
| object            | tenants                          | be unparseable, or become facts that are accepted |
| manifest          | users of `slices plan`           | be told of in words: no traceback                 |
| labels            | people who edit node pools       | be nobody's, or of the pool's own name            |
| quantity          | tenants                          | be refused, or be a number                        |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import yaml
from click.testing import CliRunner
from hypothesis import strategies as st

from relay.fact_queue import FactQueue
from relay.objects import Kind, Unparseable
from tests.builders import CLUSTER, NOW, a_job, a_spec
from tests.fuzz.trees import TEXTS, Tree, edited, edited_by_type, times_in
from tests.node_groups import SAMPLES
from tests.relay import objects
from tests.relay.node_groups.objects import group
from tests.relay.watched import READERS, kind_of
from tests.wire.test_edited_documents import RECORDS, work_on
from tests.world import World
from tpu_slices.domain.model.slices import ClaimId
from tpu_slices.domain.planning.pool_labels import labels_of, pool_seen
from tpu_slices.flows.joining import hand_on
from tpu_slices.flows.receive import receive
from tpu_slices.flows.reconcile import reconcile
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.cluster_settings import decode_settings, encode_settings
from tpu_slices.wire.documents import decode, encode
from tpu_slices.wire.envelopes import incoming
from tpu_slices.wire.messages import (
    EchoRequest,
    JoinRequest,
    ReconcileRequest,
    decode_fact,
    decode_reconcile_request,
    decode_update,
    encode_fact,
)
from tpu_slices.wire.operations import ended_operation
from tpu_slices.wire.quantities import quantity
from tpu_slices_cli.app import main
from tpu_slices_simulator.relays import due_facts

ROOT = Path(__file__).parents[2]
EVENTS = ROOT / "tests" / "events"


@dataclass(frozen=True, slots=True)
class Parser:
    """`takes` raises what it must not. `examples` are valid; `edits` makes what is tried of them."""

    takes: Callable[[Any], None]
    examples: tuple[Tree, ...]
    edits: Callable[[st.SearchStrategy[Tree]], st.SearchStrategy[Any]] = field(default=edited)

    @property
    def tried(self) -> st.SearchStrategy[Any]:
        return self.edits(st.sampled_from(self.examples))


def _events(*names: str) -> tuple[Tree, ...]:
    return tuple(json.loads((EVENTS / f"{name}.json").read_text()) for name in names)


def _message(event: Any) -> tuple[bytes, Mapping[str, str]]:
    """Return the data and attributes of an edited message; attributes are texts, whoever publishes."""
    event = event if isinstance(event, dict) else {"data": event}
    attributes = event.get("attributes")
    attributes = attributes if isinstance(attributes, dict) else {}
    return json.dumps(event.get("data")).encode(), {str(key): str(value) for key, value in attributes.items()}


def _fact(event: Any) -> None:
    with suppress(Permanent):
        fact = decode_fact(*_message(event))
        receive(fact, CLUSTER, World().deps)


def _reconcile_request(event: Any) -> None:
    with suppress(Permanent):
        match decode_reconcile_request(*_message(event)):
            case ReconcileRequest(cluster, slice_):
                reconcile(cluster, slice_, World().deps)
            case JoinRequest(cluster, token):
                hand_on(token, cluster, World().deps)
            case EchoRequest():
                return


def _announcement(event: Any) -> None:
    with suppress(Permanent):
        decode_update(*_message(event))


def _push_body(body: Any) -> None:
    with suppress(Permanent):
        incoming("//pubsub.googleapis.com/projects/demo-project/topics/facts-demo", body)


def _log_entry(entry: Any) -> None:
    with suppress(Permanent):
        ended_operation(json.dumps(entry).encode())


def _settings(document: Any) -> None:
    if not isinstance(document, dict):
        return  # Firestore has no others, and a file is asked for a map before
    with suppress(Permanent):
        settings = decode_settings(CLUSTER, times_in(document), version="1")
        again = decode_settings(CLUSTER, encode_settings(settings), version="1")
        assert again == settings


def _record(kind: type[Any], document: Any) -> None:
    if not isinstance(document, dict):
        return
    with suppress(Permanent):
        for after in work_on(decode(kind, times_in(document))):
            encode(after)


def _object(valid: Tree, obj: Any) -> None:
    """Let the relay see an object and its edited version, as far as that is JSON; who it is, Kubernetes writes."""
    kind, queue = kind_of(valid), FactQueue(CLUSTER)
    for each in Kind:
        queue.listed(each, [], "1", NOW)
    try:
        written = orjson.loads(json.dumps(_identified(valid, obj)))
    except orjson.JSONDecodeError:
        return
    for version in (valid, written, valid):
        try:
            seen = READERS[kind](version)
        except (KeyError, TypeError, ValueError, AttributeError):  # as relay.watch does
            seen = Unparseable(kind, valid["metadata"]["uid"], "edited")
        if seen is not None:
            queue.saw(seen, NOW)
        for fact in due_facts(queue, NOW):
            message = encode_fact(fact)
            assert decode_fact(message.data, message.attributes) == fact


def _identified(valid: Tree, obj: Any) -> Tree:
    """Return the edited object with what Kubernetes alone writes of its metadata."""
    obj = obj if isinstance(obj, dict) else {}
    metadata = obj.get("metadata")
    known = {key: value for key, value in valid["metadata"].items() if key in OF_KUBERNETES}
    return {**obj, "metadata": {**(metadata if isinstance(metadata, dict) else {}), **known}}


def _manifest(document: Any) -> None:
    text = yaml.safe_dump(document) if isinstance(document, dict) else json.dumps(document)
    planned = CliRunner().invoke(main, ["plan", "-f", "-", "-o", "json"], input=text.encode("utf-8", "surrogatepass"))
    assert planned.exception is None or isinstance(planned.exception, SystemExit), planned.exc_info
    assert planned.exit_code in {0, 2, 3}


def _labels(labels: Any) -> None:
    if not isinstance(labels, dict):
        return
    texts = {str(key): str(value) for key, value in labels.items()}
    for name in (POOL, "default-pool"):
        seen = pool_seen(name, texts, CLUSTER)
        assert seen is None or name.startswith(ClaimId(seen.slice_id))


def _quantity(text: Any) -> None:
    if isinstance(text, str | int | float):
        with suppress(ValueError):
            assert quantity(text) >= 0 or str(text).startswith("-")


def _as_json(document: Mapping[str, Any]) -> Tree:
    """Return a document with texts in place of times."""
    return json.loads(json.dumps(document, default=lambda time: time.isoformat()))


def _manifests() -> Iterator[Tree]:
    for example in sorted((ROOT / "examples").glob("*.yaml")):
        yield from yaml.safe_load_all(example.read_text())
    yield from SAMPLES.values()


JOB = a_job()
LABELS = labels_of(JOB, 3, a_spec())
OF_KUBERNETES = {"name", "namespace", "uid", "generation", "resourceVersion"}
POOL = f"{LABELS['google.com/tpu-slice-id']}-3"
FACTS = (
    *(
        "slices_wanted",
        "slice_declared",
        "workload_changed",
        "hosts_changed",
        "heartbeat",
        "listed",
    ),
    *("answer", "echo"),
)
ANNOUNCED = (
    *("slice_update", "workload_update", "question", "list_question", "hosts_question"),
    *("repeat_question", "echo_question", "node_group_update", "nodes_expected"),
)
OBJECTS: Mapping[str, Tree] = {
    "jobset": objects.jobset(),
    "job": objects.job(),
    "leaderworkerset": objects.leader_worker_set(),
    "tpunodegroup": group(),
    "pod": objects.pod(),
    "pod of a job": objects.job_pod(),
    "node": objects.node(),
}
SETTINGS = tuple(yaml.safe_load(path.read_text()) for path in sorted((ROOT / "infra" / "clusters").glob("*/*.yaml")))
PARSERS: Mapping[str, Parser] = {
    "fact": Parser(_fact, _events(*FACTS)),
    "reconcile request": Parser(_reconcile_request, _events("reconcile_request", "echo_request", "join/request")),
    "announcement": Parser(_announcement, _events(*ANNOUNCED)),
    "push body": Parser(_push_body, _events("push_body", "eventarc_body")),
    "audit log entry": Parser(
        _log_entry, tuple(json.loads(path.read_text()) for path in sorted((EVENTS / "audit_log").glob("*.json")))
    ),
    "settings": Parser(_settings, SETTINGS),
    **{
        f"record: {name}": Parser(
            partial(_record, type(record)), (json.loads(json.dumps(encode(record), default=str)),)
        )
        for name, record in RECORDS.items()
    },
    **{f"object: {name}": Parser(partial(_object, valid), (valid,), edited_by_type) for name, valid in OBJECTS.items()},
    "manifest": Parser(_manifest, tuple(_manifests())),
    "labels": Parser(_labels, (LABELS,)),
    "quantity": Parser(
        _quantity, ("4", "1.5Gi", "100m", "1e3"), lambda valid: valid | st.sampled_from(TEXTS) | st.text()
    ),
}

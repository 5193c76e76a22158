"""How the handlers answer Pub/Sub, and what they keep of messages that can never be handled."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.builders import CLUSTER, MINUTE, NOW, leaders_wait, self_managed, settings
from tests.world import World
from tpu_slices.app import handlers
from tpu_slices.app.handlers import Event
from tpu_slices.domain.model.facts import Heartbeat
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.domain.model.slices import ClusterId, slice_id
from tpu_slices.domain.records.heartbeats import RelayHeartbeat
from tpu_slices.ports.errors import Temporary
from tpu_slices.wire.cluster_settings import settings_key
from tpu_slices.wire.messages import VERSION, Message, encode_fact, encode_reconcile_request

ROOT = Path(__file__).parents[2]


def an_event(topic: str, message: Message, **changes: object) -> Event:
    data = {
        "message": {
            "data": base64.b64encode(message.data).decode(),
            "attributes": dict(message.attributes),
            "messageId": "17",
            "publishTime": "2026-03-01T12:00:00.000Z",
            **changes,
        }
    }
    return Event(id="17", source=f"//pubsub.googleapis.com/projects/demo-project/topics/{topic}", data=data)


def an_ended_operation(pool: str) -> Message:
    entry: Mapping[str, object] = {
        "resource": {
            "type": "gke_nodepool",
            "labels": {
                "project_id": "demo-project",
                "location": "us-central2",
                "cluster_name": "demo",
                "nodepool_name": pool,
            },
        },
        "operation": {"id": "operation-1", "last": True},
        "protoPayload": {"methodName": "google.container.v1.ClusterManager.CreateNodePool"},
    }
    return Message(json.dumps(entry).encode(), {})


def an_ended_step(pool: str) -> Message:
    entry = json.loads((ROOT / "tests" / "events" / "audit_log" / "compute_group_ended.json").read_text())
    payload = entry["protoPayload"]
    payload["resourceName"] = f"{payload['resourceName'].rpartition('/')[0]}/{pool}"
    return Message(json.dumps(entry).encode(), {})


def test_a_received_fact_becomes_a_reconcile_request() -> None:
    world = World()
    handlers.handle_receive(an_event("facts-demo", encode_fact(leaders_wait(0))), world.deps)
    assert [slice_ for _, slice_ in world.publisher.requests] == list(world.records)


@pytest.mark.parametrize(("published", "bought"), [("11:45:00", True), ("11:44:59", False)])
def test_leaders_that_waited_long_before_their_message_came_buy_nothing(published: str, bought: bool) -> None:
    world = World()
    late = an_event("facts-demo", encode_fact(leaders_wait(0)), publishTime=f"2026-03-01T{published}Z")
    handlers.handle_receive(late, world.deps)
    [slice_] = world.records
    handlers.handle_reconcile(an_event("requests-demo", encode_reconcile_request(CLUSTER, slice_)), world.deps)
    assert bool(world.pools) is bought


def test_a_late_message_takes_nothing_back_that_was_told_since() -> None:
    world = World()
    for minute in (55, 40):
        told = an_event("facts-demo", encode_fact(leaders_wait(0)), publishTime=f"2026-03-01T11:{minute}:00Z")
        handlers.handle_receive(told, world.deps)
    [jobset] = world.store.jobset_records(CLUSTER)
    assert [*jobset.demand.values()] == [NOW - 5 * MINUTE]


def test_a_late_heartbeat_does_not_say_that_the_relay_lives() -> None:
    world = World()
    world.store.put(RelayHeartbeat.of(CLUSTER))
    beat = encode_fact(Heartbeat(count=0))
    handlers.handle_receive(an_event("facts-demo", beat, publishTime="2026-03-01T11:50:00Z"), world.deps)
    heartbeat = world.store.heartbeat(CLUSTER)
    assert heartbeat is not None
    assert heartbeat.value.received_at == NOW - 10 * MINUTE
    assert heartbeat.value.relay.silent(NOW)


def test_a_reconcile_request_becomes_a_node_pool() -> None:
    world = World()
    handlers.handle_receive(an_event("facts-demo", encode_fact(leaders_wait(0))), world.deps)
    request_reconcile = encode_reconcile_request(CLUSTER, next(iter(world.records)))
    handlers.handle_reconcile(an_event("requests-demo", request_reconcile), world.deps)
    assert len(world.pools) == 1


def test_an_ended_operation_is_a_reconcile_request_too() -> None:
    world = World()
    jobset = world.jobset_appears()
    world.cluster_lives()
    world.deliver()
    pool = world.record(jobset).pool
    world.operations_end()
    handlers.handle_reconcile(an_event("cloud-operations", an_ended_operation(pool)), world.deps)
    assert world.record(jobset).reason == "HostsJoining"


def test_an_ended_operation_on_a_slice_that_no_claim_has_is_a_reconcile_request_for_that_one() -> None:
    world = World()
    jobset = world.jobset_appears()
    world.cluster_lives()
    world.deliver()
    claim = world.record(jobset)
    world.backend.fail(claim.pool, Failure(FailureKind.STOCKOUT, "No capacity."))
    world.steps()
    failed = world.records[slice_id(claim.maker, 1)]
    world.backend.finish(failed.pool)
    world.clock.advance(world.settings.limits.orders_arrive_within)
    handlers.handle_reconcile(an_event("cloud-operations", an_ended_operation(failed.pool)), world.deps)
    assert {*world.records} == {claim.name}


def test_an_ended_step_of_a_slice_on_compute_engine_leads_to_the_next_one() -> None:
    world = World(of_cluster=self_managed())
    jobset = world.jobset_appears()
    world.cluster_lives()
    world.deliver()
    world.store.put_settings(self_managed(cluster=ClusterId("beside")))
    world.store.put_document(settings_key(ClusterId("ahead")), {"path": "nowhere"})
    world.operations_end()
    record = world.record(jobset)
    handlers.handle_reconcile(an_event("cloud-operations", an_ended_step(record.pool)), world.deps)
    after = world.record(jobset)
    assert (after.reason, after.current.operation == record.current.operation) == ("Creating", False)


def test_an_operation_of_another_cluster_changes_nothing() -> None:
    world = World()
    jobset = world.jobset_appears()
    world.cluster_lives()
    world.deliver()
    before = world.record(jobset)
    world.operations_end()
    world.store.put_settings(settings(path="projects/demo-project/locations/us-central2/clusters/other"))
    handlers.handle_reconcile(an_event("cloud-operations", an_ended_operation(before.pool)), world.deps)
    assert world.record(jobset) == before


@pytest.mark.parametrize(
    ("event", "why"),
    [
        pytest.param(
            an_event("facts-demo", Message(b"{", {"kind": "SlicesWanted", "version": VERSION})), "JSON", id="JSON"
        ),
        pytest.param(
            an_event("facts-demo", Message(b"{}", {"kind": "Gossip", "version": VERSION})), "Gossip", id="kind"
        ),
        pytest.param(
            an_event("facts-demo", Message(encode_fact(leaders_wait()).data, {"kind": "SlicesWanted", "version": "9"})),
            "version",
            id="version",
        ),
        pytest.param(an_event("elsewhere", encode_fact(leaders_wait())), "elsewhere", id="topic"),
        pytest.param(an_event("facts-unknown", encode_fact(leaders_wait())), "unknown", id="cluster"),
        pytest.param(an_event("facts-demo", encode_fact(leaders_wait()), data="%"), "data", id="envelope"),
    ],
)
def test_a_message_that_can_never_be_handled_is_kept_and_acknowledged(event: Event, why: str) -> None:
    world = World()
    handlers.handle_receive(event, world.deps)
    rejection = world.store.rejections["17"]
    assert why in rejection.error
    assert world.records == {}


def test_a_request_that_came_by_the_topic_of_another_cluster_is_kept_and_acknowledged() -> None:
    world = World()
    handlers.handle_receive(an_event("facts-demo", encode_fact(leaders_wait(0))), world.deps)
    request = encode_reconcile_request(CLUSTER, next(iter(world.records)))
    handlers.handle_reconcile(an_event("requests-other", request), world.deps)
    assert world.store.rejections["17"].error == 'cluster: "demo" is not that of the topic requests-other'
    assert world.pools == []


def test_a_temporary_error_leaves_the_message_to_redelivery() -> None:
    world = World()
    world.store.unavailable = True
    with pytest.raises(Temporary):
        handlers.handle_receive(an_event("facts-demo", encode_fact(leaders_wait())), world.deps)
    assert world.store.rejections == {}

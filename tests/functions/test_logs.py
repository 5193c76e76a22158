"""The log of a JobSet: Cloud Logging's shape, one trace from relay to node pool, of tenants nothing but names."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from typing import Any

from structlog.contextvars import bound_contextvars

from relay import translate
from relay.fact_queue import FactQueue
from relay.messages import noted
from relay.objects import Kind
from tests.builders import CLUSTER, NOW
from tests.conftest import VERSION, Lines
from tests.functions.test_handlers import an_event
from tests.relay.objects import container, jobset, pod, read_jobset, replicated_job
from tests.world import World
from tpu_slices.adapters import logs
from tpu_slices.adapters.logs import trace_of
from tpu_slices.app import handlers
from tpu_slices.domain.model.facts import SlicesWanted
from tpu_slices.wire.messages import encode_fact, encode_reconcile_request
from tpu_slices_simulator.objects import pinned
from tpu_slices_simulator.relays import facts_of

UID = str(uuid.UUID(int=0x5F0C1D2E8A4B4C6D9E0F112233445566))
SECRET = "hunter2"

Line = dict[str, Any]


def demand_of_a_tenant_with_secrets() -> SlicesWanted:
    """Return what the relay publishes of a JobSet that has secrets wherever a tenant may write."""
    secretive: Line = {"env": [{"name": "TOKEN", "value": SECRET}], "args": [SECRET], "command": [SECRET]}
    template = replicated_job(containers=[container(**secretive)])
    template["template"]["spec"] |= {"parallelism": 4, "completions": 4}
    template["template"]["spec"]["template"]["metadata"] = {
        "annotations": {"example.com/token": SECRET},
        "labels": {"token": SECRET},
    }
    secret_metadata = {"annotations": {"note": SECRET}}
    obj = jobset(uid=UID, metadata=secret_metadata, spec={"replicatedJobs": [template]})
    leader = pod(0, labels={"jobset.sigs.k8s.io/jobset-uid": UID, "token": SECRET}, metadata={})
    queue = FactQueue(CLUSTER)
    there_are = {Kind.JOBSETS: read_jobset(obj), Kind.LEADERS: translate.leader({**pinned(leader, "its-key")})}
    for kind in Kind:
        seen = there_are.get(kind)
        queue.listed(kind, [seen] if seen else [], "1", NOW)
    (fact,) = [fact for fact in facts_of(queue, queue.flush(NOW), NOW) if isinstance(fact, SlicesWanted)]
    return fact


def the_way_to_a_pool(world: World) -> None:
    fact = demand_of_a_tenant_with_secrets()
    message = encode_fact(fact)
    noted(lambda _: None)([message])
    handlers.handle_receive(an_event("facts-demo", message), world.deps)
    for cluster, slice_ in world.publisher.take_requests():
        handlers.handle_reconcile(an_event("requests-demo", encode_reconcile_request(cluster, slice_)), world.deps)
    handlers.handle_sweep(an_event("ticks-demo", message), world.deps)


def test_a_jobset_has_one_trace_from_relay_to_node_pool(lines: Lines) -> None:
    world = World()
    the_way_to_a_pool(world)
    trace = f"projects/demo-project/traces/{UID.replace('-', '')}"
    followed = [line for line in lines() if line.get("logging.googleapis.com/trace") == trace]
    assert [line["event"] for line in followed] == [
        "fact.published",
        "fact.received",
        "slice.decided",
        "workload.reported",
    ]
    decided: Line = followed[2]
    (pool,) = world.pools
    assert pool.startswith(decided["slice"])
    assert decided["operation"] is not None
    assert (decided["phase_before"], decided["phase"], decided["reason"]) == (
        "QUEUED",
        "PROVISIONING",
        "CreationStarted",
    )
    assert decided["actions"] == ["CreatePool 1"]


def test_every_line_has_the_shape_that_cloud_logging_reads(lines: Lines) -> None:
    the_way_to_a_pool(World())
    for line in lines():
        assert line["severity"] in {"INFO", "WARNING", "ERROR"}
        assert line["time"].endswith("Z")
        assert line["message"]


def test_every_line_has_the_version_that_was_deployed(lines: Lines) -> None:
    the_way_to_a_pool(World())
    assert {line["version"] for line in lines()} == {VERSION}


def test_lines_say_how_long_their_message_waited_in_pub_sub(lines: Lines) -> None:
    world = World()
    world.clock.advance(timedelta(seconds=3))
    the_way_to_a_pool(world)
    waited = {line["event"]: line.get("waited_seconds") for line in lines()}
    assert waited == {
        "fact.published": None,
        "fact.received": 3.0,
        "slice.decided": 3.0,
        "sweep.completed": 3.0,
        "workload.reported": 3.0,
        "cluster.counted": 3.0,
        "inventory.checked": 3.0,
    }


def test_where_nothing_was_deployed_lines_have_no_version(lines: Lines) -> None:
    logs.configure("demo-project", version="")
    handlers.log.info("sweep.completed")
    (line,) = lines()
    assert "version" not in line


def test_of_a_tenants_objects_only_names_are_logged(lines: Lines) -> None:
    the_way_to_a_pool(World())
    written = json.dumps(lines())
    assert SECRET not in written
    assert "research/llama" in written


def test_a_uid_that_is_no_uuid_has_a_trace_all_the_same() -> None:
    odd, other = trace_of("p", "uid-llama"), trace_of("p", "uid-gemma")
    assert odd != other
    assert odd.startswith("projects/p/traces/")
    assert len(odd.rpartition("/")[2]) == 32


def test_a_line_that_is_about_no_workload_has_no_trace(lines: Lines) -> None:
    with bound_contextvars(event_id="1"):
        handlers.log.info("sweep.completed")
    (line,) = lines()
    assert "logging.googleapis.com/trace" not in line
    assert line["event_id"] == "1"

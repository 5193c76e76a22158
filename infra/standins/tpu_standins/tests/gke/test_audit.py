"""The log entries of operations, and which of them pass the sink's filter."""

from typing import Any

import pytest

from tpu_standins.cloud.sink import PubSubSink
from tpu_standins.gke.audit import passes_sink
from tpu_standins.gke.state import Kind
from tpu_standins.testing.gke import World, a_world_with, pool_path


def _published(world: World) -> list[Any]:
    world.create()
    world.after(10)
    return world.published


def test_the_end_of_a_create_is_published_as_gke_logs_it() -> None:
    (entry,) = _published(World())
    payload, operation = entry["protoPayload"], entry["operation"]
    assert payload["serviceName"] == "container.googleapis.com"
    assert payload["methodName"] == "google.container.v1.ClusterManager.CreateNodePool"
    assert payload["resourceName"] == pool_path()
    assert payload["status"] == {}
    assert entry["resource"] == {
        "type": "gke_nodepool",
        "labels": {
            "project_id": "demo-project",
            "location": "us-central2",
            "cluster_name": "demo",
            "nodepool_name": "pool",
        },
    }
    assert (operation["id"][:10], operation["last"], "first" in operation) == ("operation-", True, False)
    assert entry["logName"] == "projects/demo-project/logs/cloudaudit.googleapis.com%2Factivity"
    assert (entry["severity"], entry["timestamp"]) == ("NOTICE", "2027-01-15T08:00:05.000000Z")


def test_a_failed_create_is_published_with_its_status() -> None:
    (entry,) = _published(a_world_with(Kind.STOCKOUT))
    assert entry["severity"] == "ERROR"
    assert entry["protoPayload"]["status"]["code"] == 8
    assert "[GCE_STOCKOUT]" in entry["protoPayload"]["status"]["message"]


def test_the_end_of_a_delete_is_published_too() -> None:
    world = World()
    _published(world)
    world.delete()
    world.after(5)
    methods = [entry["protoPayload"]["methodName"].rpartition(".")[2] for entry in world.published]
    assert methods == ["CreateNodePool", "DeleteNodePool"]
    assert len({entry["insertId"] for entry in world.published}) == 2


def test_an_entry_comes_some_time_after_the_end() -> None:
    world = World()
    world.create()
    world.after(5.1)
    assert world.published == []
    world.after(0.2)
    assert len(world.published) == 1


def _entry(**changes: Any) -> dict[str, Any]:
    return {
        "protoPayload": {
            "serviceName": "container.googleapis.com",
            "methodName": "google.container.v1.ClusterManager.CreateNodePool",
        },
        "resource": {"type": "gke_nodepool", "labels": {"nodepool_name": "tpu-a"}},
        "operation": {"id": "operation-1", "last": True},
        **changes,
    }


@pytest.mark.parametrize(
    "method",
    ["google.container.v1.ClusterManager.DeleteNodePool", "google.container.v1beta1.ClusterManager.CreateNodePool"],
)
def test_the_last_entries_of_both_methods_pass(method: str) -> None:
    payload = {"serviceName": "container.googleapis.com", "methodName": method}
    assert passes_sink(_entry(protoPayload=payload))


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(_entry(operation={"id": "operation-1", "first": True}), id="the first entry"),
        pytest.param(_entry(operation={}), id="an entry of no operation"),
        pytest.param(_entry(resource={"type": "gke_cluster", "labels": {}}), id="another resource"),
        pytest.param(
            _entry(protoPayload={"serviceName": "container.googleapis.com", "methodName": "SetNodePoolSize"}),
            id="another method",
        ),
        pytest.param(
            _entry(
                protoPayload={"serviceName": "compute.googleapis.com", "methodName": "x.ClusterManager.CreateNodePool"}
            ),
            id="another service",
        ),
        pytest.param({}, id="an empty entry"),
    ],
)
def test_all_else_stays_in_the_log(entry: dict[str, Any]) -> None:
    assert not passes_sink(entry)


def test_a_sink_may_be_narrowed_to_a_prefix_of_pools() -> None:
    assert passes_sink(_entry(), pools="tpu-")
    assert not passes_sink(_entry(), pools="gpu-")


class RememberingPublisher:
    def __init__(self) -> None:
        self.published: list[tuple[str, bytes, dict[str, str]]] = []
        self.late = False

    def publish(self, topic: str, data: bytes, **attributes: str) -> "RememberingPublisher":
        self.published.append((topic, data, attributes))
        return self

    def result(self, timeout: float) -> str:
        if self.late:
            raise TimeoutError(timeout)
        return "1"


def test_the_sink_writes_the_entry_as_json_with_its_time() -> None:
    publisher = RememberingPublisher()
    PubSubSink("projects/p/topics/t", publisher)({"insertId": "a", "timestamp": "2027-01-15T08:00:05Z"})
    (message,) = publisher.published
    assert message == (
        "projects/p/topics/t",
        b'{"insertId": "a", "timestamp": "2027-01-15T08:00:05Z"}',
        {"logging.googleapis.com/timestamp": "2027-01-15T08:00:05Z"},
    )


def test_an_entry_the_topic_does_not_take_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    publisher = RememberingPublisher()
    publisher.late = True
    PubSubSink("projects/p/topics/t", publisher)({"insertId": "a", "timestamp": ""})
    assert "log entry a was lost" in caplog.text

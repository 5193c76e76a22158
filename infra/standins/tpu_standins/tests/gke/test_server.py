"""Google's own client against the server, over loopback: in this process, and as a program."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import grpc
import pytest
from google.api_core import exceptions
from google.cloud import container_v1 as gke
from google.cloud.container_v1.services.cluster_manager.transports import ClusterManagerGrpcTransport
from google.cloud.pubsub_v1 import PublisherClient, SubscriberClient

from tpu_standins.cloud.loopback import ButtonServer
from tpu_standins.cloud.nodes import RememberedNodes
from tpu_standins.cloud.timed import Outside
from tpu_standins.gke.buttons import press
from tpu_standins.gke.control_plane import ControlPlane
from tpu_standins.gke.server import Server
from tpu_standins.gke.state import Pace
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.testing.gke import DEMO, a_pool, a_state, pool_path
from tpu_standins.testing.modules import PYTHON
from tpu_standins.testing.waiting import until
from tpu_standins.tests.gke.node_api import NodeApi, kubeconfig, serving
from tpu_standins.tests.gke.sink import first_entry

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

QUICK = Pace(pending=0, create=0.05, join=0.02, ready=0.02, chips=0.02, delete=0.05, repair=0.05, stockout=0.1)
DONE = gke.Operation.Status.DONE


@contextmanager
def _client(address: str) -> Iterator[gke.ClusterManagerClient]:
    channel = grpc.insecure_channel(address)
    with gke.ClusterManagerClient(transport=ClusterManagerGrpcTransport(channel=channel)) as client:
        yield client


def _ended(client: gke.ClusterManagerClient, operation: gke.Operation) -> gke.Operation:
    path = f"projects/demo-project/locations/us-central2/operations/{operation.name}"
    until(lambda: client.get_operation(name=path).status == DONE, f"the end of {operation.name}")
    return client.get_operation(name=path)


def _call(url: str, method: str = "GET", **body: Any) -> dict[str, Any]:
    data = json.dumps(body).encode() if body else None
    with urlopen(Request(url, data, method=method), timeout=PATIENCE_SECONDS) as reply:
        return dict(json.load(reply))


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    outside = Outside(time.time, lambda: str(uuid.uuid4()))  # noqa: TID251 - this test runs in real time
    plane = ControlPlane(a_state(pace=QUICK), outside, RememberedNodes())
    plane.start()
    yield plane
    plane.stop()


@pytest.fixture
def client(plane: ControlPlane) -> Iterator[gke.ClusterManagerClient]:
    server = Server(plane, lambda: str(uuid.uuid4()))
    with _client(f"127.0.0.1:{server.port}") as connected:
        yield connected
    server.stop()


@pytest.fixture
def buttons(plane: ControlPlane) -> Iterator[str]:
    server = ButtonServer(partial(press, plane))
    yield server.url
    server.stop()


def test_a_pool_is_created_seen_and_deleted(client: gke.ClusterManagerClient) -> None:
    created = _ended(client, client.create_node_pool(parent=DEMO, node_pool=a_pool()))
    assert created.error.code == 0
    assert client.get_node_pool(name=pool_path()).status == gke.NodePool.Status.RUNNING
    assert [pool.name for pool in client.list_node_pools(parent=DEMO).node_pools] == ["pool"]
    _ended(client, client.delete_node_pool(name=pool_path()))
    with pytest.raises(exceptions.NotFound):
        client.get_node_pool(name=pool_path())
    location = "projects/demo-project/locations/-"
    assert len(client.list_operations(parent=location).operations) == 2
    assert client.get_cluster(name=DEMO).id == "c0ffee"


def test_refusals_arrive_as_googles_exceptions_with_a_request_id(
    client: gke.ClusterManagerClient, buttons: str
) -> None:
    _call(f"{buttons}/faults", "POST", kind="held")
    creation = client.create_node_pool(parent=DEMO, node_pool=a_pool())
    with pytest.raises(exceptions.FailedPrecondition, match="Cluster is running incompatible operation") as busy:
        client.delete_node_pool(name=pool_path())
    assert re.fullmatch("0x[0-9a-f]{16}", busy.value.details[0].request_id)
    with pytest.raises(exceptions.InvalidArgument, match="TPU topology"):
        client.create_node_pool(
            parent=DEMO, node_pool=a_pool("other", initial_node_count=3, placement_policy={"tpu_topology": "3x3x3"})
        )
    _call(f"{buttons}/releases", "POST", pools="pool")
    _ended(client, creation)
    with pytest.raises(exceptions.AlreadyExists, match="Already exists"):
        client.create_node_pool(parent=DEMO, node_pool=a_pool())


def test_the_sixth_operation_is_one_too_many(
    client: gke.ClusterManagerClient, plane: ControlPlane, buttons: str
) -> None:
    _call(f"{buttons}/faults", "POST", kind="held", times=None)
    for number in range(5):
        client.create_node_pool(parent=DEMO, node_pool=a_pool(f"pool-{number}"))
    with pytest.raises(exceptions.ResourceExhausted, match="concurrent operations quota 5"):
        client.create_node_pool(parent=DEMO, node_pool=a_pool("pool-5"))
    assert [call.code for call in plane.calls()] == ["OK"] * 5 + ["RESOURCE_EXHAUSTED"]


def test_a_stockout_by_button_leaves_the_name_taken(client: gke.ClusterManagerClient, buttons: str) -> None:
    _call(f"{buttons}/faults", "POST", kind="stockout", pools="po.*")
    ended = _ended(client, client.create_node_pool(parent=DEMO, node_pool=a_pool()))
    assert "[GCE_STOCKOUT]" in ended.error.message
    with pytest.raises(exceptions.AlreadyExists):
        client.create_node_pool(parent=DEMO, node_pool=a_pool())
    assert _call(f"{buttons}/pools")["pools"][0]["status"] == "ERROR"


def test_a_wrong_button_is_answered_with_400(buttons: str) -> None:
    with pytest.raises(HTTPError) as refused:
        _call(f"{buttons}/faults", "POST", kind="flood")
    refused.value.close()
    assert refused.value.code == 400


def test_what_is_not_covered_says_so(client: gke.ClusterManagerClient) -> None:
    with pytest.raises(exceptions.MethodNotImplemented, match="SetNodePoolSize is not implemented by the local GKE"):
        client.set_node_pool_size(gke.SetNodePoolSizeRequest(name=pool_path(), node_count=4))


def test_other_services_are_unknown(plane: ControlPlane) -> None:
    server = Server(plane, lambda: "token")
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        with pytest.raises(grpc.RpcError) as refused:
            channel.unary_unary("/google.container.v1beta1.ClusterManager/GetCluster")(b"")
        assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
    server.stop()


@contextmanager
def _program(*arguments: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """Run the program; yield it and the addresses that it prints."""
    command = [
        "setpriv",
        "--pdeathsig",
        "TERM",
        sys.executable,
        "-m",
        "tpu_standins.gke",
        "--cluster",
        DEMO,
        *arguments,
    ]
    inherited = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
    environment = {**inherited, **PYTHON, **environment}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.fullmatch(r"listening on (127\.0\.0\.1:\d+) buttons (http://127\.0\.0\.1:\d+)\n", line)
            assert found, line
            yield process, found[1], found[2]
        finally:
            process.kill()


def test_the_program_makes_nodes_in_a_cluster_and_ends_on_a_signal(tmp_path: Path) -> None:
    api, config = NodeApi(), tmp_path / "kubeconfig"
    pace = [f"--{name}-seconds=0.05" for name in ("create", "join", "ready", "chips", "delete")]
    with (
        serving(api) as url,
        _program("--kubeconfig", str(kubeconfig(url, config)), *pace) as (process, address, buttons),
    ):
        with _client(address) as client:
            _ended(client, client.create_node_pool(parent=DEMO, node_pool=a_pool()))
            until(lambda: _chips(api) == ["4", "4"], "the chips of both hosts")
            api.bind("worker", next(iter(api.nodes)))
            _ended(client, client.delete_node_pool(name=pool_path()))
        assert not api.nodes
        assert api.deleted_pods == ["worker"]
        changes = [each["method"] for each in _call(f"{buttons}/calls")["calls"] if each["method"] != "GetOperation"]
        assert changes == ["CreateNodePool", "DeleteNodePool"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0


def test_the_program_is_told_which_workload_policies_there_are() -> None:
    with _program("--workload-policies", "none") as (_, _address, buttons):
        assert _call(f"{buttons}/policies") == {"beginnings": {DEMO: None}, "exceptions": {}}
        _call(f"{buttons}/policies", "POST", cluster=DEMO, name="mine", topology="2x2x2")
        _call(f"{buttons}/policies", "DELETE", cluster=DEMO, name="mine")
        path = "projects/demo-project/regions/us-central2/resourcePolicies/mine"
        assert _call(f"{buttons}/policies")["exceptions"] == {path: None}


def test_the_program_publishes_the_end_of_an_operation_to_the_sinks_topic(
    pubsub_emulator: str, project_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", pubsub_emulator)
    topic, subscription = f"projects/{project_id}/topics/operations", f"projects/{project_id}/subscriptions/all"
    publisher = PublisherClient()
    publisher.create_topic(name=topic)
    with SubscriberClient() as subscriber:
        subscriber.create_subscription(name=subscription, topic=topic)
        arguments = ("--operations-topic", topic, "--create-seconds=0.05", "--join-seconds=0.05", "--log-seconds=0")
        with _program(*arguments, PUBSUB_EMULATOR_HOST=pubsub_emulator) as (_, address, _buttons):
            with _client(address) as client:
                operation = client.create_node_pool(parent=DEMO, node_pool=a_pool())
            entry = first_entry(subscriber, subscription)
    publisher.transport.close()
    assert entry["operation"] == {"id": operation.name, "producer": "container.googleapis.com", "last": True}


def _chips(api: NodeApi) -> list[str]:
    return [node["status"]["allocatable"]["google.com/tpu"] for node in list(api.nodes.values())]

"""Google's own client against the server, over loopback: in this process, and as a program."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from google.api_core import exceptions
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import compute_v1 as gce
from google.cloud.pubsub_v1 import PublisherClient, SubscriberClient

from tpu_standins.cloud.timed import Outside
from tpu_standins.compute.control_plane import ControlPlane
from tpu_standins.compute.server import Server
from tpu_standins.compute.state import Pace
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.testing.compute import HERE, PROJECT, REGIONAL, a_group, a_policy, a_state, a_template
from tpu_standins.testing.modules import PYTHON
from tpu_standins.testing.waiting import until
from tpu_standins.tests.gke.node_api import NodeApi, kubeconfig, serving
from tpu_standins.tests.gke.sink import first_entry

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

QUICK = Pace(pending=0, insert=0.02, remove=0.02, metadata=0.02, retry=0.05, create=0.05, delete=0.05)
FLAVOR = {"Metadata-Flavor": "Google"}


def _client(kind: Any, url: str) -> Any:
    anonymous = AnonymousCredentials()  # type: ignore[no-untyped-call]
    return kind(client_options=ClientOptions(api_endpoint=url), credentials=anonymous)


def _call(url: str, method: str = "GET", headers: dict[str, str] | None = None, **body: Any) -> Any:
    data = json.dumps(body).encode() if body else None
    with urlopen(Request(url, data, headers=headers or {}, method=method), timeout=PATIENCE_SECONDS) as reply:
        return reply.read()


@pytest.fixture
def url() -> Iterator[str]:
    outside = Outside(time.time, lambda: str(uuid.uuid4()))  # noqa: TID251 - this test runs in real time
    plane = ControlPlane(a_state(pace=QUICK), outside)
    plane.start()
    server = Server(plane)
    yield server.url
    server.stop()
    plane.stop()


def _done(url: str, operation: Any) -> gce.Operation:
    """Return the operation once it is done.

    The client's own waiting, `insert(...).result()`, asks compute.googleapis.com whatever its endpoint is.
    """
    scope = next((kind for kind in ("zone", "region") if getattr(operation, kind)), "global")
    kinds: dict[str, Callable[..., Any]] = {
        "zone": gce.ZoneOperationsClient,
        "region": gce.RegionOperationsClient,
        "global": gce.GlobalOperationsClient,
    }
    client = _client(kinds[scope], url)
    place = {} if scope == "global" else {scope: getattr(operation, scope).rpartition("/")[2]}

    def seen() -> gce.Operation:
        found: gce.Operation = client.get(operation=operation.name, project=PROJECT, **place)
        return found

    until(lambda: seen().status == gce.Operation.Status.DONE, f"the end of {operation.name}")
    return seen()


def _make_slice(url: str, policy: gce.ResourcePolicy | None = None) -> gce.Operation:
    """Create policy, template and group; return the group's operation."""
    policies = _client(gce.ResourcePoliciesClient, url)
    _done(url, policies.insert_unary(resource_policy_resource=policy or a_policy(), **REGIONAL))
    templates = _client(gce.InstanceTemplatesClient, url)
    template = a_template(metadata={"items": [{"key": "kube-labels", "value": "cloud.google.com/gke-nodepool=slice"}]})
    _done(url, templates.insert_unary(instance_template_resource=template, project=PROJECT))
    groups = _client(gce.InstanceGroupManagersClient, url)
    return _done(url, groups.insert_unary(instance_group_manager_resource=a_group(), **HERE))


def _delete_group(url: str) -> gce.Operation:
    groups = _client(gce.InstanceGroupManagersClient, url)
    return _done(url, groups.delete_unary(instance_group_manager="slice", **HERE))


def test_a_slice_is_created_seen_and_deleted(url: str) -> None:
    _make_slice(url)
    groups = _client(gce.InstanceGroupManagersClient, url)

    def group() -> Any:
        return groups.get(instance_group_manager="slice", **HERE)

    until(lambda: group().status.is_stable, "a stable group")
    assert group().status.current_instance_statuses.running == 2
    names = [each.name for each in groups.list_managed_instances(instance_group_manager="slice", **HERE)]
    instances = _client(gce.InstancesClient, url)
    assert [instances.get(instance=name, **HERE).status for name in names] == ["RUNNING", "RUNNING"]
    with pytest.raises(exceptions.BadRequest, match="is already being used by"):
        _client(gce.InstanceTemplatesClient, url).delete_unary(instance_template="slice", project=PROJECT)
    _delete_group(url)
    with pytest.raises(exceptions.NotFound):
        groups.get(instance_group_manager="slice", **HERE)


def test_a_failed_operation_tells_why(url: str) -> None:
    ended = _make_slice(url, a_policy(topology="4x4x4"))
    assert "Target size should be 16" in ended.error.errors[0].message
    assert ended.http_error_status_code == 400


def test_what_is_not_covered_says_so(url: str) -> None:
    with pytest.raises(exceptions.MethodNotImplemented, match="is not implemented by the local Compute Engine"):
        _client(gce.ZonesClient, url).get(zone="us-central1-c", project=PROJECT)


@contextmanager
def _program(*arguments: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """Run the program; yield it and the addresses that it prints."""
    command = ["setpriv", "--pdeathsig", "TERM", sys.executable, "-m", "tpu_standins.compute", "--project", PROJECT]
    inherited = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
    quick = [
        f"--{name}-seconds=0.05" for name in ("insert", "remove", "create", "join", "ready", "chips", "delete", "log")
    ]
    with subprocess.Popen(
        [*command, "--zones", "us-central1-c", *quick, *arguments],
        env={**inherited, **PYTHON, **environment},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            address = r"127\.0\.0\.1:\d+"
            found = re.fullmatch(
                rf"listening on ({address}) buttons (http://{address}) metadata (http://{address})\n", line
            )
            assert found, line
            yield process, [f"http://{found[1]}", found[2], found[3]]
        finally:
            process.kill()


def test_the_program_boots_vms_into_a_cluster_and_ends_on_a_signal(tmp_path: Path) -> None:
    api, config = NodeApi(), tmp_path / "kubeconfig"
    with (
        serving(api) as cluster,
        _program("--kubeconfig", str(kubeconfig(cluster, config))) as (process, (url, buttons, metadata)),
    ):
        _make_slice(url)
        until(lambda: _chips(api) == ["4", "4"], "the chips of both VMs")
        name = next(iter(api.nodes))
        server = f"{metadata}/{PROJECT}/us-central1-c/{name}/computeMetadata/v1"
        assert _call(f"{server}/instance/name", headers=FLAVOR).decode() == name
        _delete_group(url)
        until(lambda: _ready(api) == ["Unknown", "Unknown"], "silence of both kubelets")
        methods = [call["method"] for call in json.loads(_call(f"{buttons}/calls"))["calls"]]
        assert methods[0] == "resourcePolicies.insert"
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0


def test_the_program_publishes_the_end_of_an_operation_to_the_sinks_topic(
    pubsub_emulator: str, project_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", pubsub_emulator)
    topic, subscription = f"projects/{project_id}/topics/operations", f"projects/{project_id}/subscriptions/all"
    publisher = PublisherClient()
    publisher.create_topic(name=topic)
    with SubscriberClient() as subscriber:
        subscriber.create_subscription(name=subscription, topic=topic)
        with _program("--operations-topic", topic, PUBSUB_EMULATOR_HOST=pubsub_emulator) as (_, (url, _, _)):
            policies = _client(gce.ResourcePoliciesClient, url)
            operation = policies.insert_unary(resource_policy_resource=a_policy(), **REGIONAL)
            entry = first_entry(subscriber, subscription)
    publisher.transport.close()
    assert entry["operation"] == {"id": operation.name, "producer": "compute.googleapis.com", "last": True}


def _chips(api: NodeApi) -> list[str]:
    return [node["status"]["allocatable"]["google.com/tpu"] for node in list(api.nodes.values())]


def _ready(api: NodeApi) -> list[str]:
    return [node["status"]["conditions"][0]["status"] for node in list(api.nodes.values())]

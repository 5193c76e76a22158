import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import grpc
import pytest
import yaml
from google import pubsub_v1
from google.cloud import firestore
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport

from infra.local.plan import Plan
from infra.local.stack import Stack, running
from tests.local.stack import sample
from tpu_standins import emulators
from tpu_standins.prerequisites import Tools
from tpu_standins.processes import Processes, ProgramFailed
from tpu_standins.testing.leftovers import running_in, start_module
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.real]


@pytest.fixture(scope="module")
def stack(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    assert tools.java.exists()
    with running(sample.plan(tmp_path_factory.mktemp("state")), sample.seed) as started:
        yield started


@pytest.fixture(scope="module")
def database(stack: Stack) -> firestore.Client:
    return sample.database(stack.addresses)


def seen(database: firestore.Client) -> set[tuple[str, str, str]]:
    """Return the messages that reached the sample functions, as (function, topic, data)."""
    notes = database.collection("seen").stream()
    return {(each.get("target"), each.get("source").rpartition("/")[2], each.get("data")) for each in notes}


def publish(stack: Stack, topic: str, data: str) -> None:
    with grpc.insecure_channel(stack.addresses.pubsub) as channel:
        publisher = pubsub_v1.PublisherClient(transport=PublisherGrpcTransport(channel=channel))
        publisher.publish(
            topic=stack.addresses.topic_path(topic),
            messages=[pubsub_v1.types.PubsubMessage(data=data.encode())],
        )


@pytest.mark.parametrize(
    ("topic", "function"),
    [("facts-demo", "receive"), ("requests-demo", "reconcile"), ("cloud-operations", "reconcile")],
)
def test_a_message_reaches_its_function_which_learns_the_topic(
    stack: Stack, database: firestore.Client, topic: str, function: str
) -> None:
    publish(stack, topic, data=f"for {function}")
    until(lambda: (function, topic, f"for {function}") in seen(database), f"{function} of {topic}")


def test_the_sweep_ticks_by_itself(database: firestore.Client) -> None:
    until(lambda: ("sweep", "ticks-demo", "{}") in seen(database), "a tick")


def test_a_further_cluster_ticks_once_it_is_configured(database: firestore.Client) -> None:
    database.document("clusters/second").set({"settings": "sample"})
    until(lambda: ("sweep", "ticks-second", "{}") in seen(database), "a tick of the further cluster")


def test_every_part_runs_and_has_its_log(stack: Stack) -> None:
    stack.processes.check()
    assert {each.log.name for each in stack.processes.children()} == {
        "cluster.log",
        "firestore.log",
        "function-notify.log",
        "function-receive.log",
        "function-reconcile.log",
        "function-sweep.log",
        "gke.log",
        "jobset.log",
        "kubelet.log",
        "proxy.log",
        "pubsub.log",
        "relay.log",
        "target.log",
    }


def test_kubectl_is_shown_the_way_to_the_cluster(stack: Stack) -> None:
    server = yaml.safe_load(stack.addresses.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    with urlopen(server) as answer:
        assert answer.status == 200


def test_a_second_pubsub_emulator_on_the_same_port_is_noticed(stack: Stack, tools: Tools, tmp_path: Path) -> None:
    port = int(stack.addresses.pubsub.rpartition(":")[2])
    with Processes(setpriv=tools.setpriv, logs=tmp_path, environment={}) as others:
        children = others.start(emulators.pubsub(tools, port, tmp_path))
        with pytest.raises(ProgramFailed, match="BindException"):
            others.wait_until_ready(*children)


def test_a_part_that_fails_ends_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    without_parts = Plan(root=tmp_path, state=tmp_path)
    with pytest.raises(ProgramFailed, match=r"function-\w+ exited"), running(without_parts, sample.seed):
        pytest.fail("nothing runs without functions")
    assert not running_in(tmp_path)


def test_nothing_is_left_of_a_stack_that_was_killed(tmp_path: Path) -> None:
    parent = start_module("tests.local.stack.sample", tmp_path)
    assert parent.stdout
    assert parent.stdout.readline() == "up\n"
    assert len(running_in(tmp_path)) >= 9
    parent.kill()
    parent.communicate()
    until(lambda: not running_in(tmp_path), "the end of every part")


def test_nothing_is_left_of_a_stack_that_was_interrupted_while_it_started(tmp_path: Path) -> None:
    parent = start_module("tests.local.stack.sample", tmp_path)
    until(lambda: len(running_in(tmp_path)) >= 5, "the first parts")
    parent.send_signal(signal.SIGINT)
    parent.communicate()
    until(lambda: not running_in(tmp_path), "the end of every part")

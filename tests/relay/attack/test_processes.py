"""The relay as a process: two at a time, killed, and with its servers unreachable."""

import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
import yaml

from relay.objects import Kind
from tests.builders import CLUSTER
from tests.local.served import Served, serving
from tests.relay.attack.stage import Gate, Running, running
from tests.relay.objects import Json
from tests.relay.test_events import update
from tests.relay.test_relay import Stage, emptied, host, workload
from tpu_slices.domain.model.facts import Echo, Fact, HostsChanged, SlicesWanted
from tpu_slices.domain.model.questions import EchoQuestion
from tpu_standins.patience import PATIENCE_SECONDS

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.real]

NOWHERE = "relay-test.invalid"
OK = ["ok"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One cluster for the tests of this file, which find it empty and without faults."""
    with serving(tmp_path_factory.mktemp("cluster"), controllers=True) as found:
        yield found


@pytest.fixture
def stage(served: Served, pubsub_emulator: str, project_id: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", pubsub_emulator)
    yield Stage(served, project_id, pubsub_emulator)
    emptied(served)


@pytest.fixture
def quiet(served: Served) -> Iterator[Served]:
    """Return the cluster for tests that make nothing in it, but faults."""
    yield served
    served.proxy.clear()


def unschedulable() -> Json:
    """Return a JobSet that fits on none of the hosts."""
    made = workload(name="gemma")
    pods = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pods["nodeSelector"] |= {"cloud.google.com/gke-tpu-topology": "4x4x4"}
    return made


def test_two_relays_report_the_same_one_is_enough_and_the_next_reports_what_still_holds(stage: Stage) -> None:
    with running(stage.served, stage.project) as old, running(stage.served, stage.project) as new:
        for each in (old, new):
            each.until(lambda each=each: each.ready)  # type: ignore[misc]  # a bound default
        stage.apply(workload())
        both = stage.until(SlicesWanted, lambda fact: len(fact.waiting) == 2)
        for each in (old, new):
            each.until(lambda each=each: tells_demand(each))  # type: ignore[misc]
        stage.until(SlicesWanted, lambda _: [demand(fact) for fact in stage.received_facts].count(demand(both)) >= 2)
        old.kill()
        stage.forget()
        stage.apply(*(host(number) for number in range(4)))
        assert stage.until(HostsChanged, lambda fact: fact.usable == 4).joined == 4
        uid = both.workload.owner.uid
        assert stage.until(HostsChanged, lambda fact: len(fact.occupants) > 0).occupants[0].owner.uid == uid
        new.kill()
    stage.apply(unschedulable())
    stage.forget()
    with running(stage.served, stage.project):
        assert stage.until(HostsChanged, lambda fact: fact.usable == 4).joined == 4
        assert stage.until(HostsChanged, lambda fact: len(fact.occupants) > 0).occupants[0].owner.uid == uid
        stage.until(SlicesWanted, lambda fact: fact.workload.owner.name == "gemma" and len(fact.waiting) == 2)


def tells_demand(relay: Running) -> bool:
    return any(each["kind"] == "SlicesWanted" for each in relay.lines if each["event"] == "fact.published")


def demand(fact: Fact) -> object:
    """Return what of demand does not depend on when a relay saw its JobSet."""
    return (fact.workload.owner, fact.requests, fact.waiting) if isinstance(fact, SlicesWanted) else None


def test_a_question_is_answered_although_no_event_can_be_written(stage: Stage) -> None:
    """Deletions wait for answers: what is only told must not hold them up."""
    asked_at = datetime.now(UTC)
    with running(stage.served, stage.project) as relay:
        relay.until(lambda: relay.ready)
        stage.served.press("answer", resource="events", verb="POST", seconds=600)
        stage.publisher.announce(CLUSTER, [update(transition_number=number) for number in range(300)])
        stage.publisher.ask(CLUSTER, [EchoQuestion(asked_at=asked_at)])
        assert stage.until(Echo, lambda _: True).asked_at == asked_at
        assert not [each for each in relay.logged("message.handled") if each["kind"] == "SliceUpdate"]
        stage.served.proxy.clear()


def test_a_relay_that_cannot_pull_a_subscription_logs_an_error_that_names_it(
    quiet: Served, project_id: str, pubsub_emulator: str
) -> None:
    """An alert counts errors: its heartbeats look well, and no host is closed."""
    missing = {f"projects/{project_id}/subscriptions/{name}" for name in ("relay-demo", "questions-demo")}
    with running(quiet, project_id, PUBSUB_EMULATOR_HOST=pubsub_emulator) as relay:

        def named() -> set[str]:
            lines = [each for each in relay.lines if each["event"] == "subscription.interrupted"]
            return {each["subscription"] for each in lines if each["severity"] == "ERROR"}

        relay.until(lambda: named() == missing)
        relay.kill()  # its end would wait for topics that there are not


def test_the_relay_listens_on_no_port(stage: Stage) -> None:
    """Any pod can connect to a port, and keep it busy."""
    with running(stage.served, stage.project) as relay:
        relay.until(lambda: relay.ready)
        relay.until_probed(lambda lines: lines == OK)
        connections = psutil.Process(relay.process.pid).net_connections("inet")
        statuses = {each.status for each in connections}
    assert psutil.CONN_ESTABLISHED in statuses
    assert psutil.CONN_LISTEN not in statuses


def test_while_pubsub_is_unavailable_the_relay_is_unready_and_then_reports_what_holds(stage: Stage) -> None:
    gate = Gate(stage.emulator)
    environment = {"PUBSUB_EMULATOR_HOST": gate.address, "PUBLISH_PATIENCE_SECONDS": "5"}
    with running(stage.served, stage.project, **environment) as relay:
        relay.until(lambda: relay.ready)
        relay.until_probed(lambda lines: lines == OK)
        failed = len(relay.logged("fact.publish_failed"))
        gate.close()
        stage.apply(workload())
        relay.until(lambda: len(relay.logged("fact.publish_failed")) > failed)
        relay.until_probed(lambda lines: any(line.startswith("publishing: has failed for ") for line in lines))
        assert relay.probe("livez") == OK
        gate.open()
        assert len(stage.until(SlicesWanted, lambda fact: len(fact.waiting) == 2).waiting) == 2
        relay.until_probed(lambda lines: lines == OK)
    gate.close()


def test_a_relay_whose_pubsub_does_not_resolve_is_unready_but_alive(quiet: Served, project_id: str) -> None:
    environment = {"PUBSUB_EMULATOR_HOST": f"{NOWHERE}:8085", "PUBLISH_PATIENCE_SECONDS": "1"}
    with running(quiet, project_id, **environment) as relay:
        relay.until(lambda: relay.ready)
        (why,) = relay.until_probed(lambda lines: any(NOWHERE in line for line in lines))
        assert why.startswith("publishing: has failed for ")
        assert relay.probe("livez") == OK
        relay.kill()  # its end would wait for Pub/Sub


def test_a_relay_whose_api_server_does_not_resolve_is_unready_but_alive(
    quiet: Served, project_id: str, pubsub_emulator: str, tmp_path: Path
) -> None:
    wrong = yaml.safe_load(quiet.kubeconfig.read_text())
    wrong["clusters"][0]["cluster"]["server"] = f"https://{NOWHERE}:6443"
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(wrong))
    environment = {"PUBSUB_EMULATOR_HOST": pubsub_emulator, "KUBECONFIG": str(kubeconfig)}
    with running(quiet, project_id, **environment) as relay:
        relay.log("watch.failed")
        lines = relay.until_probed(lambda lines: all(NOWHERE in line for line in lines))
        watched = [kind for kind in Kind if kind not in {Kind.NODE_GROUPS, Kind.PODS}]
        assert [line.partition(":")[0] for line in lines] == watched
        assert relay.probe("livez") == OK


def test_a_relay_whose_api_server_does_not_serve_jobsets_is_unready_but_alive(
    quiet: Served, project_id: str, pubsub_emulator: str
) -> None:
    quiet.press("answer", resource="jobsets", code=404, text="404 page not found\n")
    with running(quiet, project_id, PUBSUB_EMULATOR_HOST=pubsub_emulator) as relay:
        why = "the API server does not serve jobsets of jobset.x-k8s.io/v1alpha2: 404 Not Found"
        relay.until(lambda: why in [each["error"] for each in relay.logged("watch.failed")])
        relay.until_probed(lambda lines: lines == [f"jobsets: no list yet: {why}"])
        assert not relay.ready
        assert relay.probe("livez") == OK
        quiet.proxy.clear()
        relay.until(lambda: relay.ready)
        relay.until_probed(lambda lines: not any(line.startswith("jobsets") for line in lines))
        relay.kill()  # its end would wait for topics that there are not


def test_a_signal_that_does_not_interrupt_the_main_thread_ends_the_relay(stage: Stage) -> None:
    with running(stage.served, stage.project) as relay:
        relay.until(lambda: relay.ready)
        threads = {int(each.name) for each in Path(f"/proc/{relay.process.pid}/task").iterdir()}
        os.kill(min(threads - {relay.process.pid}), signal.SIGTERM)  # Linux prefers the named thread; the oldest stays
        assert relay.process.wait(PATIENCE_SECONDS) == 0

"""The relay as it is deployed, between the local API server and the Pub/Sub emulator."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, TypeVar

import pytest
from google.cloud.pubsub_v1 import PublisherClient, SubscriberClient

from tests.builders import NOW
from tests.cluster.asking import done, path
from tests.local.served import ROOT, Served, serving
from tests.published import LEASE_SECONDS, pulled
from tests.relay.attack.stage import Running, running
from tests.relay.objects import OPTED_OUT, SELECTOR, Json, container, node
from tests.relay.test_events import update
from tpu_slices.adapters.pubsub import PubSubPublisher
from tpu_slices.domain.model.facts import (
    Answer,
    Fact,
    Family,
    Heartbeat,
    HostsChanged,
    Listed,
    SlicesWanted,
    WorkloadChanged,
    WorkloadState,
)
from tpu_slices.domain.model.questions import HostsQuestion, ListQuestion, Question, RepeatQuestion
from tpu_slices.domain.model.slices import ClaimId, ClusterId, Owner, OwnerKind, WorkloadUid
from tpu_slices.wire.messages import decode_fact
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.real]

ASKED_AGAIN = 20
"""After how many looks: a relay that gets no answer of the API server in time gives none, and who asked asks again."""
DEMO = ClusterId("demo")
F = TypeVar("F", bound=Fact)


@dataclass
class Stage:
    """A cluster with controllers, topics, and every fact that the relay has published so far."""

    served: Served
    project: str
    emulator: str
    subscriber: Any = field(default_factory=SubscriberClient)
    topics: Any = field(default_factory=PublisherClient)
    received_facts: list[Fact] = field(default_factory=list)
    number: int = 0

    def __post_init__(self) -> None:
        for topic, subscription in (
            ("facts-demo", "facts"),
            ("updates-demo", "relay-demo"),
            ("questions-demo", "questions-demo"),
        ):
            path = f"projects/{self.project}/topics/{topic}"
            self.topics.create_topic(name=path)
            self.subscriber.create_subscription(
                name=self._subscription(subscription), topic=path, ack_deadline_seconds=LEASE_SECONDS
            )

    @property
    def publisher(self) -> PubSubPublisher:
        return PubSubPublisher(self.topics, self.project, PATIENCE_SECONDS)

    def apply(self, *objects: Json) -> None:
        result = self.served.kubectl("apply", "-f", "-", stdin=list(objects))
        assert result.code == 0, result.error

    def read(self, *arguments: str) -> Json:
        result = self.served.kubectl("get", "-o", "json", *arguments)
        assert result.code == 0, result.error
        found: Json = json.loads(result.out)
        return found

    def until(self, kind: type[F], true: Callable[[F], bool]) -> F:
        """Return the first fact of this kind for which the condition is true; wait for it."""

        def found() -> F | None:
            if self._received(kind, true) is None:
                self._pull()
            return self._received(kind, true)

        fact = until(found, lambda: f"such a {kind.__name__} in {self.received_facts}")
        assert fact is not None
        return fact

    def ask_until_answered(self, question: HostsQuestion) -> HostsChanged:
        """Ask, each time by the next number, until one of these questions is answered."""
        asked: set[int] = set()
        looks = count()

        def answer() -> HostsChanged | None:
            if next(looks) % ASKED_AGAIN == 0:
                self.number += 1
                asked.add(self.number)
                self.publisher.ask(DEMO, [replace(question, number=self.number)])
            self._pull()
            return self._received(HostsChanged, lambda fact: fact.answers in asked)

        fact = until(answer, lambda: f"an answer to {question} in {self.received_facts}")
        assert fact is not None
        return fact

    def _received(self, kind: type[F], true: Callable[[F], bool]) -> F | None:
        return next((fact for fact in self.received_facts if isinstance(fact, kind) and true(fact)), None)

    def forget(self) -> None:
        self.received_facts.clear()

    def _pull(self) -> None:
        """Pull what was published meanwhile."""
        new = pulled(self.subscriber, self._subscription("facts"))
        self.received_facts += [decode_fact(message.data, message.attributes) for message in new]

    def _subscription(self, name: str) -> str:
        return f"projects/{self.project}/subscriptions/{name}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One cluster for the tests of this file, which find it empty."""
    with serving(tmp_path_factory.mktemp("cluster"), controllers=True) as found:
        yield found


@pytest.fixture
def stage(served: Served, pubsub_emulator: str, project_id: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", pubsub_emulator)
    yield Stage(served, project_id, pubsub_emulator)
    emptied(served)


def emptied(served: Served) -> None:
    """Delete what a test has made, and what was made of it."""
    api = served.api
    for plural in ("jobsets", "nodes"):
        done(api.delete(path(plural, "" if plural == "nodes" else "default")))
    left = [path(plural) for plural in ("jobsets", "jobs", "pods", "nodes")]
    until(lambda: not any(api.read(each)["items"] for each in left), "an empty cluster")
    done(api.delete(path("events", "default")))


@contextmanager
def relaying(stage: Stage) -> Iterator[Running]:
    """Start the relay, wait until it is ready, and let it end."""
    with running(stage.served, stage.project, PUBSUB_EMULATOR_HOST=stage.emulator) as relay:
        relay.until(lambda: relay.ready)
        yield relay


def workload(**metadata: Any) -> Json:
    """Return a JobSet of two slices of four hosts each, as a user would write it."""
    pods = {"restartPolicy": "Never", "containers": [container()], "nodeSelector": dict(SELECTOR)}
    spec = {"parallelism": 4, "completions": 4, "backoffLimit": 0, "template": {"spec": pods}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"namespace": "default", "name": "llama", **metadata},
        "spec": {"replicatedJobs": [{"name": "workers", "replicas": 2, "template": {"spec": spec}}]},
    }


def host(number: int, *, ready: bool = True) -> Json:
    """Return one of our nodes as GKE registers it."""
    made = node(number, ready=ready)
    del made["metadata"]["resourceVersion"], made["metadata"]["uid"]
    made["metadata"]["labels"] |= {"cloud.google.com/gke-tpu-accelerator": "tpu-v4-podslice"}
    made["status"]["capacity"] = made["status"]["allocatable"] | {"memory": "400Gi", "pods": "15"}
    made["status"]["allocatable"] = made["status"]["capacity"]
    return made


def test_a_jobset_is_reported_from_its_demand_to_its_end(stage: Stage) -> None:
    with relaying(stage):
        stage.until(Heartbeat, lambda beat: beat.count == 0)
        stage.apply(workload())
        demand = stage.until(SlicesWanted, lambda fact: len(fact.waiting) == 2)
        uid = demand.workload.owner.uid
        assert uid == stage.read("jobset", "llama")["metadata"]["uid"]
        assert [leader.job_index for leader in demand.waiting] == [0, 1]
        assert demand.waiting[0].node_selector == tuple(sorted(SELECTOR.items()))
        assert ("jobset.sigs.k8s.io/job-index", "0") in demand.waiting[0].labels
        (request,) = demand.requests
        assert (request.replicas, request.topology, request.chips_per_pod) == (2, "2x2x4", 4)

        stage.apply(*(host(number) for number in range(4)))
        whole = stage.until(HostsChanged, lambda fact: fact.usable == 4)
        assert (whole.slice_id, whole.attempt, whole.joined) == ("tpu-llama-0-aaaaaaaaaaaaa", 1, 4)
        taken = stage.until(HostsChanged, lambda fact: len(fact.occupants) > 0)
        assert (taken.slice_id, taken.occupants[0].owner.uid) == (whole.slice_id, uid)
        stage.forget()

        assert stage.served.kubectl("delete", "jobset", "llama").code == 0
        ended = stage.until(WorkloadChanged, lambda fact: fact.state is WorkloadState.DELETED)
        assert ended.workload.owner.uid == uid
        stage.until(HostsChanged, lambda fact: fact.joined > 0 and not fact.occupants)


def test_an_exclusive_node_is_labeled_and_usable_from_then_on(stage: Stage) -> None:
    made = host(0)
    made["metadata"]["labels"] |= {
        "cloud.google.com/gke-tpu-topology": "2x2x1",
        "google.com/tpu-slice-exclusive-nodes": "true",
        "google.com/tpu-provisioner-parent-namespace": "default",
        "google.com/tpu-provisioner-parent-name": "llama-workers-0",
    }
    made["spec"] = {"taints": [{"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}]}
    with relaying(stage):
        stage.apply(made)
        stage.until(HostsChanged, lambda fact: (fact.usable, fact.joined) == (1, 1))
    labeled = stage.read("node", made["metadata"]["name"])
    assert labeled["metadata"]["labels"]["alpha.jobset.sigs.k8s.io/namespaced-job"] == "default_llama-workers-0"
    keys = [taint["key"] for taint in labeled["spec"]["taints"]]
    assert keys == ["google.com/tpu", "alpha.jobset.sigs.k8s.io/no-schedule"]


def test_hosts_are_closed_before_they_are_said_to_be_empty_and_opened_again(stage: Stage) -> None:
    slice_id = ClaimId("tpu-llama-0-aaaaaaaaaaaaa")
    close = HostsQuestion(slice_id=slice_id, attempt=1, number=1, asked_at=NOW, close=True)
    names = [host(number)["metadata"]["name"] for number in range(4)]

    def cordoned() -> list[bool]:
        return [stage.read("node", name)["spec"].get("unschedulable", False) for name in names]

    with relaying(stage):
        stage.apply(*(host(number) for number in range(4)))
        stage.until(HostsChanged, lambda fact: fact.usable == 4)
        answer = stage.ask_until_answered(close)
        assert (answer.usable, answer.joined, answer.closed, answer.occupants) == (0, 4, 4, ())
        assert cordoned() == [True] * 4
        answer = stage.ask_until_answered(replace(close, close=False))
        assert (answer.usable, answer.closed) == (4, 0)
        assert cordoned() == [False] * 4

        one = workload()
        one["spec"]["replicatedJobs"][0]["replicas"] = 1
        stage.apply(one)
        stage.until(HostsChanged, lambda fact: len(fact.occupants) > 0)
        answer = stage.ask_until_answered(close)
        assert (answer.closed, len(answer.occupants)) == (0, 1)
        assert cordoned() == [False] * 4


def test_all_pools_are_listed_on_request_and_the_hosts_of_one_are_repeated(stage: Stage) -> None:
    with relaying(stage):
        stage.apply(host(0))
        stage.until(HostsChanged, lambda fact: fact.usable == 1)
        stage.forget()
        stage.publisher.ask(DEMO, [ListQuestion(family=Family.HOSTS, asked_at=NOW)])
        listed = stage.until(Listed, lambda _: True)
        assert (listed.family, listed.asked_at, [*listed.digests]) == (
            Family.HOSTS,
            NOW,
            ["tpu-llama-0-aaaaaaaaaaaaa-1"],
        )
        stage.publisher.ask(DEMO, [RepeatQuestion(family=Family.HOSTS, keys=(*listed.digests,))])
        assert stage.until(HostsChanged, lambda _: True).joined == 1


def test_a_repeated_update_of_a_slice_becomes_one_event_on_its_leader_pod(stage: Stage) -> None:
    with relaying(stage) as relay:
        stage.apply(workload())
        demand = stage.until(SlicesWanted, lambda fact: len(fact.waiting) == 2)
        sent = update()
        job = replace(sent.job, owner=replace(sent.job.owner, namespace="default", uid=demand.workload.owner.uid))
        for _ in range(2):
            stage.publisher.announce(DEMO, [replace(sent, job=job)])
        relay.until(lambda: [line.get("kind") for line in relay.lines].count("SliceUpdate") >= 2)
        (event,) = (made for made in _events(stage) if made["reason"] == "NodePoolCreationSucceeded")
    pod = stage.read("pod", event["involvedObject"]["name"])
    assert event["involvedObject"]["uid"] == pod["metadata"]["uid"]
    assert pod["metadata"]["labels"]["jobset.sigs.k8s.io/job-index"] == "0"
    assert event["message"].endswith("All 4 hosts are usable.")


def test_questions_are_answered_from_the_api_server(stage: Stage) -> None:
    with relaying(stage):
        stage.apply(workload())
        uid = stage.until(SlicesWanted, lambda fact: bool(fact.waiting)).workload.owner.uid
        other = WorkloadUid("00000000-0000-4000-8000-000000000000")
        stage.publisher.ask(
            DEMO, [Question(owner=Owner(kind=OwnerKind.JOBSET, namespace="default", name="llama", uid=uid))]
        )
        assert stage.until(Answer, lambda answer: answer.workload.owner.uid == uid).state is WorkloadState.ACTIVE
        stage.publisher.ask(
            DEMO, [Question(owner=Owner(kind=OwnerKind.JOBSET, namespace="default", name="llama", uid=other))]
        )
        assert stage.until(Answer, lambda answer: answer.workload.owner.uid == other).state is WorkloadState.MISSING
        stage.forget()
        stage.publisher.ask(
            DEMO, [Question(owner=Owner(kind=OwnerKind.JOBSET, namespace="default", name="gone", uid=uid))]
        )
        assert stage.until(Answer, lambda answer: answer.workload.owner.name == "gone").state is WorkloadState.MISSING


def test_its_process_ends_although_a_call_is_under_way() -> None:
    program = (
        "import time; from concurrent.futures import ThreadPoolExecutor; from relay.__main__ import end\n"
        "ThreadPoolExecutor(1).submit(time.sleep, 3600)\n"
        "print('said', end=''); end(3)"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (3, "said")


def test_a_jobset_that_opted_out_is_counted_and_has_no_demand(stage: Stage) -> None:
    stage.apply(workload(annotations={OPTED_OUT: "true"}))
    with relaying(stage):
        stage.until(Heartbeat, lambda beat: beat.count == 1)
        stage.until(WorkloadChanged, lambda fact: fact.state is WorkloadState.ACTIVE)
        stage.apply(workload(name="gemma"))
        stage.until(SlicesWanted, lambda fact: fact.workload.owner.name == "gemma")
    assert not [
        fact for fact in stage.received_facts if isinstance(fact, SlicesWanted) and fact.workload.owner.name == "llama"
    ]


def _events(stage: Stage) -> list[Json]:
    found: list[Json] = stage.served.api.read(path("events", "default"))["items"]
    return found

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from google.cloud.pubsub_v1 import PublisherClient, SubscriberClient

from tests.builders import NOW, a_jobset, a_record, a_token, hosts_changed
from tests.published import LEASE_SECONDS
from tpu_slices.adapters.pubsub import PubSubPublisher
from tpu_slices.domain.model.facts import Family, HostsChanged
from tpu_slices.domain.model.joining import JoinToken
from tpu_slices.domain.model.questions import AnyQuestion, EchoQuestion, HostsQuestion, ListQuestion, Question
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import (
    ClaimId,
    ClusterId,
    Owner,
    OwnerKind,
    SliceId,
    WorkloadJob,
    WorkloadUid,
    claim_id,
    pool_name,
    slice_id,
)
from tpu_slices.domain.records.transitions import Transition
from tpu_slices.domain.reporting.node_groups import status_of
from tpu_slices.domain.reporting.reports import report
from tpu_slices.domain.reporting.waits import QueueState
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.publisher import NodeGroupUpdate, Publisher, SliceUpdate, WorkloadUpdate
from tpu_slices.wire.messages import (
    AnyRequest,
    EchoRequest,
    JoinRequest,
    ReconcileRequest,
    Update,
    decode_reconcile_request,
    decode_update,
)
from tpu_slices.wire.topics import Topic
from tpu_slices_simulator.fakes.publisher import FakePublisher
from tpu_standins.patience import PATIENCE_SECONDS

DEMO, OTHER = ClusterId("demo"), ClusterId("other")
TOPICS = [topic.of(cluster) for cluster in (DEMO, OTHER) for topic in (Topic.REQUESTS, Topic.UPDATES, Topic.QUESTIONS)]


@dataclass
class Setup:
    """A publisher, and everything that it has published so far."""

    publisher: Publisher
    requests: Callable[[], list[tuple[ClusterId, ClaimId | SliceId]]]
    waiting: Callable[[], dict[ClaimId | SliceId, WorkloadUid | None]]
    answers: Callable[[], list[tuple[ClusterId, SliceId, HostsChanged]]]
    echoes: Callable[[], list[tuple[ClusterId, datetime]]]
    updates: Callable[[], list[SliceUpdate]]
    reports: Callable[[], list[WorkloadUpdate]]
    node_groups: Callable[[], list[tuple[ClusterId, NodeGroupUpdate]]]
    questions: Callable[[], list[tuple[ClusterId, AnyQuestion]]]
    break_down: Callable[[], None]
    joins: Callable[[], list[tuple[ClusterId, JoinToken]]]
    tries: Callable[[], list[tuple[ClusterId, EchoQuestion]]]


def on_the_fake() -> Setup:
    fake = FakePublisher()
    return Setup(
        fake,
        lambda: fake.requests,
        lambda: fake.waiting,
        lambda: fake.answers,
        lambda: fake.echoes,
        lambda: fake.updates,
        lambda: [it for _, it in fake.reports],
        lambda: fake.node_groups,
        lambda: fake.questions,
        fake.fail_next,
        lambda: fake.joins,
        lambda: fake.tries,
    )


class EmulatedTopics:
    """The topics on the Pub/Sub emulator to which functions publish, and a pull subscription on each."""

    def __init__(self, project: str) -> None:
        self.publisher = PublisherClient()
        self._subscriber = SubscriberClient()
        self._project = project
        for topic in TOPICS:
            path = f"projects/{project}/topics/{topic}"
            self.publisher.create_topic(name=path)
            self._subscriber.create_subscription(
                name=self._subscription(topic), topic=path, ack_deadline_seconds=LEASE_SECONDS
            )

    def delete(self) -> None:
        for topic in TOPICS:
            self.publisher.delete_topic(topic=f"projects/{self._project}/topics/{topic}")

    def drain(self, topic: str) -> list[Any]:
        """Pull every message that was published before a last one: the emulator delivers what it accepts in order."""
        self.publisher.publish(f"projects/{self._project}/topics/{topic}", b"", last="yes").result(PATIENCE_SECONDS)
        messages: list[Any] = []
        while not any("last" in message.attributes for message in messages):
            subscription = self._subscription(topic)
            answer = self._subscriber.pull(subscription=subscription, max_messages=100, timeout=PATIENCE_SECONDS)
            messages += [received.message for received in answer.received_messages]
            if ids := [received.ack_id for received in answer.received_messages]:
                self._subscriber.acknowledge(subscription=subscription, ack_ids=ids)
        return [message for message in messages if "last" not in message.attributes]

    def _subscription(self, topic: str) -> str:
        return f"projects/{self._project}/subscriptions/{topic}"


def on_the_emulator(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Setup:
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", request.getfixturevalue("pubsub_emulator"))
    project = f"test-{uuid.uuid4().hex[:16]}"
    topics = EmulatedTopics(project)

    def requests() -> list[AnyRequest]:
        drained = topics.drain(Topic.REQUESTS.of(DEMO))
        return [decode_reconcile_request(message.data, message.attributes) for message in drained]

    def published(topic: Topic = Topic.UPDATES) -> list[tuple[ClusterId, Update | AnyQuestion]]:
        found = [(cluster, message) for cluster in (DEMO, OTHER) for message in topics.drain(topic.of(cluster))]
        assert all(message.attributes["cluster"] == cluster for cluster, message in found)
        return [(cluster, decode_update(message.data, message.attributes)) for cluster, message in found]

    return Setup(
        PubSubPublisher(topics.publisher, project),
        lambda: [(each.cluster, each.slice_id) for each in requests() if isinstance(each, ReconcileRequest)],
        lambda: {each.slice_id: each.waiting for each in requests() if isinstance(each, ReconcileRequest)},
        lambda: [
            (each.cluster, SliceId(each.slice_id), each.answer)
            for each in requests()
            if isinstance(each, ReconcileRequest) and each.answer
        ],
        lambda: [(each.cluster, each.asked_at) for each in requests() if isinstance(each, EchoRequest)],
        lambda: [update for _, update in published() if isinstance(update, SliceUpdate)],
        lambda: [report for _, report in published() if isinstance(report, WorkloadUpdate)],
        lambda: [(cluster, update) for cluster, update in published() if isinstance(update, NodeGroupUpdate)],
        lambda: [(cluster, it) for cluster, it in published(Topic.QUESTIONS) if isinstance(it, AnyQuestion)],
        topics.delete,
        lambda: [(each.cluster, each.token) for each in requests() if isinstance(each, JoinRequest)],
        lambda: [(cluster, it) for cluster, it in published() if isinstance(it, EchoQuestion)],
    )


@pytest.fixture(
    params=[
        "fake",
        pytest.param("emulator", marks=[pytest.mark.emulators, pytest.mark.enable_socket]),
    ]
)
def setup(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Setup:
    return on_the_fake() if request.param == "fake" else on_the_emulator(request, monkeypatch)


def update(transition_number: int) -> SliceUpdate:
    job = WorkloadJob(
        cluster=DEMO,
        owner=Owner(kind=OwnerKind.JOBSET, namespace="research", name="llama", uid=WorkloadUid("u-1")),
        replicated_job="workers",
        job_index=transition_number,
    )
    now = datetime(2026, 11, 1, 12, 0, transition_number, tzinfo=UTC)
    transition = Transition(at=now, phase=Phase.READY, reason=Reason.READY, message="All 4 hosts are usable.")
    pool = pool_name(claim_id(job), 1)
    return SliceUpdate(
        job=job, slice_id=claim_id(job), pool=pool, transition_number=transition_number, transition=transition
    )


def test_every_reconcile_request_arrives(setup: Setup) -> None:
    slices = [ClaimId(f"tpu-llama-{number}-aaaaaaaaaaaaa") for number in range(60)]
    setup.publisher.request_reconcile(DEMO, slices)
    assert sorted(setup.requests()) == sorted((DEMO, slice_) for slice_ in slices)


def test_a_request_says_whose_pods_wait(setup: Setup) -> None:
    slices = [ClaimId(f"tpu-llama-{number}-aaaaaaaaaaaaa") for number in range(2)]
    setup.publisher.request_reconcile(DEMO, slices, WorkloadUid("u-1"))
    assert setup.waiting() == dict.fromkeys(slices, "u-1")


def test_an_answer_is_passed_on_with_the_request(setup: Setup) -> None:
    answer = hosts_changed(usable=0, joined=4, closed=4, answers=2, highest=2)
    first, second = (slice_id(answer.slice_id, attempt) for attempt in (1, 2))
    setup.publisher.pass_on(DEMO, first, answer)
    setup.publisher.pass_on(DEMO, second, answer)
    assert sorted(setup.answers(), key=lambda each: each[1]) == [
        (DEMO, first, answer),
        (DEMO, second, answer),
    ]


def test_a_request_for_an_echo_arrives(setup: Setup) -> None:
    setup.publisher.request_echo(DEMO, NOW)
    assert setup.echoes() == [(DEMO, NOW)]


def test_the_way_of_updates_is_tried_by_a_question_that_comes_by_it(setup: Setup) -> None:
    setup.publisher.try_updates(DEMO, NOW)
    assert setup.tries() == [(DEMO, EchoQuestion(asked_at=NOW, by_updates=True))]
    assert setup.questions() == []


def test_a_token_arrives_for_the_hosts_that_it_is_for(setup: Setup) -> None:
    token = a_token()
    setup.publisher.request_join(DEMO, token)
    assert setup.joins() == [(DEMO, token)]


def test_updates_arrive_as_they_were_announced(setup: Setup) -> None:
    announced = [update(1), update(2)]
    setup.publisher.announce(DEMO, announced)
    assert sorted(setup.updates(), key=lambda each: each.transition_number) == announced


def test_reports_on_jobsets_arrive_as_they_were_announced(setup: Setup) -> None:
    made = report(a_jobset(), [a_record()], QueueState(), NOW)
    announced = WorkloadUpdate(
        owner=Owner(kind=OwnerKind.JOBSET, namespace="research", name="llama", uid=WorkloadUid("u-1")),
        report=made,
        at=NOW,
        count=1,
    )
    setup.publisher.announce_workloads(DEMO, [announced])
    assert setup.reports() == [announced]


def test_the_status_of_a_node_group_arrives_as_it_was_announced(setup: Setup) -> None:
    owner = Owner(kind=OwnerKind.TPU_NODE_GROUP, namespace="research", name="llama", uid=WorkloadUid("u-1"))
    record = a_record(job=WorkloadJob.declared(DEMO, owner))
    announced = NodeGroupUpdate(owner=owner, slice_id=record.maker, status=status_of(record, None), at=NOW)
    setup.publisher.announce_node_group(DEMO, announced)
    assert setup.node_groups() == [(DEMO, announced)]


LIST = ListQuestion(family=Family.HOSTS, asked_at=NOW)


def test_questions_arrive_at_their_cluster(setup: Setup) -> None:
    alive = Question(owner=Owner(kind=OwnerKind.JOBSET, namespace="research", name="llama", uid=WorkloadUid("u-1")))
    setup.publisher.ask(DEMO, [alive])
    setup.publisher.ask(OTHER, [LIST])
    assert sorted(setup.questions(), key=lambda each: each[0]) == [(DEMO, alive), ("other", LIST)]


def test_questions_about_hosts_arrive_as_they_were_asked(setup: Setup) -> None:
    close = HostsQuestion(slice_id=ClaimId("tpu-llama-0-aaaaaaaaaaaaa"), attempt=2, number=3, asked_at=NOW, close=True)
    setup.publisher.ask(DEMO, [close])
    assert setup.questions() == [(DEMO, close)]
    setup.publisher.ask(OTHER, [LIST])
    assert ("other", LIST) in setup.questions()


@pytest.mark.parametrize(
    ("publish", "published"),
    [
        ("request_reconcile", "requests"),
        ("announce", "updates"),
        ("announce_workloads", "reports"),
        ("ask", "questions"),
    ],
)
def test_an_empty_list_publishes_no_message(setup: Setup, publish: str, published: str) -> None:
    getattr(setup.publisher, publish)(DEMO, [])
    assert getattr(setup, published)() == []


HALF = "\ud800"
"""One half of a surrogate pair, which UTF-8 cannot hold."""


@pytest.mark.parametrize(
    "name", ["n" * 1_100_000, "n" * 1_100, "é" * 550, HALF], ids=["data", "owner", "bytes", "text"]
)
def test_what_no_message_can_hold_is_a_permanent_error_and_nothing_is_published(setup: Setup, name: str) -> None:
    owner = Owner(kind=OwnerKind.JOBSET, namespace="research", name=name, uid=WorkloadUid("u-1"))
    job = replace(update(1).job, owner=owner)
    with pytest.raises(Permanent):
        setup.publisher.announce(DEMO, [update(2), replace(update(1), job=job)])
    with pytest.raises(Permanent):
        setup.publisher.ask(DEMO, [LIST, Question(owner=owner)])
    with pytest.raises(Permanent):
        setup.publisher.request_reconcile(DEMO, [update(1).slice_id, ClaimId(name)])
    assert (setup.requests(), setup.updates(), setup.questions()) == ([], [], [])


def test_a_failing_publisher_is_a_temporary_error(setup: Setup) -> None:
    setup.break_down()
    with pytest.raises(Temporary):
        setup.publisher.request_reconcile(DEMO, [ClaimId("tpu-llama-0-aaaaaaaaaaaaa")])

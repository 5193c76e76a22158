import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from google.api_core.exceptions import DeadlineExceeded
from google.cloud.pubsub_v1 import PublisherClient, SubscriberClient

from tests.builders import NOW, a_jobset, a_record
from tests.fakes.bus import FakeBus
from tpu_slices.adapters.pubsub import PubSubBus
from tpu_slices.domain.model.decisions import Reason
from tpu_slices.domain.model.facts import Question
from tpu_slices.domain.model.records import Phase, Transition
from tpu_slices.domain.model.slices import ClusterId, JobRef, JobSetUid, SliceId, pool_name, slice_id
from tpu_slices.domain.reporting.reports import Around, report
from tpu_slices.ports.bus import Bus, JobSetUpdate, SliceUpdate
from tpu_slices.ports.errors import Temporary
from tpu_slices.wire.messages import decode_for_relay, decode_nudge

DEMO = ClusterId("demo")


@dataclass
class Heard:
    """A bus, and all that was said on it so far."""

    bus: Bus
    nudges: Callable[[], list[tuple[ClusterId, SliceId]]]
    updates: Callable[[], list[SliceUpdate]]
    reports: Callable[[], list[JobSetUpdate]]
    questions: Callable[[], list[tuple[ClusterId, Question]]]
    break_down: Callable[[], None]


def on_the_fake() -> Heard:
    fake = FakeBus()
    return Heard(
        fake,
        lambda: fake.nudges,
        lambda: fake.updates,
        lambda: [it for _, it in fake.reports],
        lambda: fake.questions,
        fake.fail_next,
    )


class EmulatedTopics:
    """The two topics on the Pub/Sub emulator, and a pull subscription on each."""

    def __init__(self, project: str) -> None:
        self.publisher = PublisherClient()
        self._subscriber = SubscriberClient()
        self._project = project
        for topic in ("nudges", "slice-updates"):
            path = f"projects/{project}/topics/{topic}"
            self.publisher.create_topic(name=path)
            self._subscriber.create_subscription(name=self._subscription(topic), topic=path)

    def delete(self) -> None:
        for topic in ("nudges", "slice-updates"):
            self.publisher.delete_topic(topic=f"projects/{self._project}/topics/{topic}")

    def drain(self, topic: str) -> list[Any]:
        """Take every message that was published; what was taken by the emulator can be pulled at once."""
        messages: list[Any] = []
        while True:
            try:
                answer = self._subscriber.pull(
                    subscription=self._subscription(topic), max_messages=100, timeout=1, retry=None
                )
            except DeadlineExceeded:
                return messages
            if not answer.received_messages:
                return messages
            messages += [received.message for received in answer.received_messages]
            ids = [received.ack_id for received in answer.received_messages]
            self._subscriber.acknowledge(subscription=self._subscription(topic), ack_ids=ids)

    def _subscription(self, topic: str) -> str:
        return f"projects/{self._project}/subscriptions/{topic}"


def on_the_emulator(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Heard:
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", request.getfixturevalue("pubsub_emulator"))
    project = f"test-{uuid.uuid4().hex[:16]}"
    topics = EmulatedTopics(project)

    def nudges() -> list[tuple[ClusterId, SliceId]]:
        decoded = [decode_nudge(message.data, message.attributes) for message in topics.drain("nudges")]
        return [(nudge.cluster, nudge.slice_id) for nudge in decoded]

    def said() -> list[tuple[ClusterId, SliceUpdate | JobSetUpdate | Question]]:
        return [
            (ClusterId(message.attributes["cluster"]), decode_for_relay(message.data, message.attributes))
            for message in topics.drain("slice-updates")
        ]

    return Heard(
        PubSubBus(topics.publisher, project),
        nudges,
        lambda: [update for _, update in said() if isinstance(update, SliceUpdate)],
        lambda: [report for _, report in said() if isinstance(report, JobSetUpdate)],
        lambda: [(cluster, question) for cluster, question in said() if isinstance(question, Question)],
        topics.delete,
    )


@pytest.fixture(
    params=[
        "fake",
        pytest.param("emulator", marks=[pytest.mark.emulators, pytest.mark.enable_socket]),
    ]
)
def heard(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Heard:
    return on_the_fake() if request.param == "fake" else on_the_emulator(request, monkeypatch)


def update(turn: int) -> SliceUpdate:
    job = JobRef(
        cluster=DEMO, namespace="research", jobset="llama", uid=JobSetUid("u-1"), replicated_job="workers", index=turn
    )
    now = datetime(2026, 11, 1, 12, 0, turn, tzinfo=UTC)
    transition = Transition(at=now, phase=Phase.READY, reason=Reason.READY, sentence="All 4 hosts are usable.")
    pool = pool_name(slice_id(job), 1)
    return SliceUpdate(job=job, slice_id=slice_id(job), pool=pool, turn=turn, transition=transition)


def test_every_slice_that_is_nudged_arrives(heard: Heard) -> None:
    slices = [SliceId(f"tpu-llama-{number}-aaaaaaaaaaaaa") for number in range(60)]
    heard.bus.nudge(DEMO, slices)
    assert sorted(heard.nudges()) == sorted((DEMO, slice_) for slice_ in slices)


def test_updates_arrive_as_they_were_told(heard: Heard) -> None:
    told = [update(1), update(2)]
    heard.bus.tell(DEMO, told)
    assert sorted(heard.updates(), key=lambda each: each.turn) == told


def test_reports_on_jobsets_arrive_as_they_were_made(heard: Heard) -> None:
    made = report(a_jobset(), [a_record()], Around(), NOW)
    told = JobSetUpdate(namespace="research", name="llama", uid=JobSetUid("u-1"), report=made, at=NOW, times=1)
    heard.bus.report(DEMO, [told])
    assert heard.reports() == [told]


def test_questions_arrive_at_the_cluster_that_is_asked(heard: Heard) -> None:
    alive = Question(namespace="research", name="llama", uid=JobSetUid("u-1"))
    heard.bus.ask(DEMO, [alive])
    heard.bus.ask(ClusterId("other"), [Question()])
    assert sorted(heard.questions(), key=lambda asked: asked[0]) == [(DEMO, alive), ("other", Question())]


def test_nothing_to_say_is_said_without_a_message(heard: Heard) -> None:
    heard.bus.nudge(DEMO, [])
    heard.bus.tell(DEMO, [])
    heard.bus.ask(DEMO, [])
    assert (heard.nudges(), heard.updates(), heard.questions()) == ([], [], [])


def test_a_bus_that_takes_nothing_is_a_temporary_trouble(heard: Heard) -> None:
    heard.break_down()
    with pytest.raises(Temporary):
        heard.bus.nudge(DEMO, [SliceId("tpu-llama-0-aaaaaaaaaaaaa")])

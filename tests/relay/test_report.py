import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from relay.report import Outbox
from shared.domain.facts import Answer, Fact, Heartbeat, HostsChanged, JobSetChanged, JobSetRef, JobSetState
from shared.domain.slices import JobSetUid, SliceId
from shared.ports import Temporary
from shared.wire.messages import Message, decode_fact

DEADLINE = 5.0


class FakeTopic:
    """Takes messages, or fails so many times first; a hold keeps it from answering."""

    def __init__(self, failures: int = 0) -> None:
        self.taken: list[Fact] = []
        self.tries = 0
        self.free = threading.Event()
        self.free.set()
        self.entered = threading.Event()
        self._failures = failures
        self._taken = threading.Condition()

    def __call__(self, messages: Sequence[Message]) -> None:
        self.entered.set()
        assert self.free.wait(DEADLINE)
        self.tries += 1
        if self.tries <= self._failures:
            raise Temporary("the topic is away")
        with self._taken:
            self.taken += [decode_fact(message.data, message.attributes) for message in messages]
            self._taken.notify_all()

    def wait_for(self, count: int) -> list[Fact]:
        with self._taken:
            assert self._taken.wait_for(lambda: len(self.taken) >= count, DEADLINE)
        return self.taken


@contextmanager
def running(outbox: Outbox) -> Iterator[None]:
    thread = threading.Thread(target=outbox.run)
    thread.start()
    try:
        yield
    finally:
        outbox.close(0)
        thread.join(DEADLINE)
        assert not thread.is_alive()


def outbox(topic: FakeTopic, most: int = 100) -> Outbox:
    return Outbox(topic, random.Random(1), most)


def hosts(usable: int, slice_id: str = "tpu-a") -> HostsChanged:
    return HostsChanged(slice_id=SliceId(slice_id), attempt=1, usable=usable, joined=4, sequence=usable)


def jobset(uid: str, state: JobSetState) -> JobSetChanged:
    ref = JobSetRef(namespace="research", name="llama", uid=JobSetUid(uid), generation=1, resource_version="1")
    return JobSetChanged(jobset=ref, state=state)


def test_facts_are_sent_in_the_order_they_came() -> None:
    topic = FakeTopic()
    box = outbox(topic)
    with running(box):
        box.post([jobset("u-1", JobSetState.ACTIVE), hosts(1)])
        box.post([Heartbeat(count=1, digest="d")])
        taken = topic.wait_for(3)
    assert taken == [jobset("u-1", JobSetState.ACTIVE), hosts(1), Heartbeat(count=1, digest="d")]


def test_facts_that_are_not_taken_are_tried_again() -> None:
    topic = FakeTopic(failures=2)
    box = outbox(topic)
    with running(box):
        box.post([hosts(1)])
        assert topic.wait_for(1) == [hosts(1)]
    assert topic.tries == 3


def test_of_two_facts_about_the_same_the_newer_is_sent() -> None:
    topic = FakeTopic()
    box = outbox(topic)
    box.post([hosts(1), hosts(2), hosts(1, "tpu-b")])
    with running(box):
        assert topic.wait_for(2) == [hosts(2), hosts(1, "tpu-b")]


def test_a_fact_that_failed_does_not_replace_a_newer_one() -> None:
    topic = FakeTopic(failures=1)
    topic.free.clear()
    box = outbox(topic)
    with running(box):
        box.post([hosts(1)])
        assert topic.entered.wait(DEADLINE)
        box.post([hosts(2)])
        topic.free.set()
        assert topic.wait_for(1) == [hosts(2)]


def test_a_full_box_drops_the_oldest() -> None:
    topic = FakeTopic()
    box = outbox(topic, most=2)
    box.post([hosts(1, "tpu-a"), hosts(1, "tpu-b"), hosts(1, "tpu-c")])
    with running(box):
        assert topic.wait_for(2) == [hosts(1, "tpu-b"), hosts(1, "tpu-c")]


def test_a_fact_too_large_to_be_sent_does_not_hold_up_the_others() -> None:
    topic = FakeTopic()
    box = outbox(topic)
    with running(box):
        box.post([Heartbeat(count=1, digest="d" * 2_000_000), hosts(1)])
        assert topic.wait_for(1) == [hosts(1)]


def test_closing_waits_until_all_is_sent() -> None:
    topic = FakeTopic()
    box = outbox(topic)
    thread = threading.Thread(target=box.run)
    box.post([hosts(1), Answer(jobset=jobset("u-1", JobSetState.ACTIVE).jobset, state=JobSetState.ACTIVE)])
    thread.start()
    assert box.close(DEADLINE)
    thread.join(DEADLINE)
    assert len(topic.taken) == 2


def test_closing_gives_up_on_a_topic_that_takes_nothing() -> None:
    topic = FakeTopic(failures=3)
    box = outbox(topic)
    box.post([hosts(1)])
    assert not box.close(0.01)
    with running(box):
        topic.wait_for(1)

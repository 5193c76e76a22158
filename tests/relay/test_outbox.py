import random
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest

from relay import outbox as outbox_module
from relay.health import Health, Limits
from relay.objects import Kind
from relay.outbox import A_MESSAGE, MOST_BYTES, Outbox
from tests.relay.watched import START
from tpu_slices.domain.model.facts import (
    Answer,
    Fact,
    Family,
    Heartbeat,
    HostsChanged,
    Listed,
    SlicesWanted,
    WaitingLeader,
    WorkloadChanged,
    WorkloadRef,
    WorkloadState,
)
from tpu_slices.domain.model.questions import RepeatQuestion
from tpu_slices.domain.model.slices import ClaimId, Owner, OwnerKind, WorkloadUid
from tpu_slices.ports.errors import Temporary
from tpu_slices.wire.messages import Message, decode_fact
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.testing.waiting import beside


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the outbox try again soon."""
    monkeypatch.setattr(outbox_module, "rising_pause", lambda *_: 0.01)


class FakeTopic:
    """Accepts messages after `failures` failures; while `free` is cleared it does not answer."""

    def __init__(self, failures: int = 0) -> None:
        self.accepted: list[Fact] = []
        self.tries = 0
        self.free = threading.Event()
        self.free.set()
        self.entered = threading.Event()
        self._failures = failures
        self._accepted = threading.Condition()

    def __call__(self, messages: Sequence[Message]) -> None:
        self.entered.set()
        assert self.free.wait(PATIENCE_SECONDS)
        self.tries += 1
        if self.tries <= self._failures:
            raise Temporary("the topic is away")
        with self._accepted:
            self.accepted += [decode_fact(message.data, message.attributes) for message in messages]
            self._accepted.notify_all()

    def wait_for(self, count: int) -> list[Fact]:
        with self._accepted:
            assert self._accepted.wait_for(lambda: len(self.accepted) >= count, PATIENCE_SECONDS)
        return self.accepted


def running(outbox: Outbox) -> AbstractContextManager[None]:
    return beside(outbox.run, lambda: outbox.close(0))


@dataclass
class Setup:
    """An outbox and its clock, stepped by the test."""

    topic: FakeTopic
    most: int = MOST_BYTES
    now: datetime = START

    def __post_init__(self) -> None:
        self.health = Health(lambda: self.now)
        self.box = Outbox(self.topic, random.Random(1), lambda: self.now, self.health, self.most)


def outbox(topic: FakeTopic, most: int = MOST_BYTES) -> Outbox:
    return Setup(topic, most).box


def hosts(usable: int, slice_id: str = "tpu-a") -> HostsChanged:
    return HostsChanged(
        slice_id=ClaimId(f"{slice_id}-aaaaaaaaaaaaa"),
        attempt=1,
        usable=usable,
        joined=4,
        closed=0,
        occupants=(),
        sequence=usable,
    )


def beat(count: int = 1) -> Heartbeat:
    return Heartbeat(count=count)


def listed(family: Family = Family.DEMAND, part: int = 0, asked_at: datetime = START) -> Listed:
    return Listed(family=family, asked_at=asked_at, after=None, up_to=None, digests={}, part=part, parts=2, sequence=7)


def jobset(uid: str, state: WorkloadState) -> WorkloadChanged:
    ref = WorkloadRef(
        owner=Owner(kind=OwnerKind.JOBSET, namespace="research", name="llama", uid=WorkloadUid(uid)),
        generation=1,
        resource_version="1",
    )
    return WorkloadChanged(workload=ref, state=state)


def test_facts_are_published_in_the_order_they_were_posted() -> None:
    topic = FakeTopic()
    box = outbox(topic)
    with running(box):
        box.post([jobset("u-1", WorkloadState.ACTIVE), hosts(1)])
        box.post([beat(1)])
        accepted = topic.wait_for(3)
    assert accepted == [jobset("u-1", WorkloadState.ACTIVE), hosts(1), beat(1)]


def test_facts_that_could_not_be_published_are_retried() -> None:
    topic = FakeTopic(failures=2)
    box = outbox(topic)
    with running(box):
        box.post([hosts(1)])
        assert topic.wait_for(1) == [hosts(1)]
    assert topic.tries == 3


def test_of_two_facts_on_one_subject_the_newer_is_published() -> None:
    topic = FakeTopic()
    box = outbox(topic)
    box.post([hosts(1), hosts(2), hosts(1, "tpu-b")])
    with running(box):
        assert topic.wait_for(2) == [hosts(2), hosts(1, "tpu-b")]


def test_a_later_count_of_hosts_does_not_take_the_place_of_an_answer() -> None:
    topic = FakeTopic()
    box = outbox(topic)
    answer, later = replace(hosts(1), answers=1), replace(hosts(2), answers=2)
    box.post([answer, later, hosts(3)])
    with running(box):
        assert topic.wait_for(2) == [later, hosts(3)]


def test_a_fact_that_failed_does_not_replace_a_newer_one() -> None:
    topic = FakeTopic(failures=1)
    topic.free.clear()
    box = outbox(topic)
    with running(box):
        box.post([hosts(1)])
        assert topic.entered.wait(PATIENCE_SECONDS)
        box.post([hosts(2)])
        topic.free.set()
        assert topic.wait_for(1) == [hosts(2)]


def test_a_full_outbox_drops_the_oldest_fact() -> None:
    topic = FakeTopic()
    box = outbox(topic, most=2 * A_MESSAGE + 500)
    box.post([hosts(1, "tpu-a"), hosts(1, "tpu-b"), hosts(1, "tpu-c")])
    with running(box):
        assert topic.wait_for(2) == [hosts(1, "tpu-b"), hosts(1, "tpu-c")]


def test_a_fact_too_large_to_be_published_does_not_hold_up_the_others() -> None:
    topic = FakeTopic()
    box = outbox(topic)
    with running(box):
        box.post([replace(jobset("u-1", WorkloadState.ACTIVE), queue="q" * 2_000_000), hosts(1)])
        assert topic.wait_for(1) == [hosts(1)]


def test_closing_waits_until_everything_is_published() -> None:
    topic = FakeTopic()
    box = outbox(topic)
    box.post([hosts(1), Answer(workload=jobset("u-1", WorkloadState.ACTIVE).workload, state=WorkloadState.ACTIVE)])
    with running(box):
        assert box.close(PATIENCE_SECONDS)
    assert len(topic.accepted) == 2


def test_closing_gives_up_on_a_topic_that_fails() -> None:
    topic = FakeTopic(failures=3)
    box = outbox(topic)
    box.post([hosts(1)])
    assert not box.close(0.01)
    with running(box):
        topic.wait_for(1)


def demand(*indices: int, uid: str = "u-1", generation: int = 1) -> SlicesWanted:
    leaders = tuple(WaitingLeader(replicated_job="workers", job_index=index) for index in indices)
    ref = replace(jobset(uid, WorkloadState.ACTIVE).workload, generation=generation)
    return SlicesWanted(workload=ref, requests=(), waiting=leaders)


@pytest.mark.parametrize(
    ("held", "later", "published"),
    [
        ([demand(0, 1), demand(2)], [demand(1)], [demand(0, 1), demand(2), demand(1)]),
        ([demand(0, 1), demand(2)], [demand(0), demand(1, 3)], [demand(2), demand(0), demand(1, 3)]),
        ([demand(0)], [demand(0, 1)], [demand(0, 1)]),
        ([demand(0, 1)], [demand(1, generation=2)], [demand(1, generation=2)]),
        ([demand(0)], [demand(0, uid="u-2")], [demand(0), demand(0, uid="u-2")]),
    ],
    ids=["a part is named again", "all of a part is", "more is named", "at a later generation", "of another workload"],
)
def test_of_demand_what_names_jobs_that_no_later_fact_of_its_generation_names_is_published(
    held: list[Fact], later: list[Fact], published: list[Fact]
) -> None:
    topic = FakeTopic()
    box = outbox(topic)
    box.post(held)
    box.post(later)
    assert box.held == len(published)
    with running(box):
        assert topic.wait_for(len(published)) == published


def test_demand_that_is_sent_in_vain_is_kept_beside_what_was_told_meanwhile() -> None:
    topic = FakeTopic(failures=1)
    topic.free.clear()
    box = outbox(topic)
    with running(box):
        box.post([demand(0), demand(1)])
        assert topic.entered.wait(PATIENCE_SECONDS)
        box.post([demand(1, 2)])
        topic.free.set()
        assert topic.wait_for(2) == [demand(0), demand(1, 2)]


def test_demand_is_withdrawn_as_a_whole_with_what_was_told_first_of_it() -> None:
    setup = Setup(FakeTopic())
    asked: list[RepeatQuestion] = []
    setup.box.demand_expired = asked.append
    setup.box.post([demand(0)])
    setup.now += timedelta(minutes=4)
    setup.box.post([demand(1)])
    setup.now += timedelta(minutes=3)
    setup.box.post([beat()])
    with running(setup.box):
        assert setup.topic.wait_for(1) == [beat()]
    assert asked == [RepeatQuestion(family=Family.DEMAND, keys=("u-1",))]


def test_demand_that_was_not_published_in_time_is_withdrawn_and_what_still_holds_of_it_asked_for() -> None:
    setup = Setup(FakeTopic())
    asked: list[RepeatQuestion] = []
    setup.box.demand_expired = asked.append
    setup.box.post([demand(0), jobset("u-2", WorkloadState.DELETED)])
    setup.now += timedelta(minutes=3)
    setup.box.post([demand(0, uid="u-3")])
    setup.now += timedelta(minutes=4)
    with running(setup.box):
        assert setup.topic.wait_for(2) == [jobset("u-2", WorkloadState.DELETED), demand(0, uid="u-3")]
    assert asked == [RepeatQuestion(family=Family.DEMAND, keys=("u-1",))]


@pytest.mark.parametrize("late", [beat(), replace(beat(), first=True), *(listed(family) for family in Family)])
def test_what_confirms_records_and_was_not_published_in_time_is_withdrawn(late: Fact) -> None:
    setup = Setup(FakeTopic())
    asked: list[RepeatQuestion] = []
    setup.box.demand_expired = asked.append
    setup.box.post([late])
    setup.now += timedelta(minutes=7)
    setup.box.post([hosts(1)])
    with running(setup.box):
        assert setup.topic.wait_for(1) == [hosts(1)]
    assert asked == []


def test_a_part_of_a_list_takes_the_place_of_the_same_part_of_an_earlier_one_of_its_family_alone() -> None:
    topic = FakeTopic()
    box = outbox(topic)
    later = START + timedelta(minutes=3)
    box.post([listed(part=0), listed(part=1), listed(Family.HOSTS), listed(part=0, asked_at=later)])
    with running(box):
        assert topic.wait_for(3) == [listed(part=1), listed(Family.HOSTS), listed(part=0, asked_at=later)]


def test_a_topic_that_fails_for_long_makes_the_relay_unready_until_it_recovers() -> None:
    topic = FakeTopic(failures=2)
    faults: list[list[str]] = []

    def send(messages: Sequence[Message]) -> None:
        faults.append(health.unready())
        clock.now += timedelta(minutes=3)
        topic(messages)

    clock = Setup(topic)
    health = Health(lambda: clock.now, Limits(silence=timedelta(hours=1)))
    for kind in Kind:
        health.bookmarked(kind)
    box = Outbox(send, random.Random(1), lambda: clock.now, health)
    with running(box):
        box.post([hosts(1)])
        topic.wait_for(1)
    assert faults == [[], [], ["publishing: has failed for 180 s: the topic is away"]]
    assert health.unready() == []


def test_the_number_of_held_facts_grows_with_jobs_alone_while_a_topic_is_unavailable() -> None:
    setup = Setup(FakeTopic())
    for minute in range(60):
        setup.now += timedelta(minutes=1)
        setup.box.post(
            [
                beat(minute),
                demand(minute % 4),
                hosts(minute % 4),
                jobset("u-1", WorkloadState.ACTIVE),
            ]
        )
    assert setup.box.held == 3 + 4

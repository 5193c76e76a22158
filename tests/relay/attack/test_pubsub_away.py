"""Minutes in which Pub/Sub is unavailable while the cluster changes."""

import random
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from relay.fact_queue import FactQueue
from relay.health import Health
from relay.objects import Bookmarked, Kind, Listed, Lost, Saw, Workload
from relay.outbox import Outbox
from tests.builders import CLUSTER
from tests.relay.objects import Json, jobset, node, pod
from tests.relay.watched import KINDS, START, a_relay, counts, read, states
from tpu_slices.domain.model.facts import Fact, Heartbeat, SlicesWanted, WorkloadState
from tpu_slices.wire.messages import Message, decode_fact

MANY = 20


class Outage:
    """A relay and its outbox; nothing is published before the test calls `come_back`."""

    def __init__(self) -> None:
        self.now: datetime = START
        self.published: list[Fact] = []
        health = Health(lambda: self.now)
        self.outbox = Outbox(self._publish, random.Random(1), lambda: self.now, health)
        self.outbox.close(0)  # so that `run` publishes what is held, and returns
        self.relay_ = a_relay(FactQueue(CLUSTER), lambda: self.now, post=self.outbox.post, health=health)
        self.outbox.demand_expired = self.relay_.ask
        for kind in Kind:
            self.relay_.put(Listed(kind, [], "1"))

    def _publish(self, messages: Sequence[Message]) -> None:
        self.published += [decode_fact(message.data, message.attributes) for message in messages]

    def see(self, *objects: Json) -> None:
        for obj in objects:
            self.relay_.put(Saw(KINDS[obj["kind"]], read(obj), "1"))

    def lose(self, obj: Json) -> None:
        seen = read(obj)
        last = seen if isinstance(seen, Workload) else None
        self.relay_.put(Lost(KINDS[obj["kind"]], seen.identity, "1", last, deleted=True))

    def pass_time(self, minutes: int) -> None:
        for _ in range(minutes * 4):
            self.now += timedelta(seconds=15)
            for kind in Kind:
                self.relay_.put(Bookmarked(kind, "1"))
            self.relay_.turn()

    def come_back(self) -> list[Fact]:
        self.outbox.run()
        self.relay_.turn()
        self.outbox.run()
        return self.published

    def demand(self) -> set[str]:
        return {fact.workload.owner.uid for fact in self.published if isinstance(fact, SlicesWanted)}


@pytest.fixture
def outage() -> Outage:
    return Outage()


def waiting(number: int) -> tuple[Json, Json]:
    name, uid = f"js-{number}", f"u-{number}"
    leader = pod(0, jobset=name, uid=f"pod-{number}", labels={"jobset.sigs.k8s.io/jobset-uid": uid})
    return jobset(name, uid=uid), leader


def test_after_an_outage_only_what_still_holds_is_published(outage: Outage) -> None:
    for number in range(MANY):
        outage.see(*waiting(number))
    outage.pass_time(1)
    parent, leader = waiting(0)
    outage.lose(leader)
    outage.lose(parent)
    _, satisfied = waiting(1)
    outage.see({**satisfied, "status": {"phase": "Running"}})
    outage.pass_time(7)
    outage.come_back()
    assert outage.demand() == {f"u-{number}" for number in range(2, MANY)}
    assert ("u-0", WorkloadState.DELETED) in states(outage.published)


def test_the_number_of_held_facts_is_bounded_by_what_exists(outage: Outage) -> None:
    for number in range(MANY):
        outage.see(*waiting(number))
    outage.pass_time(1)
    held = outage.outbox.held
    for usable in (1, 0) * 10:
        outage.see(*(node(number, ready=number < usable) for number in range(4)))
        outage.pass_time(3)
    assert outage.outbox.held == held + 2  # the count of the new pool, and a heartbeat
    facts = outage.come_back()
    assert counts(facts) == [(0, 4)]
    beats = [fact for fact in facts if isinstance(fact, Heartbeat)]
    assert [beat.first for beat in beats] == [False], "the first one had expired"

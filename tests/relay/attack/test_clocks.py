"""A wall clock that somebody sets, forward and back, while the relay runs."""

from datetime import timedelta

import pytest

from relay.agenda import SteadyClock
from relay.fact_queue import FactQueue
from relay.health import Health
from relay.objects import Bookmarked, Kind, Listed
from tests.builders import CLUSTER
from tests.relay.objects import jobset, pod
from tests.relay.watched import START, a_relay, read
from tpu_slices.domain.model.facts import Fact, Family, Heartbeat, WorkloadChanged, WorkloadState
from tpu_slices_simulator.relays import due_facts


class Hands:
    """A wall clock that can be set, and the seconds that have passed whatever it shows."""

    def __init__(self) -> None:
        self.wall = START
        self.passed = 1_000_000.0

    def pass_time(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.passed += seconds


class Room:
    """A relay that uses the steady clock; every watch has a sign of life each minute."""

    def __init__(self) -> None:
        self.hands = Hands()
        self.now = SteadyClock(self.hands.wall, lambda: self.hands.passed).now
        self.published: list[Fact] = []
        self.queue = FactQueue(CLUSTER)
        health = Health(self.now)
        self.relay_ = a_relay(self.queue, self.now, post=self.published.extend, health=health)
        self.health = health
        self.relay_.put(Listed(Kind.HOSTS, [], "1"))
        self.relay_.put(Listed(Kind.JOBSETS, [read(jobset())], "1"))
        self.relay_.put(Listed(Kind.LEADERS, [read(pod(0)), read(pod(1))], "1"))

    def minutes(self, count: int) -> list[Fact]:
        """Let minutes pass; return the facts published in them."""
        self.published.clear()
        for _ in range(count):
            self.hands.pass_time(60)
            for kind in Kind:
                self.relay_.put(Bookmarked(kind, "1"))
            self.relay_.turn()
        return list(self.published)


@pytest.mark.parametrize("hours", [1, -1, 24 * 365, -24 * 365])
def test_setting_the_wall_clock_changes_neither_facts_nor_their_times(hours: int) -> None:
    undisturbed, room = Room(), Room()
    assert room.minutes(3) == undisturbed.minutes(3)
    room.hands.wall += timedelta(hours=hours)
    facts = room.minutes(30)
    assert facts == undisturbed.minutes(30)
    assert room.health.unready() == []
    assert room.health.hung() == []
    assert len([fact for fact in facts if isinstance(fact, Heartbeat) and fact.digests.get(Family.DEMAND)]) == 30
    assert [fact for fact in facts if isinstance(fact, WorkloadChanged) and fact.state is WorkloadState.DELETED] == []


def test_silence_is_measured_although_the_wall_clock_is_set_back() -> None:
    room = Room()
    room.hands.pass_time(300)
    room.hands.wall -= timedelta(hours=1)
    assert due_facts(room.queue, room.now()) == []
    assert len(room.health.unready()) == len(Kind)


def test_the_steady_clock_starts_at_the_wall_clock_and_does_not_follow_it() -> None:
    hands = Hands()
    now = SteadyClock(hands.wall, lambda: hands.passed).now
    assert now() == START
    hands.wall -= timedelta(hours=1)
    hands.passed += 5
    assert now() == START + timedelta(seconds=5)

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from relay.notices.held_back import HeldBackTold
from tests.relay.objects import jobset
from tests.relay.telling.test_held_back import Flapping
from tpu_slices.ports.errors import Temporary


class Told:
    """A JobSet that flaps, and the Events on it."""

    def __init__(self) -> None:
        self.flapping = Flapping()
        self.flapping.begins_anew()
        self.events: list[Mapping[str, Any]] = []
        self.is_away = False
        watched = self.flapping.watched
        self.notice = HeldBackTold(lambda: watched.queue.held_back(watched.now), self, lambda: watched.now)

    def renew(self, event: Mapping[str, Any]) -> None:
        if self.is_away:
            raise Temporary("the API server is away")
        self.events.append(event)

    def flips(self) -> None:
        self.flapping.flips()
        self.flapping.publishes()
        self.notice.look()


@pytest.fixture
def told() -> Told:
    return Told()


def test_a_hold_of_more_than_ten_seconds_is_told_once_with_how_often_it_changed_and_until_when(told: Told) -> None:
    told.flapping.passes(20, told.flips)
    (event,) = told.events
    assert (event["type"], event["reason"], event["involvedObject"]["name"]) == ("Warning", "HeldBack", "llama")
    assert event["message"] == (
        "It was suspended, resumed or changed, or its leader pods were replaced, 20 times within a minute: "
        "what it needs is asked for at 12:01:34 UTC."
    )


def test_each_longer_hold_is_told_under_the_same_name(told: Told) -> None:
    told.flapping.passes(140, told.flips)
    assert len(told.events) == 4
    assert len({event["metadata"]["name"] for event in told.events}) == 1
    assert "140 times within 3 minutes" not in told.events[-1]["message"]


def test_a_few_changes_are_told_to_nobody(told: Told) -> None:
    told.flapping.passes(10, told.flips)
    assert told.events == []


def test_who_is_suspended_waits_for_nothing(told: Told) -> None:
    told.flapping.passes(19, told.flapping.flips)
    told.notice.look()
    assert told.events == []


def test_what_could_not_be_told_is_told_later(told: Told) -> None:
    told.is_away = True
    told.flapping.passes(20, told.flips)
    told.is_away = False
    told.notice.look()
    assert len(told.events) == 1


def test_of_a_workload_that_is_gone_nothing_is_told(told: Told) -> None:
    told.flapping.passes(20, told.flapping.flips)
    told.flapping.watched.lose(jobset())
    told.notice.look()
    assert told.events == []


def test_what_is_over_is_not_told(told: Told) -> None:
    told.flapping.passes(20, told.flapping.flips)
    told.flapping.watched.now += timedelta(minutes=10)
    told.notice.look()
    assert told.events == []

from datetime import datetime, timedelta

import pytest

from relay.health import Health, Limits
from relay.objects import Kind
from tests.relay.watched import START


class Bed:
    """A health whose time is stepped by the test; every watch was just heard."""

    def __init__(self) -> None:
        self.now: datetime = START
        self.health = Health(lambda: self.now, Limits())
        self.hear(*Kind)

    def hear(self, *kinds: Kind) -> None:
        for kind in kinds:
            self.health.bookmarked(kind)

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def bed() -> Bed:
    return Bed()


def test_a_relay_that_hears_all_and_is_heard_is_ready(bed: Bed) -> None:
    assert bed.health.unready() == []


def test_a_relay_is_not_ready_before_its_lists_are_in_place() -> None:
    health = Health(lambda: START)
    health.bookmarked(Kind.HOSTS)
    health.failed(Kind.JOBSETS, "403 forbidden")
    assert health.unready() == ["jobsets: no list yet: 403 forbidden", "leaders: no list yet"]


def test_a_watch_that_is_silent_for_too_long_is_named(bed: Bed) -> None:
    bed.pass_time(90)
    assert bed.health.unready() == []
    bed.pass_time(1)
    bed.hear(Kind.JOBSETS, Kind.HOSTS)
    bed.health.failed(Kind.LEADERS, "503 Service Unavailable")
    assert bed.health.unready() == ["leaders: no sign for 91 s: 503 Service Unavailable"]
    bed.hear(Kind.LEADERS)
    assert bed.health.unready() == []


def test_a_short_trouble_with_publishing_does_not_count(bed: Bed) -> None:
    bed.health.not_published("away")
    bed.pass_time(80)
    bed.hear(*Kind)
    bed.health.not_published("still away")
    bed.pass_time(40)
    assert bed.health.unready() == []
    bed.pass_time(1)
    assert bed.health.unready() == ["publishing: fails for 121 s: still away"]
    bed.health.published()
    assert bed.health.unready() == []


def test_what_fails_is_alive_and_what_does_not_turn_is_not(bed: Bed) -> None:
    bed.health.ticked("publish")
    bed.pass_time(599)
    for kind in Kind:
        bed.health.failed(kind, "away")
    bed.pass_time(2)
    assert bed.health.hung() == ["publish: no turn for 601 s"]
    bed.health.ticked("publish")
    assert bed.health.hung() == []

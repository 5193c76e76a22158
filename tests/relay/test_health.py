from datetime import datetime, timedelta

import pytest

from relay.health import Health, Limits
from relay.objects import Kind
from tests.relay.watched import START


class Setup:
    """A health whose time is stepped by the test; every watch has just had a sign of life."""

    def __init__(self) -> None:
        self.now: datetime = START
        self.health = Health(lambda: self.now, Limits())
        self.sign_of_life(*Kind)

    def sign_of_life(self, *kinds: Kind) -> None:
        for kind in kinds:
            self.health.bookmarked(kind)

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def setup() -> Setup:
    return Setup()


def test_a_relay_whose_watches_and_publishing_work_is_ready(setup: Setup) -> None:
    assert setup.health.unready() == []


def test_a_relay_is_not_ready_before_its_lists_are_complete() -> None:
    health = Health(lambda: START)
    health.bookmarked(Kind.HOSTS)
    health.failed(Kind.JOBSETS, "403 forbidden")
    assert health.unready() == ["jobsets: no list yet: 403 forbidden", "leaders: no list yet"]


def test_a_watch_that_is_silent_for_too_long_makes_the_relay_unready(setup: Setup) -> None:
    setup.pass_time(90)
    assert setup.health.unready() == []
    setup.pass_time(1)
    setup.sign_of_life(Kind.JOBSETS, Kind.HOSTS)
    setup.health.failed(Kind.LEADERS, "503 Service Unavailable")
    assert setup.health.unready() == ["leaders: no sign of life for 91 s: 503 Service Unavailable"]
    setup.sign_of_life(Kind.LEADERS)
    assert setup.health.unready() == []


def test_publishing_must_fail_for_two_minutes_to_make_the_relay_unready(setup: Setup) -> None:
    setup.health.not_published("away")
    setup.pass_time(80)
    setup.sign_of_life(*Kind)
    setup.health.not_published("still away")
    setup.pass_time(40)
    assert setup.health.unready() == []
    setup.pass_time(1)
    assert setup.health.unready() == ["publishing: has failed for 121 s: still away"]
    setup.health.published()
    assert setup.health.unready() == []


def test_a_failing_part_is_alive_and_one_that_does_not_tick_is_hung(setup: Setup) -> None:
    setup.health.ticked("publish")
    setup.pass_time(599)
    for kind in Kind:
        setup.health.failed(kind, "away")
    setup.pass_time(2)
    assert setup.health.hung() == ["publish: no tick for 601 s"]
    setup.health.ticked("publish")
    assert setup.health.hung() == []

"""Whether the relay is healthy, and the probes that ask for it."""

import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from relay import health
from relay.health import Health, Limits, Probes
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
    for kind in Kind:
        if kind not in {Kind.JOBSETS, Kind.LEADERS}:
            health.bookmarked(kind)
    health.failed(Kind.JOBSETS, "403 forbidden")
    assert health.unready() == ["jobsets: no list yet: 403 forbidden", "leaders: no list yet"]


def test_a_watch_that_is_silent_for_too_long_makes_the_relay_unready(setup: Setup) -> None:
    setup.pass_time(90)
    assert setup.health.unready() == []
    setup.pass_time(1)
    setup.sign_of_life(*(kind for kind in Kind if kind is not Kind.LEADERS))
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


pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

DEADLINE = 5.0


@dataclass
class Served:
    """Probes and the faults that they answer with, which the test sets."""

    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.probes = Probes(("127.0.0.1", 0), {"/readyz": lambda: self.faults})

    def ask(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.probes.port}{path}", timeout=DEADLINE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    thread = threading.Thread(target=made.probes.run)
    thread.start()
    yield made
    made.probes.stop()
    thread.join(DEADLINE)
    assert not thread.is_alive()


def test_without_faults_the_answer_is_200(served: Served) -> None:
    assert served.ask("/readyz") == (200, "ok\n")


def test_faults_are_answered_with_503_line_by_line(served: Served) -> None:
    served.faults = ["jobsets: no list yet", "publishing: has failed for 121 s: näh"]
    assert served.ask("/readyz") == (503, "jobsets: no list yet\npublishing: has failed for 121 s: näh\n")
    served.faults = []
    assert served.ask("/readyz") == (200, "ok\n")


def test_another_path_is_answered_with_404(served: Served) -> None:
    assert served.ask("/metrics") == (404, "no such probe\n")


def test_an_idle_connection_does_not_hold_up_others(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.probes.port)):
        assert served.ask("/readyz") == (200, "ok\n")


def test_a_port_that_is_taken_is_an_error(served: Served) -> None:
    with pytest.raises(OSError, match="in use"):
        Probes(("127.0.0.1", served.probes.port), {})


def test_idle_connections_are_limited_in_number_and_closed(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "PROBE_SECONDS", 0.5)
    before = threading.active_count()
    idle = [socket.create_connection(("127.0.0.1", served.probes.port)) for _ in range(3 * health.PROBES_AT_ONCE)]
    try:
        for each in idle:
            each.settimeout(DEADLINE)
            assert each.recv(1) == b""
        assert threading.active_count() <= before + 2 * health.PROBES_AT_ONCE
        assert served.ask("/readyz") == (200, "ok\n")
    finally:
        for each in idle:
            each.close()

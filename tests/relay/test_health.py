"""Whether the relay is healthy, and the probes that ask for it."""

import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from relay import health, probe
from relay.health import Health, Limits, Probes
from relay.objects import Kind
from tests.relay.watched import START
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.testing.waiting import beside, until


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


@dataclass
class Served:
    """Probes and the faults that they answer with, which the test sets."""

    faults: list[str] = field(default_factory=list)
    name: str = field(default_factory=lambda: f"relay-{uuid.uuid4()}")

    def __post_init__(self) -> None:
        self.probes = Probes(self.name, {"readyz": lambda: self.faults})

    def connection(self) -> socket.socket:
        one = socket.socket(socket.AF_UNIX)
        one.settimeout(PATIENCE_SECONDS)
        one.connect(f"\0{self.name}")
        return one


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Return probes that are answered, however late either side comes."""
    monkeypatch.setattr(health._Handler, "timeout", PATIENCE_SECONDS)
    monkeypatch.setattr(probe, "SECONDS", PATIENCE_SECONDS)
    made = Served()
    with beside(made.probes.run, made.probes.stop):
        yield made


Probe = Callable[..., tuple[int, str]]


@pytest.fixture
def probed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Probe:
    """Run the probe in this process; return its exit code and what it prints."""

    def run(name: str, socket_name: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", [probe.__file__, name])
        monkeypatch.setenv("PROBE_SOCKET", socket_name)
        code = probe.main()
        return code, capsys.readouterr().out

    return run


def probed_by_the_kubelet(name: str, socket_name: str) -> tuple[int, str]:
    """Run the probe as the kubelet does, again if it is answered too late for it."""

    def run() -> tuple[int, str] | None:
        command = [sys.executable, "-IS", probe.__file__, name]
        done = subprocess.run(
            command, env={"PROBE_SOCKET": socket_name}, capture_output=True, encoding="utf-8", check=False
        )
        assert done.stderr == ""
        return None if done.stdout.endswith("timed out\n") else (done.returncode, done.stdout)

    found = until(run, "an answer in time")
    assert found is not None
    return found


def test_with_faults_the_probe_fails_and_prints_them_line_by_line(served: Served) -> None:
    served.faults = ["jobsets: no list yet", "publishing: has failed for 121 s: näh"]
    printed = "jobsets: no list yet\npublishing: has failed for 121 s: näh\n"
    assert probed_by_the_kubelet("readyz", served.name) == (1, printed)


def test_without_faults_the_probe_succeeds(served: Served, probed: Probe) -> None:
    served.faults = ["jobsets: no list yet"]
    assert probed("readyz", served.name) == (1, "jobsets: no list yet\n")
    served.faults = []
    assert probed("readyz", served.name) == (0, "ok\n")


def test_a_probe_that_nobody_answers_fails_and_says_so(probed: Probe) -> None:
    assert probed("readyz", "nobody") == (1, "the relay does not answer: [Errno 111] Connection refused\n")


def test_a_probe_that_there_is_not_fails(served: Served, probed: Probe) -> None:
    assert probed("metrics", served.name) == (1, 'there is no probe "metrics"\n')


def test_a_probe_whose_answer_breaks_off_fails(served: Served, capfd: pytest.CaptureFixture[str]) -> None:
    def broken() -> list[str]:
        raise RuntimeError("of no use")

    served.probes.answers = {"readyz": broken}
    assert probed_by_the_kubelet("readyz", served.name) == (1, "")
    assert "of no use" in capfd.readouterr().err


def test_idle_connections_hold_up_others_for_a_moment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health._Handler, "timeout", 0.1)
    served = Served()
    idle = [served.connection() for _ in range(3)]
    with served.connection() as asking:
        asking.sendall(b"readyz\n")
        with beside(served.probes.run, served.probes.stop), asking.makefile() as answer:
            assert answer.read() == probe.OK
    for each in idle:
        with each:
            assert each.recv(64) == b""


def test_a_socket_that_is_taken_is_an_error(served: Served) -> None:
    with pytest.raises(OSError, match="in use"):
        Probes(served.name, {})

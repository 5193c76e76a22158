import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from relay import probes
from relay.probes import Probes

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
    monkeypatch.setattr(probes, "SECONDS", 0.5)
    before = threading.active_count()
    idle = [socket.create_connection(("127.0.0.1", served.probes.port)) for _ in range(3 * probes.AT_ONCE)]
    try:
        for each in idle:
            each.settimeout(DEADLINE)
            assert each.recv(1) == b""
        assert threading.active_count() <= before + 2 * probes.AT_ONCE
        assert served.ask("/readyz") == (200, "ok\n")
    finally:
        for each in idle:
            each.close()

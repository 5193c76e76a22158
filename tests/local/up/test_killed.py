"""Parts of a running stack are killed, stopped and started. What the provisioner does meanwhile is tested elsewhere."""

import pytest

from tests.local.stack.leftovers import REPOSITORY
from tests.local.up.terminal import Terminal

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


@pytest.mark.parametrize("part", ["reconcile", "relay", "pubsub", "firestore", "proxy"])
def test_what_is_killed_comes_back(terminal: Terminal, part: str) -> None:
    terminal.until(lambda: terminal.local("status"), f"{'relay':<24} running")
    before = (terminal.folder / "out").read_text().count(f"{part} is running again")
    assert "was killed and will be restarted" in terminal.local("kill", part)
    name = part if part != "reconcile" else "function-reconcile"
    terminal.until(
        lambda: "again " * ((terminal.folder / "out").read_text().count(f"{part} is running again") - before), "again"
    )
    terminal.until(lambda: terminal.local("status"), f"{name:<24} running, pid")


def test_the_relay_can_be_stopped_and_started(terminal: Terminal) -> None:
    assert terminal.local("relay", "stop") == "relay: stopped\n"
    assert f"{'relay':<24} stopped" in terminal.local("status")
    assert "relay: running, pid" in terminal.local("relay", "start")


def test_what_makes_no_sense_is_answered_in_one_line(terminal: Terminal) -> None:
    assert terminal.local("kill", "nobody").startswith(
        'there is no part "nobody": pubsub, firestore, function-receive, '
    )
    said = terminal.local("break-host", "nobody")
    assert ("no node pool" in said, said.count("\n")) == (True, 1)


def test_calls_of_the_relay_fail_as_ordered_until_they_are_cleared(terminal: Terminal) -> None:
    said = terminal.local("api-errors", "100%", "--of", "kubernetes", "--for", "1h")
    assert said == "100% of the relay's calls to Kubernetes fail for 3600 s\n"
    assert "503: 100% of the relay's calls to Kubernetes, for another" in terminal.local("status")
    terminal.local("kill", "relay")
    terminal.until(lambda: terminal.local("logs", "relay"), "watch.failed")
    terminal.local("clear")
    assert "503: " not in terminal.local("status")
    terminal.until(lambda: terminal.local("status"), f"{'relay':<24} running")


def test_a_cluster_that_comes_back_empty_is_served_all_the_same(terminal: Terminal) -> None:
    terminal.local("kill", "cluster")
    for part in ("cluster", "jobset", "kueue"):
        terminal.until((terminal.folder / "out").read_text, f"{part} is running again")
    terminal.kubectl("apply", "-f", str(REPOSITORY / "examples" / "v5e-one-host.yaml"))
    terminal.until(lambda: terminal.local("logs", "reconcile"), "hosts are ready and offer their chips.")

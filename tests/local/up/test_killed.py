"""Parts of a stack that is up are killed, stopped and started. What they do meanwhile is another matter."""

import pytest

from tests.local.stack.leftovers import REPOSITORY
from tests.local.up.terminal import Terminal

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.timeout(180)]


@pytest.mark.parametrize("part", ["reconcile", "relay", "pubsub", "firestore"])
def test_what_is_killed_comes_back(terminal: Terminal, part: str) -> None:
    terminal.until(lambda: terminal.local("status"), "relay                runs")
    before = (terminal.folder / "out").read_text().count(f"{part} is up again")
    assert "is killed; it is started again" in terminal.local("kill", part)
    name = part if part != "reconcile" else "function-reconcile"
    terminal.until(
        lambda: "again " * ((terminal.folder / "out").read_text().count(f"{part} is up again") - before), "again"
    )
    assert f"{name:<20} runs, pid" in terminal.local("status")


def test_the_relay_can_be_stopped_and_started(terminal: Terminal) -> None:
    assert terminal.local("relay", "stop") == "relay: stopped\n"
    assert "relay                stopped" in terminal.local("status")
    assert "relay: runs, pid" in terminal.local("relay", "start")


def test_what_makes_no_sense_is_answered_in_one_line(terminal: Terminal) -> None:
    assert terminal.local("kill", "nobody").startswith('there is no part "nobody": pubsub, firestore, cluster, ')
    said = terminal.local("break-host", "nobody")
    assert ("no node pool" in said, said.count("\n")) == (True, 1)


def test_a_cluster_that_comes_back_empty_is_served_all_the_same(terminal: Terminal) -> None:
    terminal.local("kill", "cluster")
    terminal.until((terminal.folder / "out").read_text, "cluster is up again")
    terminal.kubectl("apply", "-f", str(REPOSITORY / "examples" / "v5e-one-host.yaml"))
    terminal.until(lambda: terminal.local("logs", "reconcile"), "hosts are ready and offer their chips.")

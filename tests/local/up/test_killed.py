"""Parts of a running stack are killed, stopped and started. What the provisioner does meanwhile is tested elsewhere."""

import pytest

from infra.local.plan import REPOSITORY
from tests.local.up.terminal import Terminal

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.real]


@pytest.mark.parametrize("part", ["function-reconcile", "relay", "pubsub", "firestore", "proxy"])
def test_what_is_killed_comes_back(terminal: Terminal, part: str) -> None:
    terminal.until_all_run()
    before = terminal.times_restarted(part)
    assert "was killed and will be restarted" in terminal.local("kill", part)
    terminal.until_restarted(part, before)
    terminal.until_all_run()


def test_the_relay_can_be_stopped_and_started(terminal: Terminal) -> None:
    assert terminal.local("relay", "stop") == "relay: stopped\n"
    assert f"{'relay':<24} stopped" in terminal.local("status")
    assert "relay: starting, pid" in terminal.local("relay", "start")
    terminal.until_all_run()


def test_what_makes_no_sense_is_answered_in_one_line(terminal: Terminal) -> None:
    assert terminal.local("kill", "nobody").startswith(
        'there is no part "nobody": pubsub, firestore, function-notify, '
    )
    said = terminal.local("break-host", "nobody")
    assert ("no node pool" in said, said.count("\n")) == (True, 1)


def test_calls_of_the_relay_fail_as_ordered_until_they_are_cleared(terminal: Terminal) -> None:
    terminal.until_all_run()
    said = terminal.local("api-errors", "100%", "--of", "kubernetes", "--for", "1h")
    assert said == "100% of the relay's calls to Kubernetes fail for 3600 s\n"
    assert "503: 100% of the relay's calls to Kubernetes, for another" in terminal.local("status")
    before = terminal.logged("relay").count("watch.failed")
    terminal.local("kill", "relay")
    terminal.until(lambda: terminal.logged("relay").count("watch.failed") > before, "a watch that fails")
    terminal.local("clear")
    assert "503: " not in terminal.local("status")
    terminal.until_all_run()


def test_a_cluster_that_comes_back_empty_is_served_all_the_same(terminal: Terminal) -> None:
    terminal.until_all_run()
    before = {part: terminal.times_restarted(part) for part in ("cluster", "jobset")}
    terminal.local("kill", "cluster")
    for part, times in before.items():
        terminal.until_restarted(part, times)
    terminal.kubectl("apply", "-f", str(REPOSITORY / "examples" / "v5e-one-host.yaml"))
    told = "All 1 hosts are ready and offer their chips."  # by either; the relay tells later, after it was killed
    terminal.until(
        lambda: any(told in terminal.logged(f"function-{part}") for part in ("receive", "reconcile")), "its hosts"
    )

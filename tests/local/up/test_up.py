"""The stack kept up, as somebody uses it from another terminal."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from infra.local.prerequisites import Tools
from infra.local.up.note import Note
from tests.local.stack.leftovers import REPOSITORY, running_in

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.timeout(180)]

PATIENCE_SECONDS = 60


@dataclass
class Terminal:
    """A second terminal beside a stack that is up."""

    folder: Path
    process: subprocess.Popen[bytes]

    def local(self, *verb: str) -> str:
        """Give a verb to the stack; what it says, and its errors where it was refused."""
        command = [sys.executable, "-m", "infra.local", "--state", str(self.folder), *verb]
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode in {0, 1}, done.stderr
        return done.stdout or done.stderr

    def kubectl(self, *arguments: str) -> str:
        command = ["kubectl", f"--cache-dir={self.folder / 'kubectl'}", *arguments]
        environment = {**os.environ, "KUBECONFIG": str(self.folder / "kubeconfig")}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout

    def until(self, says: Callable[[], str], words: str) -> str:
        """Wait until something says these words; give all that it said."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while words not in (said := says()):
            assert self.process.poll() is None, "the stack ended"
            assert time.monotonic() < deadline, f"waited for {words!r}; last: {said}"
            time.sleep(0.2)
        return said


@pytest.fixture(scope="module")
def terminal(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    assert tools.java.exists()
    folder = tmp_path_factory.mktemp("up")
    with (folder / "out").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "infra.local", "--state", str(folder), "up"],
            cwd=REPOSITORY,
            env={**os.environ, "TMPDIR": str(folder)},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        terminal = Terminal(folder, process)
        terminal.until((folder / "out").read_text, "Ctrl-C ends it.")
        yield terminal
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
        assert running_in(folder) == []
        assert not (folder / "stack.json").exists()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()


def test_it_says_how_it_is_used(terminal: Terminal) -> None:
    said = (terminal.folder / "out").read_text()
    where = Note.read(terminal.folder)
    for name, value in where.environment.items():
        assert f"export {name}={value}" in said
        assert f"export {name}={value}" in terminal.local("env")
    assert "kubectl apply -f examples/v5e.yaml" in said


def test_a_jobset_that_waits_says_why_and_goes_on_when_the_trouble_is_over(terminal: Terminal) -> None:
    terminal.local("stockout", "--zone", "us-central2-b", "--for", "1h")
    terminal.kubectl("apply", "-f", str(REPOSITORY / "examples" / "v5e.yaml"))
    described = terminal.until(lambda: terminal.kubectl("describe", "jobset", "v5e"), "SlicesWaiting")
    assert "UTC: us-central2-b is out of tpu-v5-lite-podslice 4x4, next try" in described
    assert "jobset.reported" in terminal.local("logs", "sweep")
    assert "what was ordered is over" in terminal.local("clear")
    terminal.until(lambda: terminal.kubectl("get", "events"), "1 of 1 slices ready.")
    uid = terminal.kubectl("get", "jobset", "v5e", "-o", "jsonpath={.metadata.uid}")
    assert _who_logged(terminal, f"projects/demo-project/traces/{uid.replace('-', '')}") == {
        "relay": {"fact.published", "message.served"},
        "function-receive": {"fact.received"},
        "function-reconcile": {"slice.decided"},
        "function-sweep": {"jobset.reported"},
    }
    terminal.kubectl("delete", "jobset", "v5e")
    terminal.until(lambda: terminal.kubectl("get", "events"), "nothing of it is left.")


def _who_logged(terminal: Terminal, trace: str) -> dict[str, set[str]]:
    """Give what each part logged under a trace."""
    found: dict[str, set[str]] = {}
    for log in (terminal.folder / "logs").glob("*.log"):
        for line in log.read_text(errors="replace").splitlines():
            if trace in line:
                found.setdefault(log.stem, set()).add(json.loads(line)["message"])
    return found


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
    assert terminal.local("break-host", "nobody") == "no such pool: nobody\n"
    assert terminal.local("break-host") == "there is no node pool: `kubectl apply -f examples/v5e.yaml` makes some\n"

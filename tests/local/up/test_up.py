"""A running stack, as people use it from another terminal."""

import json

import pytest

from infra.local.up.note import Note
from tests.local.stack.leftovers import REPOSITORY
from tests.local.up.terminal import Terminal

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


def test_there_is_one_stack_in_a_folder(terminal: Terminal) -> None:
    assert "A stack is already running" in terminal.local("up")
    assert Note.read(terminal.folder).control


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
    told = "UTC: us-central2-b is out of tpu-v5-lite-podslice 4x4, next attempt at"  # not while an attempt is under way
    terminal.until(lambda: terminal.kubectl("describe", "jobset", "v5e"), told)
    assert "SlicesWaiting" in terminal.kubectl("describe", "jobset", "v5e")
    assert "workload.reported" in terminal.local("logs", "sweep")
    assert "all injected faults are cleared" in terminal.local("clear")
    terminal.until(lambda: terminal.kubectl("get", "events"), "hosts are ready and offer their chips.")
    uid = terminal.kubectl("get", "jobset", "v5e", "-o", "jsonpath={.metadata.uid}")
    logged = _who_logged(terminal, f"projects/demo-project/traces/{uid.replace('-', '')}")
    logged["function-receive"].discard("slice.decided")  # by hosts that joined when the end of the creation was known
    assert logged == {
        "relay": {"fact.published", "message.handled"},
        "function-receive": {"fact.received"},
        "function-reconcile": {"slice.decided"},
        "function-sweep": {"workload.reported"},
    }
    terminal.kubectl("delete", "jobset", "v5e")
    terminal.until(lambda: terminal.kubectl("get", "events"), "no slices are left.")


def _who_logged(terminal: Terminal, trace: str) -> dict[str, set[str]]:
    """Return the messages that each part logged under a trace."""
    found: dict[str, set[str]] = {}
    for log in (terminal.folder / "logs").glob("*.log"):
        for line in log.read_text(errors="replace").splitlines():
            if trace in line:
                found.setdefault(log.stem, set()).add(json.loads(line)["event"])
    return found

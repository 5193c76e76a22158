"""A running stack, as people use it from another terminal."""

import re

import pytest

from infra.local.plan import REPOSITORY
from infra.local.up.note import Note
from tests.local.up.terminal import Terminal

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.real]


def test_there_is_one_stack_in_a_folder(terminal: Terminal) -> None:
    assert "A stack is already running" in terminal.local("up")
    assert Note.read(terminal.folder).control


def test_it_says_how_it_is_used(terminal: Terminal) -> None:
    said, exports = terminal.out, terminal.local("env")
    for name, value in Note.read(terminal.folder).environment.items():
        assert f"export {name}={value}" in said
        assert f"export {name}={value}" in exports
    assert "kubectl apply -f examples/v5e.yaml" in said


def test_a_jobset_that_waits_says_why_and_goes_on_when_the_trouble_is_over(terminal: Terminal) -> None:
    terminal.local("stockout", "--zone", "us-central2-b", "--for", "1h")
    terminal.kubectl("apply", "-f", str(REPOSITORY / "examples" / "v5e.yaml"))
    told = r"UTC: us-central2-b is out of tpu-v5-lite-podslice 4x4.*, next attempt at"  # not while one is under way
    terminal.until_told("v5e", told)

    def said() -> object:
        described = terminal.kubectl("describe", "jobset", "v5e")
        return re.search(told, described) and "SlicesWaiting" in described

    terminal.until(said, "kubectl to say so, between two attempts")
    assert "all injected faults are cleared" in terminal.local("clear")
    terminal.until_told("v5e(-workers-.*)?", "All 4 hosts are ready and offer their chips.")
    uid = terminal.kubectl("get", "jobset", "v5e", "-o", "jsonpath={.metadata.uid}")
    keys = terminal.kubectl("get", "nodes", "-o", r"jsonpath={.items[*].metadata.labels.google\.com/tpu-slice-key}")
    assert keys.split() == [f"{uid}.j0"] * 4

    def pinned() -> bool:
        required = terminal.kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.affinity.nodeAffinity}")
        return required.count(f'"{uid}.j0"') == 4

    terminal.until(pinned, "all pods of the Job, each of which requires hosts with its key")
    trace = f"projects/demo-project/traces/{uid.replace('-', '')}"
    terminal.until_logged("relay", trace, "fact.published", "message.handled")
    terminal.until_logged("function-receive", trace, "fact.received")
    terminal.until_logged("function-reconcile", trace, "slice.decided")
    reporting = [terminal.under(part, trace) for part in ("function-receive", "function-sweep")]
    assert any("workload.reported" in each for each in reporting)
    assert terminal.parts_under(trace) <= {
        "relay",
        "function-notify",
        "function-receive",
        "function-reconcile",
        "function-sweep",
    }
    assert "slice.decided" in terminal.local("logs", "reconcile")
    terminal.kubectl("delete", "jobset", "v5e")
    terminal.until_told("v5e", "no slices are left.")

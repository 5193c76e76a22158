"""No test knows how fast its machine is: it waits for what comes, and for what hangs as long as all others do."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.house.sources import TESTS, modules, text, tree

MEASURING = ("tests/bench/", "tests/mutants/", "tests/proof/", "tests/usage.py")
"""They measure, and claim nothing of what they measured."""
WAITING = "infra/standins/tpu_standins/testing/waiting.py"
CLOCKS = {"monotonic", "perf_counter", "process_time"}
ENDS = {"timeout", "within", "patience", "patience_seconds", "deadline"}
"""Parameters that say how long something is waited for."""
WAITS = {"wait", "join", "ended", "communicate"}
"""Methods whose only positional argument is such a number."""
ALLOWED = {
    "tests/browser/chromium.py:clock": "waits for a pipe, for PATIENCE_SECONDS",
    "tests/chaos/test_killed_at_random.py:clock": "waits PATIENCE_SECONDS from the last kill, not from the beginning",
    "tests/contracts/test_store_documents.py:timeout=": "the parameter that is tried: whatever time passes, it is told",
    "tests/infra/builds/training.py:sleep()": "plays the program `sleep` of a build, in no time",
    "tests/infra/builds/triton.py:sleep()": "as above",
    "tests/local/demo/test_steps.py:within=": "a pure function's, which is given the time",
    f"{TESTS[1]}proxy/test_proxy.py:clock": "an answer is late by at least so much: later is right, too",
    "tests/relay/attack/bed.py:clock": "the relay's own clock, which is given to it",
    "tests/relay/attack/test_lists.py:clock": "compares processor times of one test with each other",
    "tests/relay/test_closing.py:join()": "so many hosts that join",
    "tests/relay/test_owner.py:clock": "the relay's own clock, which is given to it",
    "tests/relay/test_watch.py:clock": "the relay's own clock, which is given to it",
    "tests/simulation/__main__.py:clock": "says now and then how far it is",
}
"""By `FILE:what`, why it may."""


def looked_at() -> list[str]:
    return [name for name in modules(*TESTS) if not name.startswith(MEASURING) and name != WAITING]


def called(node: ast.AST) -> str:
    """Return the last part of the name of what a node calls."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def is_some_time(node: ast.AST) -> bool:
    """Return whether a node is a number of seconds; none at all is the end of no wait."""
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and bool(node.value)


def ends(node: ast.AST) -> Iterator[str]:
    """Yield the ends of its own that a call has for what it waits for."""
    if isinstance(node, ast.Call):
        yield from (f"{each.arg}=" for each in node.keywords if each.arg in ENDS and is_some_time(each.value))
        if called(node) in WAITS and len(node.args) == 1 and is_some_time(node.args[0]):
            yield f"{called(node)}()"


def found_in(source: ast.AST) -> Iterator[str]:
    for node in ast.walk(source):
        yield from ends(node)
        if called(node) == "sleep":
            yield "sleep()"
        if isinstance(node, ast.Attribute | ast.Name) and getattr(node, "attr", getattr(node, "id", "")) in CLOCKS:
            yield "clock"
        if isinstance(node, ast.Attribute) and node.attr == "timeout" and ast.unparse(node) == "pytest.mark.timeout":
            yield "mark"


def test_no_test_sleeps_ends_a_wait_by_itself_or_looks_at_the_time_that_passed() -> None:
    found = {f"{name}:{what}" for name in looked_at() for what in found_in(tree(name))}
    assert sorted(found - ALLOWED.keys()) == []
    assert sorted(ALLOWED.keys() - found) == []


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("time.sleep(1)", ["sleep()"]),
        ("subprocess.run(command, timeout=60)", ["timeout="]),
        ("child.ended(within=10)", ["within="]),
        ("thread.join(5)", ["join()"]),
        ("assert time.monotonic() - began < 5", ["clock"]),
        ("@pytest.mark.timeout(300)\ndef test_it(): pass", ["mark"]),
        ("child.ended(within=PATIENCE_SECONDS)", []),
        ("thread.join()", []),
        ("child.ended(within=0)", []),
        ("', '.join(names)", []),
    ],
)
def test_the_kinds_are_seen(source: str, what: list[str]) -> None:
    assert list(found_in(ast.parse(source))) == what


def test_every_wait_ends_at_the_same_time() -> None:
    assert "PATIENCE_SECONDS" in text(WAITING)

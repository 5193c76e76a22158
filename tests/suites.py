"""The suites: which tests each target of the Makefile runs, and what is said of a run when it ends.

| suite | run by | tests |
|---|---|---|
| test | `make test` | all without the marks below |
| real | `make test-real` | those with the mark `real`: on parts that take minutes to build or to start |
| proof | `make proof` | those with the mark `proof`: they say what another says, for more cases |

A test that asks for one of the fixtures NEEDED is real, without a word. Without `--suite` all but proofs are run.
`--suite=NAME` is one word: pytest takes another one for a folder, before it knows this option.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.budgets import LEAST, by_folder, over_budget
from tests.usage import Usage, spent

NEEDED = frozenset({"programs", "browser", "gcloud"})
"""Fixtures of what a fresh machine lacks: a control plane of Kubernetes, a browser, a gcloud that serves builds."""
SLOWEST = 10


@dataclass(frozen=True, slots=True)
class Suite:
    marks: str
    """The expression that selects its tests."""
    command: str


SUITES: Mapping[str, Suite] = {
    "test": Suite("not real and not proof", "make test"),
    "real": Suite("real and not proof", "make test-real"),
    "proof": Suite("proof", "make proof"),
}


def suite_of(item: pytest.Item) -> str:
    """Return the name of the suite that has a test."""
    return next((name for name in ("proof", "real") if item.get_closest_marker(name)), "test")


@dataclass(slots=True)
class Run:
    """What is known of this run, in each of its processes, and in the first one of all."""

    usages: list[Usage] = field(default_factory=list)
    others: dict[str, int] = field(default_factory=dict)
    """By suite that is not run, the number of its tests."""

    def told(self) -> dict[str, Any]:
        return {"usages": [each.told() for each in self.usages], "others": self.others}

    def add(self, told: Mapping[str, Any]) -> None:
        """Add what another process tells. All collect the same tests."""
        self.usages += map(Usage.of, told["usages"])
        self.others = dict(told["others"])


RUN = pytest.StashKey[Run]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--suite", choices=list(SUITES), help="run the tests of one of the Makefile's targets")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.stash[RUN] = Run()
    if not config.option.markexpr:
        suite = SUITES.get(config.option.suite)
        config.option.markexpr = suite.marks if suite else "not proof"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if NEEDED.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.real)
    counts = {name: sum(suite_of(item) == name for item in items) for name in SUITES if name != config.option.suite}
    config.stash[RUN].others = counts


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Count what a test spends, with all that it sets up and takes down, in this process and those below it."""
    before = spent()
    try:
        return (yield)
    finally:
        item.config.stash[RUN].usages.append(spent().since(before, item.nodeid))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Pass what is known on to the first process; there, fail if a folder spent much more than it may."""
    run = session.config.stash[RUN]
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["run"] = run.told()
    elif _is_whole(session.config) and over_budget(session.config.option.suite, run.usages):
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add what a process of xdist told as it ended; one that crashed told nothing."""
    if told := getattr(node, "workeroutput", {}).get("run"):
        node.config.stash[RUN].add(told)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in summary(config.stash[RUN], config.option.suite, whole=_is_whole(config)):
        terminalreporter.write_line(line)


def _is_whole(config: pytest.Config) -> bool:
    """Return whether a suite is run as its target does, and not a folder of it."""
    return config.option.suite is not None and config.args == config.getini("testpaths")


def summary(run: Run, suite: str | None, *, whole: bool) -> Iterator[str]:
    """Yield what a run ends with: what it spent, its slowest tests, what spent too much, what was not run."""
    yield f"{sum(each.cpu for each in run.usages) / 60:.1f} minutes of a processor; the {SLOWEST} slowest tests:"
    slowest = sorted(run.usages, key=lambda each: each.wall, reverse=True)[:SLOWEST]
    yield from (f"{each.wall:7.1f} s, {each.cpu:6.1f} of a processor  {each.test}" for each in slowest)
    if whole and suite is not None:
        spent = (f"{folder} {seconds:.0f}" for folder, seconds in by_folder(run.usages).items() if seconds > LEAST / 3)
        yield f"Seconds of a processor by folder: {', '.join(spent)}"
        yield from over_budget(suite, run.usages)
    left = {SUITES[name].command: count for name, count in run.others.items() if count}
    if left and suite is not None:
        yield f"Not run here: {_listed(f'{count:,} tests of `{command}`' for command, count in left.items())}."


def _listed(parts: Iterable[str]) -> str:
    return ", and ".join(parts)

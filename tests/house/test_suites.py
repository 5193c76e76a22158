"""The suites of the Makefile's targets: what a run spends is counted, and held to the budgets of its folders."""

from __future__ import annotations

import subprocess
import sys
from pathlib import PurePath

import pytest
from _pytest.mark.expression import Expression

from tests.budgets import BUDGETS, MARGIN, over_budget
from tests.house.sources import TESTS, modules, text, tracked
from tests.proof.parts import PYTEST
from tests.suites import NEEDED, SUITES, Run, summary
from tests.usage import Usage, spent

SLOW_MINUTES = 1.7
"""How many minutes of a processor one of the machine on which the budgets were measured may take elsewhere."""
BUSY = "import time\nwhile time.process_time() < 0.5: pass"


def a_usage(test: str = "tests/wire/test_bounds.py::test_it", cpu: float = 1, wall: float = 2) -> Usage:
    return Usage(test, cpu, wall)


@pytest.mark.parametrize("marks", [set(), {"real"}, {"proof"}, {"real", "proof"}])
def test_each_test_is_of_one_suite(marks: set[str]) -> None:
    def has(name: str, /, **_: object) -> bool:
        return name in marks

    assert [each.command for each in SUITES.values() if Expression.compile(each.marks).evaluate(has)] == [
        SUITES["proof" if "proof" in marks else "real" if "real" in marks else "test"].command
    ]


def test_a_suite_is_a_target_that_runs_it() -> None:
    makefile, proof = text("Makefile"), " ".join(PYTEST)
    assert [f"--suite={name}" in f"{makefile} {proof}" for name in SUITES] == [True] * len(SUITES)
    targets = {each.command.removeprefix("make ") for each in SUITES.values()}
    assert all(f"\n{target}:" in makefile for target in targets)


def test_what_other_processes_spend_is_counted_once_they_ended_and_before() -> None:
    before = spent()
    with subprocess.Popen([sys.executable, "-c", f"{BUSY}\nprint(flush=True)\ninput()"], stdin=-1, stdout=-1) as busy:
        assert busy.stdout is not None
        busy.stdout.readline()
        running = spent().since(before, "running")
        busy.communicate(b"\n")
    assert running.cpu >= 0.4
    assert spent().since(before, "ended").cpu >= running.cpu


def test_a_run_ends_with_what_it_spent_its_slowest_tests_and_what_was_not_run() -> None:
    usages = [a_usage(f"tests/wire/test_it.py::test_{number}", cpu=6, wall=number) for number in range(20)]
    said = list(summary(Run(usages=usages, others={"real": 1_203, "proof": 7}), "test", whole=True))
    assert said[0].startswith("2.0 minutes of a processor")
    assert [line.split("_")[-1] for line in said[1:11]] == [str(number) for number in range(19, 9, -1)]
    assert said[-1] == "Not run here: 1,203 tests of `make test-real`, and 7 tests of `make proof`."


def test_what_processes_of_a_run_tell_is_added_up() -> None:
    run, one = Run(), Run(usages=[a_usage()], others={"real": 3})
    for _ in range(2):
        run.add(one.told())
    assert (run.usages, run.others) == ([a_usage()] * 2, {"real": 3})


def test_a_folder_that_spends_much_more_than_its_budget_is_named() -> None:
    folder, budget = max(BUDGETS["test"].items(), key=lambda each: each[1])
    below, above = (a_usage(f"{folder}/test_it.py::test_it", cpu=MARGIN * budget + more) for more in (-1, 1))
    assert over_budget("test", [below]) == []
    (line,) = over_budget("test", [above])
    assert line.startswith(f"{folder} spent {MARGIN * budget + 1} s")


def test_a_folder_that_nobody_knows_may_spend_little() -> None:
    assert over_budget("test", [a_usage("tests/new/test_it.py::test_it", cpu=1)]) == []
    assert over_budget("test", [a_usage("tests/new/test_it.py::test_it", cpu=100)]) != []


def test_budgets_are_of_folders_that_have_tests() -> None:
    folders = {PurePath(name).parent.as_posix() for name in tracked(".py") if PurePath(name).name.startswith("test_")}
    assert {folder for budgets in BUDGETS.values() for folder in budgets} - folders == set()


def test_the_budgets_of_a_suite_are_what_its_target_promises() -> None:
    """`make test`: 20 minutes of a processor on a slow machine, install and checks included. `make test-real`: 40."""
    assert SLOW_MINUTES * sum(BUDGETS["test"].values()) <= 16 * 60
    assert SLOW_MINUTES * sum(BUDGETS["real"].values()) <= 40 * 60


def test_what_makes_a_test_real_is_a_fixture() -> None:
    fixtures = " ".join(text(name) for name in modules(*TESTS))
    assert [name for name in NEEDED if f"def {name}(" not in fixtures] == []

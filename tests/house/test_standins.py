"""The stand-ins are a distribution of their own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.house.sources import STANDINS, modules, text, tree

HOUSE = {"examples", "functions", "infra", "relay", "tests", "tpu_slices", "tpu_slices_cli", "tpu_slices_simulator"}
THEIR_TESTS = "tpu_standins.tests"


def imported_by(module: str) -> Iterator[str]:
    for node in ast.walk(tree(module)):
        match node:
            case ast.Import():
                yield from (each.name for each in node.names)
            case ast.ImportFrom(module=str(name)):
                yield name
            case _:
                pass


def test_they_and_their_tests_import_nothing_of_what_is_tested_with_them() -> None:
    ours = modules(STANDINS)
    assert len(ours) > 150
    found = [(name, each) for name in ours for each in imported_by(name) if each.partition(".")[0] in HOUSE]
    assert found == []


def test_their_tests_are_theirs_alone() -> None:
    others = [name for name in modules("") if not name.startswith(STANDINS) and THEIR_TESTS in text(name)]
    assert [(name, each) for name in others for each in imported_by(name) if each.startswith(THEIR_TESTS)] == []

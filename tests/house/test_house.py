"""The budgets of the house: what outgrows them says something twice.

They bind ideas: a file has one, a folder has those that are read together.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.house.sources import PROGRAMS, ROOT, modules, text, tracked, tree

FILE_LINES = 400
FOLDER_FILES = 25
FUNCTION_LINES = 40
DRAWERS = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
TABLES = {
    # files that are mostly one table
    "infra/standins/tpu_standins/tests/gke/test_refusals.py",
    "tests/domain/reconciling/test_decide.py",
}


def functions_of(name: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_a_file_holds_one_idea_unless_it_is_a_table() -> None:
    lines = {name: len(text(name).splitlines()) for name in modules(*PROGRAMS)}
    assert len(lines) > 500
    assert {name: size for name, size in lines.items() if size > FILE_LINES and name not in TABLES} == {}
    assert [name for name in TABLES if lines[name] <= FILE_LINES] == []


def test_a_folder_has_what_is_read_together() -> None:
    folders = Counter(Path(name).parent.as_posix() for name in tracked("") if name.startswith(PROGRAMS))
    assert {folder for folder, files in folders.items() if files > FOLDER_FILES} == set()


def test_a_function_fits_a_screen() -> None:
    long = {
        f"{name}:{node.lineno} {node.name}": size
        for name in modules(*PROGRAMS)
        for node in functions_of(name)
        if (size := (node.end_lineno or 0) - node.lineno + 1 - _docstring_lines(node)) > FUNCTION_LINES
    }
    assert long == {}


def _docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """A docstring is a table here, and tables are exempt."""
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return (first.end_lineno or 0) - first.lineno + 1
    return 0


def test_there_is_no_drawer() -> None:
    paths = map(Path, modules(*PROGRAMS))
    assert [path.as_posix() for path in paths if path.stem in DRAWERS or path.parent.name in DRAWERS] == []


def test_every_package_says_what_lives_there() -> None:
    deployed = [name for name in modules(*PROGRAMS) if name.endswith("/__init__.py") and not name.startswith("tests/")]
    assert [name for name in deployed if ast.get_docstring(tree(name)) is None] == []


def test_the_top_level_is_what_was_agreed() -> None:
    agreed = {
        "pyproject.toml", "functions", "relay", "shared", "infra", "tests", "cloudbuild.yaml", "README.md",
        "docs", "examples", "Makefile", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md",
    }  # fmt: skip
    found = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
    assert found - agreed - {"build"} == set()

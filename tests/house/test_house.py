"""The budgets of the house: what outgrows them says something twice.

They bind ideas: a file has one, a folder has those that are read together.
"""

from __future__ import annotations

import ast
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOUSE = sorted(
    path for folder in ("shared", "functions", "relay", "infra", "tests") for path in (ROOT / folder).rglob("*.py")
)
FILE_LINES = 400
FOLDER_FILES = 25
FUNCTION_LINES = 40
DRAWERS = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
TABLES = {
    # files that are mostly one table
    "tests/local/gke/test_refusals.py",
    "tests/domain/reconciling/test_decide.py",
}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tracked(*folders: str) -> list[str]:
    """Return the files of the repository below these folders, those not yet committed among them."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def functions_of(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("path", HOUSE, ids=name_of)
def test_a_file_holds_one_idea(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines <= FILE_LINES or name_of(path) in TABLES, f"{lines} lines"


def test_a_folder_has_what_is_read_together() -> None:
    folders = Counter(
        Path(name).parent.as_posix() for name in tracked("shared", "functions", "relay", "infra", "tests")
    )
    assert {folder for folder, files in folders.items() if files > FOLDER_FILES} == set()


def test_an_exempt_table_outgrows_the_budget() -> None:
    exempt = {name_of(path) for path in HOUSE if len(path.read_text().splitlines()) > FILE_LINES}
    assert exempt == TABLES


@pytest.mark.parametrize("path", HOUSE, ids=name_of)
def test_a_function_fits_a_screen(path: Path) -> None:
    long = {
        node.name: size
        for node in functions_of(path)
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
    assert [name_of(path) for path in HOUSE if path.stem in DRAWERS or path.parent.name in DRAWERS] == []


def test_every_package_says_what_lives_there() -> None:
    deployed = [path for path in HOUSE if path.name == "__init__.py" and not name_of(path).startswith("tests/")]
    assert [name_of(path) for path in deployed if ast.get_docstring(ast.parse(path.read_text())) is None] == []


def test_the_top_level_is_what_was_agreed() -> None:
    agreed = {
        "pyproject.toml", "functions", "relay", "shared", "infra", "tests", "cloudbuild.yaml", "README.md",
        "docs", "examples", "Makefile", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md",
    }  # fmt: skip
    found = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
    assert found - agreed - {"build"} == set()

"""A stored record is born in one place, its own module: elsewhere it is only changed."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import get_args

import pytest

from tests.house.test_house import ROOT, name_of
from tpu_slices.ports.store import Record

BORN_IN = {kind.__name__: Path(inspect.getfile(kind)) for kind in get_args(Record)}
PRODUCT = sorted(path for folder in ("shared", "functions", "relay") for path in (ROOT / folder).rglob("*.py"))


def made_in(path: Path) -> set[str]:
    """Return the records that a module makes by naming their fields."""
    calls = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    return {func.id for func in calls if isinstance(func, ast.Name) and func.id in BORN_IN}


def test_every_kind_of_record_is_known() -> None:
    assert len(BORN_IN) == 7


@pytest.mark.parametrize("path", PRODUCT, ids=name_of)
def test_a_record_is_made_in_its_own_module_alone(path: Path) -> None:
    assert {name for name in made_in(path) if not BORN_IN[name].samefile(path)} == set()

"""A stored record is born in one place, its own module: elsewhere it is only changed."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import get_args

from tests.house.sources import ROOT, modules, tree
from tpu_slices.domain.records.rejected import RejectedMessage
from tpu_slices.ports.store import Record

BORN_IN = {kind.__name__: Path(inspect.getfile(kind)) for kind in get_args(Record)}


def made_in(name: str) -> set[str]:
    """Return the records that a module makes by naming their fields."""
    calls = (node.func for node in ast.walk(tree(name)) if isinstance(node, ast.Call))
    return {func.id for func in calls if isinstance(func, ast.Name) and func.id in BORN_IN}


def test_every_kind_of_record_is_known() -> None:
    assert len(BORN_IN) == 7


def test_what_is_stored_is_in_one_room() -> None:
    room = ROOT / "shared" / "tpu_slices" / "domain" / "records"
    stored = [*BORN_IN.values(), Path(inspect.getfile(RejectedMessage))]
    assert [file for file in stored if file.parent != room] == []


def test_a_record_is_made_in_its_own_module_alone() -> None:
    made = {(kind, name) for name in modules("shared/", "functions/", "relay/") for kind in made_in(name)}
    assert {(kind, name) for kind, name in made if not BORN_IN[kind].samefile(ROOT / name)} == set()
    assert made_in("tests/builders.py"), "such a call is seen where there is one"

"""What `make bench` keeps of what it measured."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench.__main__ import main, run
from tests.bench.measures import Measure, measure


def fails_after_a_row() -> Iterator[Measure]:
    yield measure("decided", "s", [1.0])
    raise AssertionError("stands still")


def test_what_was_measured_before_a_part_failed_is_stored(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="stands still"):
        run([fails_after_a_row], tmp_path)
    (file,) = tmp_path.iterdir()
    assert [row["name"] for row in json.loads(file.read_text())["rows"]] == ["decided"]


def test_a_part_that_does_not_exist_is_refused_before_anything_is_measured_or_stored(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "deciding", "no such part"])
    with pytest.raises(KeyError, match="no such part"):
        main()
    assert not capsys.readouterr().out

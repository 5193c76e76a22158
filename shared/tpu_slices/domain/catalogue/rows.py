"""Rows of facts: of the tab-separated files beside this module, and of the settings of a cluster.

A cell that is empty is not known, `-` says that there is none. Lines that begin with # are for people. Each row says
where its facts were read (`source`), and when (`read`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import NoReturn, TypeVar

Cells = tuple[tuple[str, str], ...]
"""The cells of a row with the names of their columns, as settings are kept."""
Value = TypeVar("Value")

NOTHING = frozenset({"", "-"})
_A_DAY = "a day such as 2026-11-27"
_FOLDER = Path(__file__).parent


class WrongRow(ValueError):
    """A row says what cannot be; the text names the file and the line, or the setting, the field and the remedy."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row, and what errors call it."""

    cells: Mapping[str, str]
    where: str = ""
    """What an error has before the field: `machines.tsv, line 12, ` or `catalogue.machines.0.`."""

    def text(self, field: str) -> str:
        """Return a text that has to be there."""
        return self.cells.get(field) or self.fail(field, "it is missing: write it")

    def words(self, field: str) -> tuple[str, ...]:
        """Return the words of a list; none: it is not known, or there is nothing."""
        text = self.cells.get(field, "")
        return () if text in NOTHING else tuple(text.split(" "))

    def maybe(self, field: str, read: Callable[[str], Value], must: str) -> Value | None:
        """Return what is read of a cell, None where nothing is known."""
        text = self.cells.get(field, "")
        if text in NOTHING:
            return None
        try:
            return read(text)
        except ValueError:
            return self.fail(field, f'"{text}" must be {must}')

    def number(self, field: str, at_most: int = 1_000_000) -> int | None:
        """Return a whole number; what is not known is never zero."""
        found = self.maybe(field, _above_zero, "a whole number above zero, or left out if it is not known")
        return found if found is None or found <= at_most else self.fail(field, f"{found} is more than {at_most}")

    def flag(self, field: str) -> bool | None:
        return self.maybe(field, _yes_or_no, "yes or no, or left out if it is not known")

    def day(self, field: str) -> date:
        """Return a day that has to be there."""
        return self.maybe(field, date.fromisoformat, _A_DAY) or self.fail(field, f"it is missing: write {_A_DAY}")

    def fail(self, field: str, problem: str) -> NoReturn:
        raise WrongRow(f"{self.where}{field}: {problem}")

    def only(self, columns: Collection[str]) -> None:
        """Raise WrongRow if a cell has a name that is none of the columns."""
        for field in self.cells:
            if field not in columns:
                self.fail(field, f"there is no such field: use {', '.join(columns)}")


def file_of(name: str) -> str:
    """Return the text of a file of facts, which is part of this package as its modules are."""
    return (_FOLDER / name).read_text(encoding="utf-8")


def rows_of(text: str, name: str) -> Iterator[Row]:
    """Yield the rows of a file of tab-separated cells; the first line that is no comment names the columns."""
    columns: list[str] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        cells = line.split("\t")
        if columns is None:
            columns = cells
        elif len(cells) != len(columns):
            raise WrongRow(
                f"{name}, line {number}: it has {len(cells)} cells, and there are {len(columns)} columns: put a tab "
                "between each two, also around an empty one"
            )
        else:
            yield Row(dict(zip(columns, cells, strict=True)), f"{name}, line {number}, ")


def rows_of_settings(section: str, rows: Iterable[Cells]) -> Iterator[Row]:
    """Yield the rows of a section of a cluster's settings."""
    for index, cells in enumerate(rows):
        yield Row(dict(cells), f"catalogue.{section}.{index}.")


def _above_zero(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ValueError(text)
    return int(text)


def _yes_or_no(text: str) -> bool:
    if text not in {"yes", "no"}:
        raise ValueError(text)
    return text == "yes"

"""The demo's output: a live table on a terminal; elsewhere one plain line per change, without escape codes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from infra.local.demo.steps import Progress
from infra.local.demo.table import COLUMNS, Row, changed, rows, status
from infra.local.demo.view import View
from tpu_slices.domain.model.reasons import Phase

COLOURS = {
    Phase.READY: "green",
    Phase.PROVISIONING: "yellow",
    Phase.RELEASING: "cyan",
    Phase.GONE: "dim",
    Phase.WAITING: "magenta",
    Phase.REFUSED: "red",
    Phase.BLOCKED: "red",
}


class Screen(Protocol):
    def say(self, line: str) -> None:
        """Print a line that stays on the screen."""

    def show(self, view: View, steps: Sequence[Progress], now: datetime) -> None:
        """Show the current state."""


@dataclass(slots=True)
class PlainScreen:
    """Prints the rows that have changed since the last call of `show`."""

    _rows: tuple[Row, ...] = field(default=())

    def say(self, line: str) -> None:
        print(line, flush=True)

    def show(self, view: View, steps: Sequence[Progress], now: datetime) -> None:  # noqa: ARG002 - steps are printed by `say`
        after = rows(view, now)
        for row in changed(self._rows, after):
            self.say(f"         {'  '.join(row.cells)}")
        self._rows = after


@dataclass(frozen=True, slots=True)
class LiveScreen:
    """Keeps the table at the bottom of the terminal; lines scroll above it."""

    live: Live

    def say(self, line: str) -> None:
        self.live.console.print(Text(line))

    def show(self, view: View, steps: Sequence[Progress], now: datetime) -> None:
        lines = [Text(status(each), overflow="ellipsis", no_wrap=True) for each in steps]
        self.live.update(Group(drawn(rows(view, now)), *lines), refresh=True)


@contextmanager
def opened(console: Console) -> Iterator[Screen]:
    if not console.is_terminal:
        yield PlainScreen()
        return
    with Live(console=console, auto_refresh=False) as live:
        yield LiveScreen(live)


def drawn(table_rows: Sequence[Row]) -> Table:
    """Return the table; on a narrow terminal only the slices' names are folded."""
    table = Table()
    for name in COLUMNS:
        table.add_column(name, no_wrap=name != "slice", overflow="fold")
    for row in table_rows:
        table.add_row(*row.cells, style=COLOURS.get(row.phase))
    return table

"""Where things are shown to people: colours on a terminal, whole lines everywhere else."""

from __future__ import annotations

import sys

import click
from rich.console import Console

_WIDE = 250  # columns for what is not read on a terminal: nothing is cut off


def console() -> Console:
    """Give the standard output; NO_COLOR is heeded (no-color.org)."""
    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else _WIDE, highlight=False, soft_wrap=False)


def confirmed(question: str, *, yes: bool) -> bool:
    """Ask; without a terminal and without --yes there is nobody to answer, which is a UsageError."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise click.UsageError("nobody is there to confirm it: use --yes")
    return click.confirm(question)

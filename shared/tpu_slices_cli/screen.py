"""Output and confirmation: colours and wrapped lines on a terminal, whole lines everywhere else."""

from __future__ import annotations

import sys

import click
from rich.console import Console

_WIDE = 250  # columns where the output is not a terminal


def console() -> Console:
    """Return a console on standard output; NO_COLOR disables colours (no-color.org)."""
    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else _WIDE, highlight=False, soft_wrap=False)


def confirmed(question: str, *, yes: bool) -> bool:
    """Return the answer to a question, or True with --yes; without --yes and without a terminal, raise a UsageError."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise click.UsageError("confirmation requires a terminal: use --yes")
    return click.confirm(question)

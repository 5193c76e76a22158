"""Output and confirmation: colours and wrapped lines on a terminal, whole lines everywhere else.

What tenants write is shown as text: without markup, and without characters that control a terminal.
"""

from __future__ import annotations

import sys
from typing import Any

import click
import structlog
from rich.console import Console
from rich.text import Text

from tpu_slices_cli.text import plain

_WIDE = 250  # columns where the output is not a terminal


class _Console(Console):
    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(plain(text), **options)


def console() -> Console:
    """Return a console on standard output; NO_COLOR disables colours (no-color.org)."""
    width = None if sys.stdout.isatty() else _WIDE
    return _Console(file=sys.stdout, width=width, highlight=False, soft_wrap=False, markup=False, emoji=False)


def echo(text: str, *, err: bool = False) -> None:
    """Print a line on standard output or error."""
    click.echo(plain(text), err=err)


def log_to_standard_error() -> None:
    """Write log lines, as of a record that cannot be read, to standard error: standard output is for results."""
    structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))


def confirmed(question: str, *, yes: bool) -> bool:
    """Return the answer to a question, or True with --yes; without --yes and without a terminal, raise a UsageError."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise click.UsageError("confirmation requires a terminal: use --yes")
    return click.confirm(question)

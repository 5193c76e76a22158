"""Output and confirmation: colours and wrapped lines on a terminal, whole lines everywhere else.

What tenants write is shown as text: without markup, and without characters that control a terminal.
What takes long to load is imported where it is used, so that help and completion start quickly.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from tpu_slices_cli.text import plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_WIDE = 250  # columns where the output is not a terminal


def console() -> Console:
    """Return a console on standard output; NO_COLOR disables colours (no-color.org)."""
    from rich.console import Console

    class PlainConsole(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(plain(text), **options)

    width = None if sys.stdout.isatty() else _WIDE
    return PlainConsole(file=sys.stdout, width=width, highlight=False, soft_wrap=False, markup=False, emoji=False)


def echo(text: str, *, err: bool = False) -> None:
    """Print a line on standard output or error."""
    click.echo(plain(text), err=err)


def log_to_standard_error() -> None:
    """Write log lines, as of a record that cannot be read, to standard error: standard output is for results."""
    import structlog

    structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))


def confirmed(question: str, *, yes: bool) -> bool:
    """Return the answer to a question, or True with --yes; without --yes and without a terminal, raise a UsageError."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise click.UsageError("confirmation requires a terminal: use --yes")
    return click.confirm(question)

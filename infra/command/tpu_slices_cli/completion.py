"""`slices completion`: the script by which a shell completes commands, options, files and the names on record.

Names are asked of Firestore at each TAB: what has not answered after a moment, or fails, completes nothing and says
nothing.
"""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class

from tpu_slices_cli.session import Session

if TYPE_CHECKING:
    from tpu_slices.domain.records.slices import SliceRecord

_INSTALL = {
    "bash": "slices completion bash > ~/.local/share/bash-completion/completions/slices",
    "zsh": "slices completion zsh > ~/.zfunc/_slices  # with fpath+=~/.zfunc before compinit in ~/.zshrc",
    "fish": "slices completion fish > ~/.config/fish/completions/slices.fish",
}
PATIENCE_SECONDS = 2.0


@click.command(name="completion")
@click.argument("shell", type=click.Choice([*_INSTALL]))
@click.pass_context
def completion_command(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell. Its first line is the command that installs it."""
    completion = get_completion_class(shell)
    assert completion is not None, shell
    script = completion(context.find_root().command, {}, "slices", "_SLICES_COMPLETE").source()
    click.echo(f"# {_INSTALL[shell]}\n{script.strip()}")


def complete_clusters(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the clusters that begin so."""
    return _within_a_moment(lambda session: iter(session.clusters()), context, incomplete)


def complete_namespaces(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the namespaces that have slices and begin so."""
    return _within_a_moment(lambda session: (each.owner.namespace for each in _kept(session)), context, incomplete)


def complete_workloads(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the workloads that have slices and begin so, as NAMESPACE/NAME."""
    return _within_a_moment(lambda session: (each.owner.full_name for each in _kept(session)), context, incomplete)


def complete_names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the workloads that begin so, or slices, whose names all begin with `tpu-`."""
    if incomplete.startswith("tpu-"):
        return _within_a_moment(lambda session: (each.name for each in _kept(session)), context, incomplete)
    return complete_workloads(context, parameter, incomplete)


def _kept(session: Session) -> Iterator[SliceRecord]:
    store = session.deps.store
    return (stored.value for cluster in session.clusters() for stored in store.kept_slices(cluster))


def _within_a_moment(names: Callable[[Session], Iterator[str]], context: click.Context, incomplete: str) -> list[str]:
    """Return the names that are read within PATIENCE_SECONDS, sorted, each once."""
    session = context.obj
    if not isinstance(session, Session):  # the group itself does not run while a shell completes
        session = Session(context.find_root().params.get("project"))
    found: dict[str, None] = {}

    def read() -> None:
        with contextlib.suppress(Exception):
            found.update((name, None) for name in names(session) if name.startswith(incomplete))

    with contextlib.redirect_stderr(io.StringIO()):
        reading = threading.Thread(target=read, daemon=True)
        reading.start()
        reading.join(PATIENCE_SECONDS)
    return sorted([*found])

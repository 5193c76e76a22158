"""`slices completion`: the script by which a shell completes commands, options and files."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_INSTALL = {
    "bash": "slices completion bash > ~/.local/share/bash-completion/completions/slices",
    "zsh": "slices completion zsh > ~/.zfunc/_slices  # with fpath+=~/.zfunc before compinit in ~/.zshrc",
    "fish": "slices completion fish > ~/.config/fish/completions/slices.fish",
}


@click.command(name="completion")
@click.argument("shell", type=click.Choice([*_INSTALL]))
@click.pass_context
def completion_command(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell. Its first line is the command that installs it."""
    completion = get_completion_class(shell)
    assert completion is not None, shell
    script = completion(context.find_root().command, {}, "slices", "_SLICES_COMPLETE").source()
    click.echo(f"# {_INSTALL[shell]}\n{script.strip()}")

"""`slices`: the group of commands, its options and exit codes. A command's module is imported when the command runs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices_cli.manifests import NotAManifest
from tpu_slices_cli.screen import echo
from tpu_slices_cli.session import Session

NOT_DONE, UNREADABLE, INTERRUPTED = 1, 2, 130

COMMANDS: Mapping[str, tuple[str, str]] = {
    "plan": ("plan", "Show the slice that each Job of a manifest would get."),
    "list": ("listing", "List slices."),
    "explain": ("explaining", "Explain the state of a slice, or why a workload waits."),
    "timeline": ("timeline.command", "Write a timeline of slices as an HTML page."),
    "simulate": ("simulate.command", "Simulate what becomes of workloads while things go wrong."),
    "hold": ("steering", "Put a slice on hold: nothing is created or deleted for it."),
    "release": ("steering", "Release a slice: delete its hosts now."),
    "pause": ("steering", "Pause a cluster: nothing is created or deleted in it."),
    "resume": ("steering", "End the hold of a slice, or the pause of a cluster."),
    "confirm-deletions": ("steering", "Let releases go on that were stopped: many workloads were missing."),
    "configure": ("configuring", "Check and write the settings of clusters."),
    "doctor": ("doctor", "Check every part by one round trip, and say what is wrong."),
    "retire": ("retiring", "Release all slices of a cluster, create none any more, and forget it."),
    "gangs": ("inside.gangs", "Let pods of gangs go that wait for the provisioner."),
    "adopt": ("adopt.command", "Adopt what TPU Provisioner or TPU operator made."),
    "completion": ("completion", "Print the completion script of a shell."),
}
"""The module and a short help of each command, in the order in which a new user needs them."""

ALIASES: Mapping[str, str] = {"get": "list", "describe": "explain"}
"""The words of kubectl for what two commands do."""


class Commands(click.Group):
    """A group that knows its commands by name and short help, and prints errors as one line, without a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the commands in the order in which a new user needs them, instead of by name."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        """Return the name and short help of a command: what lists of commands show."""
        name = ALIASES.get(cmd_name, cmd_name)
        return click.Command(name, short_help=COMMANDS[name][1]) if name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command itself, that of an alias under its own name, and the rest of the arguments."""
        if args[0] not in {*COMMANDS, *ALIASES}:
            return super().resolve_command(ctx, args)
        name = ALIASES.get(args[0], args[0])
        return name, loaded(name), args[1:]

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except NotAManifest as error:
            _end(str(error), UNREADABLE)
        except Permanent as error:
            _end(str(error), NOT_DONE)
        except Temporary as error:
            asked = f"; asked was {ctx.obj.project}" if isinstance(ctx.obj, Session) and ctx.obj.project else ""
            _end(f"{error}{asked}", NOT_DONE)
        except KeyboardInterrupt:
            _end("", INTERRUPTED)


def loaded(name: str) -> click.Command:
    """Import the module of a command, and return the command."""
    module = import_module(f"tpu_slices_cli.{COMMANDS[name][0]}")
    command: click.Command = getattr(module, f"{name.replace('-', '_')}_command")
    return command


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`slices get` is `slices list`, and `slices describe` is `slices explain`.",
)
@click.option(
    "--project",
    metavar="PROJECT",
    help="ID of the Google Cloud project that has the records. Without it: GOOGLE_CLOUD_PROJECT, or that of gcloud's "
    "active configuration.",
)
@click.version_option(package_name="tpu-slice-provisioner", prog_name="slices")
@click.pass_context
def main(context: click.Context, project: str | None) -> None:
    """Plan, inspect and control the TPU slices that the provisioner creates for JobSets, Jobs and LeaderWorkerSets.

    \b
    slices plan -f FILE              what would a file get, and what would it cost?
    slices list                      which slices are there, and how are they?
    slices explain NAMESPACE/NAME    why does my workload wait?
    """  # noqa: D301 - click keeps the line breaks after this mark
    if not isinstance(context.obj, Session):
        context.obj = Session(project)


def _end(text: str, code: int) -> None:
    echo(" ".join(text.split()), err=True)
    sys.exit(code)

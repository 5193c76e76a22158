"""`slices`: the group of commands, its options and exit codes."""

from __future__ import annotations

import sys
from typing import Any

import click

from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices_cli.adopt.command import adopt_command
from tpu_slices_cli.completion import completion_command
from tpu_slices_cli.configuring import configure_command
from tpu_slices_cli.doctor import doctor_command
from tpu_slices_cli.explaining import explain_command
from tpu_slices_cli.listing import list_command
from tpu_slices_cli.manifests import NotAManifest
from tpu_slices_cli.plan import plan_command
from tpu_slices_cli.retiring import retire_command
from tpu_slices_cli.screen import echo
from tpu_slices_cli.session import Session
from tpu_slices_cli.simulate.command import simulate_command
from tpu_slices_cli.steering import (
    confirm_deletions_command,
    hold_command,
    pause_command,
    release_command,
    resume_command,
)
from tpu_slices_cli.timeline.command import timeline_command

NOT_DONE, UNREADABLE, INTERRUPTED = 1, 2, 130


class Commands(click.Group):
    """A group whose errors are printed as one line, without a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the commands in the order in which a new user needs them, instead of by name."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except NotAManifest as error:
            _end(str(error), UNREADABLE)
        except (Permanent, Temporary) as error:
            _end(str(error), NOT_DONE)
        except KeyboardInterrupt:
            _end("", INTERRUPTED)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--project",
    envvar="GOOGLE_CLOUD_PROJECT",
    metavar="PROJECT",
    help="ID of the Google Cloud project. [env: GOOGLE_CLOUD_PROJECT]",
)
@click.version_option(package_name="tpu-slice-provisioner", prog_name="slices")
@click.pass_context
def main(context: click.Context, project: str | None) -> None:
    """Plan, inspect and control the TPU slices that the provisioner creates for JobSets."""
    if not isinstance(context.obj, Session):
        context.obj = Session(project)


for command in (
    plan_command,
    list_command,
    explain_command,
    timeline_command,
    simulate_command,
    hold_command,
    release_command,
    pause_command,
    resume_command,
    confirm_deletions_command,
    configure_command,
    doctor_command,
    retire_command,
    adopt_command,
    completion_command,
):
    main.add_command(command)


def _end(text: str, code: int) -> None:
    echo(" ".join(text.split()), err=True)
    sys.exit(code)

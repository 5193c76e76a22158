"""`slices`: the group of commands, and what they have in common."""

from __future__ import annotations

import click

from shared.cli.session import Session


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--project",
    envvar="GOOGLE_CLOUD_PROJECT",
    metavar="PROJECT",
    help="Project with the records. [env: GOOGLE_CLOUD_PROJECT]",
)
@click.version_option(package_name="tpu-slice-provisioner", prog_name="slices")
@click.pass_context
def main(context: click.Context, project: str | None) -> None:
    """See and steer the TPU slices that the provisioner buys for JobSets."""
    context.obj = Session(project)

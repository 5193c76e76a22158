"""`slices configure`: the settings of clusters, from files into Firestore."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import yaml

from tpu_slices.ports.errors import StaleRecord
from tpu_slices_cli.screen import confirmed
from tpu_slices_cli.session import Session
from tpu_slices_cli.settings_file import SettingsFile, read_settings

EDITED = 1


@click.command(name="configure", short_help="Check and write a cluster's settings.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option("--dry-run", is_flag=True, help="Only check, and show what would change.")
@click.option("--overwrite", is_flag=True, help="Also where somebody edited the document since.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def configure_command(session: Session, files: tuple[Path, ...], *, dry_run: bool, overwrite: bool, yes: bool) -> None:
    """Check settings, show what changes, and write them to clusters/ID; the id is the file's name.

    \b
    slices configure infra/clusters/my-project/my-cluster.yaml

    Every field is documented in infra/clusters/example-project/example-cluster.yaml. A document that somebody edited in
    the console since it was last configured is not overwritten. Slices keep the pool settings that they were made with.

    Exit code: 0 done, 1 edited by somebody else, 2 a file is wrong.
    """  # noqa: D301 - click's mark for lines to leave as they are
    for checked in [read_settings(path) for path in files]:
        _configure(checked, session, dry_run=dry_run, overwrite=overwrite, yes=yes)


def _configure(file: SettingsFile, session: Session, *, dry_run: bool, overwrite: bool, yes: bool) -> None:
    written = session.written.read(file.cluster)
    name = f"clusters/{file.cluster}"
    if written.document is not None and written.document != written.accepted and not overwrite:
        _show(written.accepted or {}, written.document, f"{name}, as configured", f"{name}, as edited since")
        how = "was edited since it was configured" if written.accepted else "was written by hand"
        click.echo(f"{name} {how}. Take that into {file.path}, or use --overwrite.", err=True)
        sys.exit(EDITED)
    if written.document == file.document == written.accepted:
        click.echo(f"{name} is so already.")
        return
    _show(written.document or {}, file.document, name, str(file.path))
    if dry_run or not confirmed(f"Write {name}?", yes=yes):
        click.echo("Nothing was written.")
        return
    try:
        session.written.write(file.cluster, file.document, written.revision)
    except StaleRecord:
        click.echo(f"{name} was written by somebody else this very moment: run it again.", err=True)
        sys.exit(EDITED)
    click.echo(f"{name} is written. Slices that were refused are looked at again within 5 minutes.")


def _show(before: Mapping[str, Any], after: Mapping[str, Any], old: str, new: str) -> None:
    for line in _difference(before, after, old, new):
        colour = {"+": "green", "-": "red"}.get(line[:1])
        click.secho(line, fg=colour)


def _difference(before: Mapping[str, Any], after: Mapping[str, Any], old: str, new: str) -> Iterator[str]:
    left, right = (yaml.safe_dump(dict(each)).splitlines() if each else [] for each in (before, after))
    return difflib.unified_diff(left, right, fromfile=old, tofile=new, lineterm="")

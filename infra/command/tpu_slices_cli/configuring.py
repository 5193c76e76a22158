"""`slices configure`: write the settings of clusters from files to Firestore."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import yaml

from tpu_slices.ports.errors import Permanent, StaleRecord, Temporary
from tpu_slices_cli.examination import MAKE_TOPICS
from tpu_slices_cli.screen import confirmed, echo
from tpu_slices_cli.session import Session
from tpu_slices_cli.settings_file import SettingsFile, read_settings

EDITED, UNSERVED = 1, 3


@click.command(name="configure")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option("--dry-run", is_flag=True, help="Check the files and show the difference; write nothing.")
@click.option("--overwrite", is_flag=True, help="Overwrite documents that were edited since they were last configured.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_obj
def configure_command(session: Session, files: tuple[Path, ...], *, dry_run: bool, overwrite: bool, yes: bool) -> None:
    """Check settings, show the difference, and write them to clusters/ID. ID is the file's name without .yaml.

    \b
    slices configure infra/clusters/my-project/my-cluster.yaml

    Every field is documented in infra/clusters/example-project/example-cluster.yaml. A document that was edited in the
    console since it was last configured is not overwritten. Existing slices keep the pool settings that they were
    created with.

    A cluster whose topics or subscriptions are missing would have slices on record that nobody makes: it is not
    configured before the build has made them.

    Exit codes: 0 success, 1 a document was edited elsewhere, 2 a file is invalid, 3 topics are missing.
    """  # noqa: D301 - click keeps the line breaks after this mark
    for checked in [read_settings(path) for path in files]:
        _configure(checked, session, dry_run=dry_run, overwrite=overwrite, yes=yes)


def _configure(file: SettingsFile, session: Session, *, dry_run: bool, overwrite: bool, yes: bool) -> None:
    written = session.written.read(file.cluster)
    name = f"clusters/{file.cluster}"
    if written.document is not None and written.document != written.accepted and not overwrite:
        _show(written.accepted or {}, written.document, f"{name}, as configured", f"{name}, as edited")
        how = "was edited since it was last configured" if written.accepted else "was not written by `slices configure`"
        echo(f"{name} {how}. Copy the changes to {file.path}, or use --overwrite.", err=True)
        sys.exit(EDITED)
    if written.document == file.document == written.accepted:
        echo(f"{name} is up to date.")
        return
    _show(written.document or {}, file.document, name, str(file.path))
    if not dry_run:
        _demand_topics(file, session)
    if dry_run or not confirmed(f"Write {name}?", yes=yes):
        echo("Nothing was changed.")
        return
    try:
        session.written.write(file.cluster, file.document, written.revision)
    except StaleRecord:
        echo(f"{name} was changed by somebody else at the same time. Run the command again.", err=True)
        sys.exit(EDITED)
    echo(f"{name} is configured. Refused slices are reconciled again within 5 minutes.")


def _demand_topics(file: SettingsFile, session: Session) -> None:
    """End the command if the cluster has not all of its topics and subscriptions; go on if that is not known.

    The local stack makes them as soon as it sees that a cluster is configured.
    """
    if session.settings.emulated:
        return
    try:
        missing = session.messaging.missing(file.cluster)
    except (Permanent, Temporary) as unknown:
        echo(f"Whether {file.cluster} has its topics and subscriptions is not known: {unknown}", err=True)
        return
    if missing:
        echo(f"{file.cluster} is not served yet, and nothing was written. Missing: {', '.join(missing)}.", err=True)
        echo(MAKE_TOPICS.format(cluster=file.cluster), err=True)
        sys.exit(UNSERVED)


def _show(before: Mapping[str, Any], after: Mapping[str, Any], old: str, new: str) -> None:
    for line in _difference(before, after, old, new):
        colour = {"+": "green", "-": "red"}.get(line[:1])
        click.secho(line, fg=colour)


def _difference(before: Mapping[str, Any], after: Mapping[str, Any], old: str, new: str) -> Iterator[str]:
    left, right = (yaml.safe_dump(dict(each)).splitlines() if each else [] for each in (before, after))
    return difflib.unified_diff(left, right, fromfile=old, tofile=new, lineterm="")

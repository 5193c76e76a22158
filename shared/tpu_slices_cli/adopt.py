"""`slices adopt`: take over the node pools of TPU Provisioner."""

from __future__ import annotations

from collections.abc import Sequence

import click
from rich.table import Table
from rich.text import Text

from tpu_slices.domain.reconciling.adoption import Adoption, LiveWorkload
from tpu_slices.flows.adopt import adopt, survey
from tpu_slices.wire.jobsets import jobset_ref, jobset_state
from tpu_slices.wire.workloads import requests_of
from tpu_slices_cli.manifests import Manifest, NotAManifest, read
from tpu_slices_cli.planning import JOBSET_VERSION
from tpu_slices_cli.screen import confirmed, console
from tpu_slices_cli.session import Session


@click.command(name="adopt", short_help="Take over the node pools of TPU Provisioner.")
@click.option(
    "--filename", "-f", "files", multiple=True, required=True, metavar="FILE", help="All JobSets of the cluster."
)
@click.option("--cluster", metavar="ID", help="The cluster; may be left out where there is only one.")
@click.option("--dry-run", is_flag=True, help="Only show what would become of each pool.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def adopt_command(session: Session, files: tuple[str, ...], cluster: str | None, *, dry_run: bool, yes: bool) -> None:
    """Take over the node pools that TPU Provisioner made for JobSets that live: as they are, nothing restarts.

    \b
    kubectl get jobsets -A -o json > jobsets.json
    slices adopt -f jobsets.json --cluster my-cluster

    Stop TPU Provisioner first (infra/moving-from-tpu-provisioner.md has the order of steps). A pool is kept while its
    JobSet lives, and deleted when that ends. Pools that nobody needs are shown and left alone. Doing it again does no
    harm.
    """  # noqa: D301 - click's mark for lines to leave as they are
    jobsets = [_live(manifest) for manifest in read(files) if manifest.kind == "JobSet"]
    id_ = session.cluster(cluster)
    plan = survey(id_, jobsets, session.deps)
    _show(plan.adoptions)
    taken = sum(adoption.record is not None for adoption in plan.adoptions)
    if dry_run or not taken:
        click.echo(f"{taken} to take over; nothing was changed.")
        return
    if not confirmed(f"Take over {taken} of {len(plan.adoptions)} node pools of {id_}?", yes=yes):
        return
    plan = adopt(id_, jobsets, session.deps)
    click.echo(
        f"{sum(adoption.record is not None for adoption in plan.adoptions)} taken over: see them with `slices list`."
    )


def _live(manifest: Manifest) -> LiveWorkload:
    if manifest.body["apiVersion"] != JOBSET_VERSION:
        raise manifest.is_not(f"apiVersion: {manifest.body['apiVersion']} is not understood, only {JOBSET_VERSION}")
    if not {"uid", "resourceVersion", "namespace", "name"} <= manifest.metadata.keys():
        raise manifest.is_not("metadata has no uid: list them with kubectl get jobsets -A -o json")
    try:
        return LiveWorkload(
            ref=jobset_ref(manifest.body),
            state=jobset_state(manifest.body),
            requests=requests_of(manifest.body),
        )
    except ValueError as wrong:
        raise NotAManifest(f"{manifest.where}: {wrong}") from wrong


def _show(adoptions: Sequence[Adoption]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("NODE POOL", "JOB", "WHAT BECOMES OF IT"):
        table.add_column(title, overflow="fold")
    for adoption in adoptions:
        style = "green" if adoption.record is not None else "yellow"
        table.add_row(
            adoption.pool.name, f"{adoption.pool.namespace}/{adoption.pool.job}", Text(adoption.why, style=style)
        )
    console().print(table)

"""`slices adopt`: adopt the node pools of TPU Provisioner."""

from __future__ import annotations

from collections.abc import Sequence

import click
from rich.table import Table
from rich.text import Text

from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.domain.reconciling.adoption import Adoption, LiveWorkload
from tpu_slices.flows.adopt import adopt, survey
from tpu_slices.wire.readers import READERS
from tpu_slices_cli.manifests import Manifest, NotAManifest, read_all
from tpu_slices_cli.screen import confirmed, console, echo
from tpu_slices_cli.session import Session
from tpu_slices_cli.text import plain

_JOBSETS = READERS[OwnerKind.JOBSET]


@click.command(name="adopt", short_help="Adopt the node pools of TPU Provisioner.")
@click.option(
    "--filename",
    "-f",
    "files",
    multiple=True,
    required=True,
    metavar="FILE",
    help="Manifests of all JobSets of the cluster; - is standard input.",
)
@click.option("--cluster", metavar="ID", help="ID of the cluster; optional if only one is configured.")
@click.option("--dry-run", is_flag=True, help="Show the plan, and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_obj
def adopt_command(session: Session, files: tuple[str, ...], cluster: str | None, *, dry_run: bool, yes: bool) -> None:
    """Adopt the node pools that TPU Provisioner created for active JobSets. No pool is rebuilt, no Job restarts.

    \b
    kubectl get jobsets -A -o json > jobsets.json
    slices adopt -f jobsets.json --cluster my-cluster

    Stop TPU Provisioner first: infra/moving-from-tpu-provisioner.md has all steps. An adopted pool is kept while its
    JobSet is active, and deleted when the JobSet ends. Other pools are listed and left alone. The command is safe to
    repeat.
    """  # noqa: D301 - click keeps the line breaks after this mark
    jobsets = [_live(manifest) for manifest in read_all(files) if manifest.kind == "JobSet"]
    id_ = session.cluster(cluster)
    plan = survey(id_, jobsets, session.deps)
    _show(plan.adoptions)
    adoptable = _count(plan.adoptions)
    if dry_run or not adoptable:
        echo(f"{adoptable} of {_pools(plan.adoptions)} can be adopted. Nothing was changed.")
        return
    if not confirmed(f"Adopt {adoptable} of {_pools(plan.adoptions)} of {id_}?", yes=yes):
        return
    plan = adopt(id_, jobsets, session.deps)
    echo(f"{_count(plan.adoptions)} of {_pools(plan.adoptions)} adopted; `slices list` shows them.")


def _live(manifest: Manifest) -> LiveWorkload:
    if manifest.body["apiVersion"] != _JOBSETS.kind.api_version:
        found, known = manifest.body["apiVersion"], _JOBSETS.kind.api_version
        raise manifest.is_not(f"apiVersion: {found} is not supported, only {known}")
    if not {"uid", "resourceVersion", "namespace", "name"} <= manifest.metadata.keys():
        raise manifest.is_not("metadata has no uid: use the output of kubectl get jobsets -A -o json")
    try:
        return LiveWorkload(
            ref=_JOBSETS.ref(manifest.body),
            state=_JOBSETS.state(manifest.body),
            requests=_JOBSETS.requests(manifest.body),
        )
    except ValueError as error:
        raise NotAManifest(f"{manifest.where}: {error}") from error


def _count(adoptions: Sequence[Adoption]) -> int:
    """Return the number of pools that are adopted."""
    return sum(adoption.record is not None for adoption in adoptions)


def _pools(adoptions: Sequence[Adoption]) -> str:
    return "1 node pool" if len(adoptions) == 1 else f"{len(adoptions)} node pools"


def _show(adoptions: Sequence[Adoption]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("NODE POOL", "JOB", "OUTCOME"):
        table.add_column(title, overflow="fold")
    for adoption in adoptions:
        style = "green" if adoption.record is not None else "yellow"
        table.add_row(
            adoption.pool.name, f"{adoption.pool.namespace}/{adoption.pool.job}", Text(plain(adoption.why), style=style)
        )
    console().print(table)

"""`slices adopt`: adopt the node pools of TPU Provisioner, and the slices of TPU operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import click
from rich.table import Table
from rich.text import Text

from tpu_slices.domain.model.slices import ClusterId, OwnerKind
from tpu_slices.domain.reconciling.adoption import Adoption, LiveWorkload
from tpu_slices.flows.adopt import AdoptionPlan, adopt, adopt_groups, survey, survey_groups
from tpu_slices.wire.operator_objects import PARTS, operator_groups
from tpu_slices.wire.readers import READERS
from tpu_slices_cli.adopt.handover import commands, running_or_unknown
from tpu_slices_cli.completion import complete_clusters
from tpu_slices_cli.manifests import Manifest, NotAManifest, read_all
from tpu_slices_cli.screen import confirmed, console, echo
from tpu_slices_cli.session import Session
from tpu_slices_cli.text import plain

_JOBSETS = READERS[OwnerKind.JOBSET]
_OF_OPERATOR = "only in a self-managed cluster, whose slices TPU operator made"


@dataclass(frozen=True, slots=True)
class _Migration:
    """What is adopted in a cluster, and how."""

    noun: str
    """Of what is adopted."""
    owner: str
    """The heading of whose it is."""
    survey: Callable[[], AdoptionPlan]
    carry_out: Callable[[], AdoptionPlan]


@click.command(name="adopt")
@click.option(
    "--filename",
    "-f",
    "files",
    multiple=True,
    required=True,
    metavar="FILE",
    help="What kubectl printed of the cluster, as below; - is standard input.",
)
@click.option(
    "--cluster",
    metavar="ID",
    help="ID of the cluster; optional if only one is configured.",
    shell_complete=complete_clusters,
)
@click.option("--dry-run", is_flag=True, help="Show the plan, and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option(
    "--operator-stopped", is_flag=True, help="TPU operator runs nowhere, though no FILE shows its Deployment."
)
@click.option("--handover", is_flag=True, help="Print the commands that free adopted TPUNodeGroups of TPU operator.")
@click.pass_obj
def adopt_command(  # noqa: PLR0913 - one for each option
    session: Session,
    files: tuple[str, ...],
    cluster: str | None,
    *,
    dry_run: bool,
    yes: bool,
    operator_stopped: bool,
    handover: bool,
) -> None:
    """Adopt what another provisioner made. Nothing is rebuilt or restarted, and the command is safe to repeat.

    The node pools that TPU Provisioner created for active JobSets, once it is stopped
    (infra/moving-from-tpu-provisioner.md):

    \b
    kubectl get jobsets -A -o json > jobsets.json
    slices adopt -f jobsets.json --cluster my-cluster

    In a self-managed cluster, the slices that TPU operator made for TPUNodeGroups, once it is stopped and before the
    relay runs (docs/moving-from-tpu-operator.md). FILE has the TPUNodeGroups, TPU operator's objects about their parts,
    its Deployment and its pods.

    What is adopted is kept while its JobSet is active, or until its TPUNodeGroup is deleted, and deleted then. The rest
    is listed with the reason, and left alone.
    """  # noqa: D301 - click keeps the line breaks after this mark
    manifests = [*read_all(files)]
    id_ = session.cluster(cluster)
    settings = session.deps.store.settings(id_)
    if settings is not None and settings.self_managed:
        migration = _of_groups(manifests, id_, session, stopped=operator_stopped)
    elif handover or operator_stopped:
        raise click.UsageError(f"--{'handover' if handover else 'operator-stopped'}: {_OF_OPERATOR}")
    else:
        migration = _of_jobsets(manifests, id_, session)
    if handover:
        echo("\n".join(commands([each.body for each in manifests], migration.survey().adoptions)))
    else:
        _adopt(migration, id_, dry_run=dry_run, yes=yes)


def _adopt(migration: _Migration, id_: ClusterId, *, dry_run: bool, yes: bool) -> None:
    """Show what can be adopted, ask, and adopt it."""
    plan = migration.survey()
    _show(plan.adoptions, migration)
    adoptable, all_ = _count(plan.adoptions), _all(plan.adoptions, migration)
    if dry_run or not adoptable:
        echo(f"{adoptable} of {all_} can be adopted. Nothing was changed.")
        return
    if not confirmed(f"Adopt {adoptable} of {all_} of {id_}?", yes=yes):
        return
    plan = migration.carry_out()
    echo(f"{_count(plan.adoptions)} of {_all(plan.adoptions, migration)} adopted; `slices list` shows them.")


def _of_jobsets(manifests: Sequence[Manifest], id_: ClusterId, session: Session) -> _Migration:
    jobsets = [_live(manifest) for manifest in manifests if manifest.kind == "JobSet"]
    return _Migration(
        "node pool",
        "JOB",
        lambda: survey(id_, jobsets, session.deps),
        lambda: adopt(id_, jobsets, session.deps),
    )


def _of_groups(manifests: Sequence[Manifest], id_: ClusterId, session: Session, *, stopped: bool) -> _Migration:
    """Return the migration of TPUNodeGroups; NotAManifest: they are not the API server's, UsageError: it may run."""
    for manifest in manifests:
        if manifest.kind in {OwnerKind.TPU_NODE_GROUP, *PARTS}:
            _check_read(manifest, "tpunodegroups")
    objects = [manifest.body for manifest in manifests]
    try:
        groups, why = operator_groups(objects), running_or_unknown(objects, stopped=stopped)
    except (AttributeError, KeyError, TypeError) as error:
        raise NotAManifest(f"objects that the API server does not return so: {error!r}") from error
    if why is not None:
        raise click.UsageError(why)
    return _Migration(
        "instance group",
        "TPUNODEGROUP",
        lambda: survey_groups(id_, groups, session.deps),
        lambda: adopt_groups(id_, groups, session.deps),
    )


def _live(manifest: Manifest) -> LiveWorkload:
    if manifest.body["apiVersion"] != _JOBSETS.kind.api_version:
        found, known = manifest.body["apiVersion"], _JOBSETS.kind.api_version
        raise manifest.is_not(f"apiVersion: {found} is not supported, only {known}")
    _check_read(manifest, "jobsets")
    try:
        return LiveWorkload(
            ref=_JOBSETS.ref(manifest.body),
            state=_JOBSETS.state(manifest.body),
            requests=_JOBSETS.requests(manifest.body),
        )
    except ValueError as error:
        raise NotAManifest(f"{manifest.where}: {error}") from error


def _check_read(manifest: Manifest, plural: str) -> None:
    """Raise NotAManifest for what a user wrote: only what the API server returns has a UID."""
    if not {"uid", "resourceVersion", "namespace", "name"} <= manifest.metadata.keys():
        raise manifest.is_not(f"metadata has no uid: use the output of kubectl get {plural} -A -o json")


def _count(adoptions: Sequence[Adoption]) -> int:
    """Return the number of pools that are adopted."""
    return sum(adoption.record is not None for adoption in adoptions)


def _all(adoptions: Sequence[Adoption], migration: _Migration) -> str:
    return f"1 {migration.noun}" if len(adoptions) == 1 else f"{len(adoptions)} {migration.noun}s"


def _show(adoptions: Sequence[Adoption], migration: _Migration) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in (migration.noun.upper(), migration.owner, "OUTCOME"):
        table.add_column(title, overflow="fold")
    for adoption in adoptions:
        style = "green" if adoption.record is not None else "yellow"
        table.add_row(
            adoption.pool.name, f"{adoption.pool.namespace}/{adoption.pool.job}", Text(plain(adoption.why), style=style)
        )
    console().print(table)

"""`slices plan`: the slice that each Job of a manifest would get, or the refusal."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
import yaml
from rich.table import Table
from rich.text import Text

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.records import Refusal
from tpu_slices.domain.model.slices import ClusterId, SliceSpec
from tpu_slices_cli.manifests import NotAManifest, read
from tpu_slices_cli.planning import Plan, Planned, plan
from tpu_slices_cli.screen import console, echo
from tpu_slices_cli.session import Session
from tpu_slices_cli.settings_file import read_settings
from tpu_slices_cli.text import plain

REFUSED = 3


@click.command(name="plan", short_help="Show the slice that each Job of a manifest would get.")
@click.option(
    "--filename",
    "-f",
    "files",
    multiple=True,
    required=True,
    metavar="FILE",
    help="File or folder of manifests; - is standard input.",
)
@click.option(
    "--cluster",
    required=True,
    metavar="FILE|ID",
    shell_complete=lambda *_: [click.shell_completion.CompletionItem("infra/clusters/", type="file")],
    help="Settings of the cluster: a file, or the ID of a configured cluster.",
)
@click.option("--namespace", "-n", default="default", show_default=True, help="Namespace of manifests without one.")
@click.option("--output", "-o", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
@click.pass_obj
def plan_command(session: Session, files: tuple[str, ...], cluster: str, namespace: str, output: str) -> None:
    """Show the slice that each Job of a JobSet, or each leader Pod, would get. Nothing is created.

    The plan is made by the code that creates the slices.

    \b
    slices plan -f train.yaml --cluster infra/clusters/my-project/my-cluster.yaml
    kubectl get jobsets -A -o yaml | slices plan -f - --cluster my-cluster -o json

    The IDs of slices and the names of node pools depend on the JobSet's UID. Those of a JobSet that is not created yet
    are examples.

    Exit codes: 0 no Job is refused, 2 a file is invalid, 3 at least one Job is refused.
    """  # noqa: D301 - click keeps the line breaks after this mark
    manifests = read(files)
    if not any(manifest.kind in {"JobSet", "Pod"} for manifest in manifests):
        raise NotAManifest(f"{', '.join(files)}: contains no JobSet and no Pod")
    planned = plan(manifests, _settings(session, cluster), namespace)
    match output:
        case "json":
            click.echo(json.dumps(_as_json(planned), indent=2))
        case "yaml":
            click.echo(yaml.safe_dump(_as_json(planned), sort_keys=False), nl=False)
        case _:
            _show(planned)
    sys.exit(REFUSED if planned.refused else 0)


def _settings(session: Session, cluster: str) -> ClusterSettings:
    if cluster.endswith((".yaml", ".yml")) or Path(cluster).exists():
        return read_settings(Path(cluster)).settings
    settings = session.deps.store.settings(ClusterId(cluster))
    if settings is None:
        raise NotAManifest(f"--cluster {cluster}: neither a file nor a configured cluster")
    return settings


def _as_json(planned: Plan) -> dict[str, object]:
    return {"slices": [each.as_json() for each in planned.slices], "warnings": [*planned.warnings]}


def _show(planned: Plan) -> None:
    for skipped in planned.skipped:
        echo(f"skipped {skipped}", err=True)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("JOB", "SLICE", "HOSTS", "CHIPS", "CAPACITY", "ZONE", "NODE POOL"):
        table.add_column(title, justify="right" if title == "CHIPS" else "left", overflow="fold")
    for each in planned.slices:
        table.add_row(*_row(each))
    screen = console()
    screen.print(table)
    for each in planned.slices:
        if isinstance(each.outcome, Refusal):
            screen.print(Text(plain(f"{_job(each)}: {each.outcome.message}"), style="red"))
    for warning in planned.warnings:
        screen.print(Text(plain(f"warning: {warning}"), style="yellow"))
    screen.print(_summary(planned))


def _row(planned: Planned) -> tuple[str | Text, ...]:
    if isinstance(planned.outcome, Refusal):
        return _job(planned), Text(f"refused: {planned.outcome.reason}", style="red"), "", "", "", "", ""
    spec = planned.outcome
    return (
        _job(planned),
        f"{spec.accelerator} {spec.topology}",
        f"{spec.hosts} x {spec.machine_type}",
        str(spec.chips),
        spec.capacity.reservation or spec.capacity.kind.lower().replace("_", " "),
        spec.zone,
        planned.order.name,
    )


def _job(planned: Planned) -> str:
    return f"{planned.job.owner.namespace}/{planned.job.job_name}"


def _summary(planned: Plan) -> str:
    specs = [each.outcome for each in planned.slices if isinstance(each.outcome, SliceSpec)]
    hosts, chips = sum(spec.hosts for spec in specs), sum(spec.chips for spec in specs)
    refused = len(planned.slices) - len(specs)
    text = f"{_many(len(specs), 'slice')}, {_many(hosts, 'host')}, {_many(chips, 'chip')}"
    text += f"; {refused} refused" if refused else ""
    if not all(each.created for each in planned.slices):
        text += ". Some JobSets are not created yet: the names of their node pools will differ"
    return f"{text}."


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"

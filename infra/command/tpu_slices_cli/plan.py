"""`slices plan`: the slice that each Job of a manifest would get, or the refusal."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import click
import yaml
from rich.table import Table
from rich.text import Text

from tpu_slices.domain.capacity.bookings import LONGEST, SHORTEST
from tpu_slices.domain.model.capacity import Advice
from tpu_slices.domain.model.facts import Pinning
from tpu_slices.domain.model.slices import SliceSpec
from tpu_slices.domain.model.texts import as_duration
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.domain.reporting.reason_texts import PODS_REFUSED
from tpu_slices_cli.applied import bookings as booked
from tpu_slices_cli.applied.ladders import ladders_in, lines_of
from tpu_slices_cli.applied.reservations import lines_of as lines_of_reservations
from tpu_slices_cli.applied.reservations import reservations_in
from tpu_slices_cli.clusters import BY_DEFAULT, PlannedCluster, cluster_of
from tpu_slices_cli.manifests import NotAManifest, read
from tpu_slices_cli.notified import told
from tpu_slices_cli.planning import Plan, Planned, plan
from tpu_slices_cli.screen import console, echo
from tpu_slices_cli.session import Session
from tpu_slices_cli.skipping import SkipReason
from tpu_slices_cli.text import plain

INVALID, REFUSED = 2, 3


class BookedFor(click.ParamType[timedelta]):
    """How long a booking lasts."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        try:
            lasts = as_duration(value)
        except ValueError as error:
            self.fail(f"{error}: write it as 7d", param, ctx)
        if not SHORTEST <= lasts <= LONGEST:
            self.fail(f"{value} must be from {SHORTEST.days}d to {LONGEST.days}d", param, ctx)
        return lasts


@click.command(name="plan")
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
    metavar="FILE|ID",
    shell_complete=lambda *_: [click.shell_completion.CompletionItem("infra/clusters/", type="file")],
    help="Settings of the cluster: a file, or the ID of a configured cluster. Without it: a default cluster.",
)
@click.option("--namespace", "-n", default="default", show_default=True, help="Namespace of manifests without one.")
@click.option(
    "--advice/--no-advice",
    default=None,
    help="Ask Compute Engine when the slices could be booked in calendar mode, for which it needs --cluster, and you "
    "compute.advice.calendarMode in the cluster's project. By default as the settings of the cluster say.",
)
@click.option(
    "--booked-for",
    "lasts",
    type=BookedFor(),
    default="1d",
    show_default=True,
    metavar="DURATION",
    help="How long such a booking is to last: from 1d to 90d.",
)
@click.option("--output", "-o", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
@click.pass_obj
def plan_command(  # noqa: PLR0913 - one for each option
    session: Session,
    *,
    files: tuple[str, ...],
    cluster: str | None,
    namespace: str,
    advice: bool | None,
    lasts: timedelta,
    output: str,
) -> None:
    """Show the slice that each Job of a JobSet, or each leader Pod, would get. Nothing is created.

    The plan is made by the code that creates the slices.

    \b
    slices plan -f train.yaml
    slices plan -f train.yaml --cluster infra/clusters/my-project/my-cluster.yaml
    kubectl get jobsets -A -o yaml | slices plan -f - --cluster my-cluster -o json

    Whatever else requests TPU is named with the reason why it gets no slice. An invalid document does not keep the
    others from being planned, and all of them are planned as applied together: a Kueue queue counts for its JobSets.
    What the API server or a webhook would refuse is invalid. Placeholders are warned of, or asked for where slices
    depend on them. The IDs of slices and the names of their pools depend on the workload's UID. Those of one
    that is not created yet are examples.

    Prices are list prices in US dollars of the dates that are shown, without discounts. Rows of catalogue.prices in the
    settings replace them.

    Exit codes: 0 no Job is refused, 2 a document is invalid, 3 at least one Job is refused.
    """  # noqa: D301 - click keeps the line breaks after this mark
    documents = list(read(files))
    if not documents:
        raise NotAManifest(f"{', '.join(files)}: contains no manifest")
    planned_for = cluster_of(cluster, session)
    if advice and planned_for.cluster is None:
        raise click.UsageError("--advice is of a cluster's project and zones: name it with --cluster")
    planned = plan(documents, planned_for.settings_for, namespace, planned_for.vendor, planned_for.pinning)
    notified = told(documents, planned.slices, namespace)
    planned = replace(planned, warnings=(*planned.warnings, *notified.warnings))
    outcomes = [(each.job, each.outcome, each.settings) for each in planned.slices]
    ladders, bookings = ladders_in(outcomes), _bookings(outcomes, session, lasts, advice=advice)
    reservations = reservations_in(outcomes, planned_for.reservations, session.clock.now())
    beside = {
        "notifications": [*notified.lines],
        "ladders": [*ladders],
        "reservations": [*reservations],
        "bookings": [*bookings],
    }
    whole = {"cluster": planned_for.as_json(), **planned.as_json(), **beside}
    match output:
        case "json":
            click.echo(json.dumps(whole, indent=2))
        case "yaml":
            click.echo(yaml.safe_dump(whole, sort_keys=False), nl=False)
        case _:
            rungs, rooms = lines_of(ladders), lines_of_reservations(reservations)
            _show(planned, planned_for, [*rungs, *rooms, *booked.lines_of(bookings), *notified.lines])
    for invalid in planned.invalid:
        echo(f"invalid: {' '.join(str(invalid).split())}", err=True)
    sys.exit(INVALID if planned.invalid else REFUSED if planned.refused else 0)


def _bookings(
    slices: Iterable[booked.PlannedSlice], session: Session, lasts: timedelta, *, advice: bool | None
) -> tuple[Mapping[str, Any], ...]:
    """Return when the slices could be booked, of those clusters that ask for it, or of all, or of none."""
    wanted = [each for each in slices if (each[2].advice is Advice.PLAN if advice is None else advice)]
    return booked.bookings_in(wanted, booked.Asking(session.adviser, lasts, session.clock.now())) if wanted else ()


def _show(planned: Plan, cluster: PlannedCluster, beside: Sequence[str]) -> None:
    """Print the plan on standard output, and what else there is to know on standard error."""
    if cluster.cluster is None and planned.slices:
        echo(BY_DEFAULT, err=True)
    if planned.slices:
        _show_slices(planned, cluster)
        for gang in planned.gangs:
            echo(f"{gang['message']}.")
        for line in beside:
            echo(line)
    elif planned.skipped:
        echo("No slice is planned.")
    for line in _skipped(planned):
        echo(f"skipped {line}", err=True)
    if cluster.pinning is Pinning.REFUSED:
        echo(f"warning: {PODS_REFUSED}", err=True)
    for warning in planned.warnings:
        echo(f"warning: {warning}", err=True)


def _show_slices(planned: Plan, cluster: PlannedCluster) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("JOB", "SLICE", "HOSTS", "CHIPS", "CAPACITY", "ZONE", "USD/H", _noun(planned).upper()):
        table.add_column(title, justify="right" if title in {"CHIPS", "USD/H"} else "left", overflow="fold")
    for each in planned.slices:
        table.add_row(*_row(each))
    screen = console()
    screen.print(table)
    for each in planned.slices:
        if isinstance(each.outcome, Refusal):
            screen.print(Text(plain(f"{_job(each)}: {each.outcome.message}"), style="red"))
    screen.print(_summary(planned, cluster))
    if planned.specs:
        screen.print(str(planned.total))
    for section, names in planned.catalogue.items():
        if names:
            screen.print(plain(f"By catalogue.{section} of the cluster's settings: {', '.join(names)}."))


def _row(planned: Planned) -> tuple[str | Text, ...]:
    if isinstance(planned.outcome, Refusal):
        return _job(planned), Text(f"refused: {planned.outcome.reason}", style="red"), "", "", "", "", "", ""
    spec = planned.outcome
    return (
        _job(planned),
        f"{spec.accelerator} {spec.topology}",
        f"{spec.hosts} x {spec.machine_type}",
        str(spec.chips),
        spec.capacity.reservation or spec.capacity.kind.lower().replace("_", " "),
        spec.zone,
        str(planned.price),
        planned.order.name,
    )


def _job(planned: Planned) -> str:
    others = planned.outcome.jobs - 1 if isinstance(planned.outcome, SliceSpec) else 0
    shared = f" and {_many(others, 'other')}" if others else ""
    return f"{planned.job.owner.namespace}/{planned.job.job_name}{shared}"


def _skipped(planned: Plan) -> list[str]:
    """Return a line for each document that is skipped, those that request no TPU in one."""
    without = Counter(each.manifest.kind for each in planned.skipped if each.reason is SkipReason.REQUESTS_NO_TPU)
    lines = [
        f"{each.manifest.where}: {each.message}"
        for each in planned.skipped
        if each.reason is not SkipReason.REQUESTS_NO_TPU
    ]
    if without:
        kinds = ", ".join(kind if count == 1 else f"{count} {kind}" for kind, count in sorted(without.items()))
        total = without.total()
        lines.append(f"{_many(total, 'document')} that request{'s' if total == 1 else ''} no TPU: {kinds}")
    return lines


def _summary(planned: Plan, cluster: PlannedCluster) -> str:
    specs = planned.specs
    hosts, chips = sum(spec.hosts for spec in specs), sum(spec.chips for spec in specs)
    text = f"{_many(len(specs), 'slice')}, {_many(hosts, 'host')}, {_many(chips, 'chip')}"
    text += f"; {planned.refused} refused" if planned.refused else ""
    if not specs:
        return f"{text}."
    if cluster.cluster is None:
        text += f". The names of {_noun(planned)}s are examples: they depend on the cluster and on the workloads' UIDs"
    elif not all(each.created for each in planned.slices):
        text += f". Some workloads are not created yet: the names of their {_noun(planned)}s will differ"
    return f"{text}."


def _noun(planned: Plan) -> str:
    """Return what slices are in the cluster, which is the same one for all."""
    return planned.slices[0].order.settings.vendor.pool


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"

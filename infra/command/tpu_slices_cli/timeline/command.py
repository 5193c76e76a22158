"""`slices timeline`: write an HTML page that shows what slices did over time."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import click

from tpu_slices.domain.reporting.timeline import Course, Window, course
from tpu_slices.ports.store import SliceStore
from tpu_slices_cli.completion import complete_clusters, complete_namespaces, complete_workloads
from tpu_slices_cli.listing import Filter, silent_relays
from tpu_slices_cli.screen import echo
from tpu_slices_cli.session import Session
from tpu_slices_cli.text import plain
from tpu_slices_cli.timeline.page import page
from tpu_slices_cli.timeline.story import Story, families, lasting, slices

_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400}


class Since(click.ParamType[timedelta]):
    """A duration: `90m`, `6h`, `2d`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        found = re.fullmatch(r"(\d{1,5}) ?(s|m|min|h|d)", value, re.ASCII)
        if found is None or not int(found[1]):
            self.fail(f"{value!r} is not a duration: write 90m, 6h or 2d", param, ctx)
        return timedelta(seconds=int(found[1]) * _SECONDS[found[2]])


@click.command(name="timeline")
@click.argument("workload", required=False, shell_complete=complete_workloads)
@click.option(
    "--since", type=Since(), default="24h", show_default=True, metavar="TIME", help="Duration up to now: 90m, 6h, 2d."
)
@click.option("--cluster", metavar="ID", help="Only slices of this cluster.", shell_complete=complete_clusters)
@click.option("--namespace", "-n", help="Only slices of this namespace.", shell_complete=complete_namespaces)
@click.option(
    "--output",
    "-f",
    "-o",
    metavar="FILE",
    default="timeline.html",
    show_default=True,
    type=click.Path(dir_okay=False, allow_dash=True),
    help="File to write; - is standard output.",
)
@click.pass_obj
def timeline_command(  # noqa: PLR0913 - one for each option
    session: Session, *, workload: str | None, since: timedelta, cluster: str | None, namespace: str | None, output: str
) -> None:
    """Write an HTML page that shows what slices did over time: phases, failures, chips held and used, and their cost.

    WORKLOAD is the NAME or NAMESPACE/NAME of a workload. The page is one file, needs no network, and fits a phone. Its
    charts begin with the first event in the time that --since names. Its lists say what its charts show.

    \b
    slices timeline research/llama --since 6h
    slices timeline --cluster demo -f - > demo.html
    """  # noqa: D301 - click keeps the line breaks after this mark
    now = session.deps.clock.now()
    matching = _filter(workload, cluster, namespace, session)
    window = Window(now - since, now)
    found = _courses(matching, window, session.deps.store)
    grouped = families(found, matching.clusters)
    story = Story(
        whose=_scope(matching, cluster),
        window=window,
        families=grouped,
        settings_of=session.settings_of,
        silent_relays=tuple(silent_relays(matching.clusters, session.deps)),
    )
    _write(output, page(story))
    where = "" if output == "-" else f"{output}: "
    count = slices(len(found)) if found else "no slices"
    echo(f"{where}{count} in the last {lasting(since)}, {story.whose}", err=True)


def _write(output: str, text: str) -> None:
    try:
        with click.open_file(output, "wb", atomic=True) as file:
            file.write(text.encode())
    except OSError as error:
        if output == "-":
            raise
        raise click.FileError(output, error.strerror) from error


def _filter(workload: str | None, cluster: str | None, namespace: str | None, session: Session) -> Filter:
    within, slash, name = (workload or "").rpartition("/")
    if slash and namespace not in {None, within}:
        raise click.UsageError(f"{workload} is not in the namespace {namespace}")
    return Filter(
        clusters=session.clusters(cluster),
        namespace=within if slash else namespace,
        owner=name or None,
        gone=True,
    )


def _courses(matching: Filter, window: Window, store: SliceStore) -> list[Course]:
    return [found for record in matching.read(store) if (found := course(record, window)) is not None]


def _scope(matching: Filter, cluster: str | None) -> str:
    """Return the filter as text, as in `workload llama, namespace research, cluster demo`."""
    named = (("workload", matching.owner), ("namespace", matching.namespace), ("cluster", cluster))
    return plain(", ".join(f"{what} {name}" for what, name in named if name)) or "all clusters"

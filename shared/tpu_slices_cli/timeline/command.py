"""`slices timeline`: what slices did over time, as a page to open and to send."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import click

from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.reporting.timeline import Course, Window, course
from tpu_slices.ports.store import SliceStore
from tpu_slices_cli.listing import Filter
from tpu_slices_cli.session import Session
from tpu_slices_cli.timeline.story import Story, families, lasting, plain, slices

_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400}


class Since(click.ParamType[timedelta]):
    """How long back: `90m`, `6h`, `2d`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        found = re.fullmatch(r"(\d{1,5}) ?(s|m|min|h|d)", value, re.ASCII)
        if found is None or not int(found[1]):
            self.fail(f"{value!r} is no time: write 90m, 6h or 2d", param, ctx)
        return timedelta(seconds=int(found[1]) * _SECONDS[found[2]])


@click.command(name="timeline", short_help="What slices did over time, as a page.")
@click.argument("jobset", required=False)
@click.option(
    "--since", type=Since(), default="24h", show_default=True, metavar="TIME", help="How far back: 90m, 6h, 2d."
)
@click.option("--cluster", metavar="ID", help="One cluster's only.")
@click.option("--namespace", "-n", help="One namespace's only.")
@click.option(
    "--output",
    "-f",
    "-o",
    metavar="FILE",
    default="timeline.html",
    show_default=True,
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Where the page is written; - is the standard output.",
)
@click.pass_obj
def timeline_command(  # noqa: PLR0913 - one for each option
    session: Session, *, jobset: str | None, since: timedelta, cluster: str | None, namespace: str | None, output: str
) -> None:
    """Write a page with the phases of slices over time, the chips they held, and what these were good for.

    JOBSET is NAME or NAMESPACE/NAME. The page is one file that needs no network; it also says everything in words.

    \b
    slices timeline research/llama --since 6h
    slices timeline --cluster demo -f - > demo.html
    """  # noqa: D301 - click's mark for lines to leave as they are
    from tpu_slices_cli.timeline.page import page  # noqa: PLC0415 - loads plotly, which no other command waits for

    now = session.deps.clock.now()
    wanted = _filter(jobset, cluster, namespace, session.deps.store)
    window = Window(now - since, now)
    found = _courses(wanted, window, session.deps.store)
    story = Story(whose=_whose(wanted, cluster), window=window, families=families(found, wanted.clusters))
    _write(output, page(story))
    where = "" if output == "-" else f"{output}: "
    count = slices(len(found)) if found else "no slice"
    click.echo(f"{where}{count} in the last {lasting(since)}, {story.whose}", err=True)


def _write(output: str, text: str) -> None:
    try:
        with click.open_file(output, "wb", atomic=True) as file:
            file.write(text.encode())
    except OSError as trouble:
        if output == "-":
            raise
        raise click.FileError(output, trouble.strerror) from trouble


def _filter(jobset: str | None, cluster: str | None, namespace: str | None, store: SliceStore) -> Filter:
    within, slash, name = (jobset or "").rpartition("/")
    if slash and namespace not in {None, within}:
        raise click.UsageError(f"{jobset} is not in the namespace {namespace}")
    return Filter(
        clusters=(ClusterId(cluster),) if cluster else store.clusters(),
        namespace=within if slash else namespace,
        jobset=name or None,
        gone=True,
    )


def _courses(wanted: Filter, window: Window, store: SliceStore) -> list[Course]:
    return [found for record in wanted.read(store) if (found := course(record, window)) is not None]


def _whose(wanted: Filter, cluster: str | None) -> str:
    """Say what was asked for, as in `JobSet llama, namespace research, cluster demo`."""
    named = (("JobSet", wanted.jobset), ("namespace", wanted.namespace), ("cluster", cluster))
    return plain(", ".join(f"{what} {name}" for what, name in named if name)) or "all clusters"

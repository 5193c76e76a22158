"""`slices simulate`: play a story of workloads and faults, and tell what becomes of each."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tpu_slices_cli.screen import echo, log_to_standard_error

if TYPE_CHECKING:
    from tpu_slices_simulator.outcome import CountedSimulation

UNSERVED = 3


@click.command(name="simulate")
@click.argument("story", type=click.Path(dir_okay=False))
@click.option("--timeline", metavar="FILE", help="Also write the page of `slices timeline` to this file.")
@click.option("--output", "-o", type=click.Choice(["table", "json"]), default="table", show_default=True)
def simulate_command(story: str, timeline: str | None, output: str) -> None:
    """Simulate what becomes of workloads while things go wrong.

    STORY is a YAML file with a cluster's settings, JobSets, and faults with their times. It is played by the code that
    the functions and the relay run, on a simulated cluster, GKE and clock: nothing is created, and hours take seconds.
    JobSets are admitted at once, as without Kueue. Times of operations are assumed, or those of the story.

    \b
    slices simulate examples/stories/zone-out-for-six-hours.yaml
    slices simulate story.yaml --timeline story.html

    Exit codes: 0 every JobSet got all of its slices at some time, 2 the story is invalid, 3 at least one never did.
    """  # noqa: D301 - click keeps the line breaks after this mark
    from tpu_slices_cli.simulate.reading import read_story
    from tpu_slices_cli.simulate.telling import as_json, table
    from tpu_slices_simulator.outcome import CountedSimulation

    log_to_standard_error()
    simulation = CountedSimulation(read_story(Path(story)))
    simulation.play()
    outcomes = tuple(simulation.outcomes.values())
    if output == "json":
        click.echo(json.dumps(as_json(simulation), indent=2))
    else:
        table(simulation)
    if timeline is not None:
        _write_timeline(timeline, simulation, story)
    sys.exit(0 if all(each.served_at is not None for each in outcomes) else UNSERVED)


def _write_timeline(file: str, simulation: CountedSimulation, told_by: str) -> None:
    from tpu_slices_cli.timeline.page import page
    from tpu_slices_cli.timeline.story import Story, families

    courses = simulation.courses
    told = Story(
        whose=f"simulated: {Path(told_by).name}",
        window=simulation.window,
        families=families(courses, (simulation.settings.cluster,)),
    )
    try:
        Path(file).write_text(page(told), encoding="utf-8")
    except OSError as error:
        raise click.FileError(file, error.strerror) from error
    echo(f"{file}: {len(courses)} slices", err=True)

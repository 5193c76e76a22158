"""What became of the workloads of a story, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from rich.table import Table

from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.planning.costs import Price, price_of
from tpu_slices.domain.records.usage import Use
from tpu_slices.domain.reporting.timeline import Course, held, totals
from tpu_slices_cli.prices import note
from tpu_slices_cli.screen import console, echo
from tpu_slices_cli.text import plain
from tpu_slices_cli.timeline.money import spent
from tpu_slices_cli.timeline.story import chip_hours, useful_share
from tpu_slices_simulator.outcome import CountedSimulation, Outcome
from tpu_slices_simulator.story import Story

_HOUR = timedelta(hours=1)
UNKNOWN_TO_US = "not known to the provisioner"


def as_json(simulation: CountedSimulation) -> dict[str, Any]:
    """Return the outcome of every workload; times are minutes of the story."""
    story, outcomes = simulation.story, tuple(simulation.outcomes.values())
    tried, failed = simulation.creations
    return {
        "seed": story.seed,
        "minutes": story.minutes,
        "workloads": [_one(each) for each in outcomes],
        "spares": {"slices": len(simulation.spares), "chip_hours": _chip_hours(simulation.spares)},
        "chip_hours": _chip_hours(_courses(simulation)),
        "usd": _usd(story, _courses(simulation)),
        "creations": {"tried": tried, "failed": failed},
    }


def _one(outcome: Outcome) -> dict[str, Any]:
    plot = outcome.plot
    return {
        "kind": plot.kind.value,
        "namespace": plot.namespace,
        "name": plot.name,
        "slices": plot.slices,
        "created_at": plot.at,
        "served_at": outcome.served_at,
        "ended_at": outcome.ended_at,
        "state": outcome.state.value,
        "ran": outcome.ran,
        "waited": {reason.value if reason else UNKNOWN_TO_US: count for reason, count in outcome.waited.most_common()},
        "message": outcome.message,
        "chip_hours": _chip_hours(outcome.courses),
        "where": dict(outcome.where.most_common()),
    }


def _courses(simulation: CountedSimulation) -> list[Course]:
    return [*(course for each in simulation.outcomes.values() for course in each.courses), *simulation.spares]


def table(simulation: CountedSimulation) -> None:
    """Print a row for each workload, why each waited and where its slices were, and the sums."""
    story, outcomes = simulation.story, tuple(simulation.outcomes.values())
    rows = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("WORKLOAD", "SLICES", "CREATED", "WAITED", "RAN", "CHIP-HOURS", "USEFUL", "END"):
        rows.add_column(title, justify="left" if title in {"WORKLOAD", "END"} else "right", overflow="fold")
    for each in outcomes:
        rows.add_row(*_row(each))
    screen = console()
    screen.print(rows)
    for each in outcomes:
        for line in (*_why(each), *_where(each)):
            screen.print(plain(line), soft_wrap=True, markup=False, highlight=False)
    if spares := simulation.spares:
        echo(f"{len(spares)} spares that nobody got: {chip_hours(held(totals(spares)))} chip-hours.")
    courses = _courses(simulation)
    sums = totals(courses)
    share = f", {useful_share(sums)} of them useful" if held(sums) else ""
    usd = _usd(story, courses)
    price = f", {usd:,.0f} USD ({note(_prices(story, courses))})" if usd is not None else ""
    echo(f"{chip_hours(held(sums))} chip-hours held{share}{price}.")
    tried, failed = simulation.creations
    echo(f"{tried} creations were tried, {failed} of them in vain.")
    echo(f"Simulated, with seed {story.seed}.")


def _row(outcome: Outcome) -> tuple[str, ...]:
    plot, sums = outcome.plot, totals(outcome.courses)
    return (
        plain(plot.id),
        str(plot.slices),
        _time(plot.at),
        _time(outcome.waited.total()),
        _time(outcome.ran),
        chip_hours(held(sums)),
        chip_hours(sums[Use.USEFUL]),
        _end(outcome),
    )


def _end(outcome: Outcome) -> str:
    if outcome.ended_at is not None:
        return f"{outcome.state.lower()} at {_time(outcome.ended_at)}"
    if outcome.served_at is None:
        return "never got all of its slices"
    return "suspended" if outcome.state is WorkloadState.SUSPENDED else "not ended"


def _why(outcome: Outcome) -> Iterator[str]:
    if not outcome.waited:
        return
    reasons = (f"{reason.value if reason else UNKNOWN_TO_US} {_time(n)}" for reason, n in outcome.waited.most_common())
    last = f". Last: {outcome.message}" if outcome.served_at is None and outcome.message else ""
    yield f"{outcome.plot.id} waited: {', '.join(reasons)}{last}"


def _where(outcome: Outcome) -> Iterator[str]:
    """Yield where the slices of a workload with a ladder were."""
    specs = (each.record.made_as for each in outcome.courses)
    if outcome.where and any(spec is not None and spec.ladder for spec in specs):
        yield f"{outcome.plot.id} had: {', '.join(f'{count} x {how}' for how, count in outcome.where.most_common())}"


def _chip_hours(courses: Sequence[Course]) -> dict[str, float]:
    sums = totals(courses)
    return {"held": round(held(sums) / _HOUR, 1), "useful": round(sums[Use.USEFUL] / _HOUR, 1)}


def _usd(story: Story, courses: Sequence[Course]) -> float | None:
    """Return the list price of what was held; None if that of a part is unknown."""
    money = spent(courses, lambda _: story.settings)
    return None if money.unknown or money.reserved else round(money.dollars, 2)


def _prices(story: Story, courses: Sequence[Course]) -> list[Price]:
    """Return what slices that were held cost."""
    return [price_of(spec, story.settings) for spec in {spec for each in courses for spec in each.held_as}]


def _time(minutes: int) -> str:
    length = timedelta(minutes=minutes)
    return f"{length // timedelta(hours=1)}:{minutes % 60:02}"

"""What became of the workloads of a story, as a table and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from rich.table import Table

from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.slices import SliceSpec
from tpu_slices.domain.planning.costs import Price, price_of
from tpu_slices_cli.prices import note
from tpu_slices_cli.screen import console, echo
from tpu_slices_cli.text import plain
from tpu_slices_simulator.outcome import Outcome
from tpu_slices_simulator.story import Story

UNKNOWN_TO_US = "not known to the provisioner"


def as_json(story: Story, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the outcome of every workload; times are minutes of the story."""
    return {
        "seed": story.seed,
        "minutes": story.minutes,
        "workloads": [_one(each) for each in outcomes],
        "chip_hours": {
            "held": _chip_hours(sum((each.held for each in outcomes), Counter())),
            "used": _chip_hours(sum((each.used for each in outcomes), Counter())),
        },
        "usd": _usd(_prices(story, outcomes), outcomes),
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
        "chip_hours": {"held": _chip_hours(outcome.held), "used": _chip_hours(outcome.used)},
    }


def table(story: Story, outcomes: Sequence[Outcome]) -> None:
    """Print a row for each workload, why each waited, and the sums."""
    rows = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("WORKLOAD", "SLICES", "CREATED", "WAITED", "RAN", "CHIP-HOURS", "USED", "END"):
        rows.add_column(title, justify="left" if title in {"WORKLOAD", "END"} else "right", overflow="fold")
    for each in outcomes:
        rows.add_row(*_row(each))
    screen = console()
    screen.print(rows)
    for each in outcomes:
        if each.waited:
            screen.print(plain(_why(each)), soft_wrap=True, markup=False, highlight=False)
    held, used = (sum(counts, Counter()) for counts in ([e.held for e in outcomes], [e.used for e in outcomes]))
    share = f", {_chip_hours(used) / _chip_hours(held):.0%} of them used" if held else ""
    prices = _prices(story, outcomes)
    usd = _usd(prices, outcomes)
    price = f", {usd:,.0f} USD ({note(prices.values())})" if usd is not None else ""
    echo(f"{_chip_hours(held):,.1f} chip-hours held{share}{price}.")
    echo(f"Simulated, with seed {story.seed}.")


def _row(outcome: Outcome) -> tuple[str, ...]:
    plot = outcome.plot
    return (
        plain(plot.id),
        str(plot.slices),
        _time(plot.at),
        _time(outcome.waited.total()),
        _time(outcome.ran),
        f"{_chip_hours(outcome.held):,.1f}",
        f"{_chip_hours(outcome.used):,.1f}",
        _end(outcome),
    )


def _end(outcome: Outcome) -> str:
    if outcome.ended_at is not None:
        return f"{outcome.state.lower()} at {_time(outcome.ended_at)}"
    if outcome.served_at is None:
        return "never got all of its slices"
    return "suspended" if outcome.state is WorkloadState.SUSPENDED else "not ended"


def _why(outcome: Outcome) -> str:
    reasons = (f"{reason.value if reason else UNKNOWN_TO_US} {_time(n)}" for reason, n in outcome.waited.most_common())
    last = f". Last: {outcome.message}" if outcome.served_at is None and outcome.message else ""
    return f"{outcome.plot.id} waited: {', '.join(reasons)}{last}"


def _chip_hours(minutes: Counter[SliceSpec]) -> float:
    return round(sum(spec.chips * count for spec, count in minutes.items()) / 60, 1)


def _prices(story: Story, outcomes: Sequence[Outcome]) -> dict[SliceSpec, Price]:
    """Return what each slice that was held costs."""
    return {spec: price_of(spec, story.settings) for each in outcomes for spec in each.held}


def _usd(prices: Mapping[SliceSpec, Price], outcomes: Sequence[Outcome]) -> float | None:
    """Return the list price of what was held; None if that of a part is unknown."""
    held = sum((each.held for each in outcomes), Counter[SliceSpec]())
    known = [(price.usd_per_hour, held[spec]) for spec, price in prices.items() if price.usd_per_hour is not None]
    return round(sum(price * count / 60 for price, count in known), 2) if len(known) == len(held) else None


def _time(minutes: int) -> str:
    length = timedelta(minutes=minutes)
    return f"{length // timedelta(hours=1)}:{minutes % 60:02}"
